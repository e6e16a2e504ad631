"""What would give operators a wrong reason."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

EXPLAINED: Final = (
    Mutant("a lease that is over counts as a run", modules.EXPLAIN, "_running", "job.due and job.due > now", "job.due"),
    Mutant("a time ahead is overlooked", modules.EXPLAIN, "_answer", "job.due > now", "job.due <= now"),
    Mutant(
        "a hold is explained by an earlier error",
        modules.EXPLAINED_TIME,
        "_given_time",
        "if job.holds.count:\n"
        "    return (Reason.HELD, f'It was held back until {when}, {times(job.holds.count)} so far: "
        "{_HOLDS[job.holds.cause]}.')",
        "if job.holds.count and (not job.errors):\n"
        "    return (Reason.HELD, f'It was held back until {when}, {times(job.holds.count)} so far: "
        "{_HOLDS[job.holds.cause]}.')",
    ),
    Mutant(
        "a hold for another version is explained as an outage",
        modules.EXPLAINED_TIME,
        "",
        "'its worker does not know its type, or refuses its payload; during a deployment this passes'",
        "'the store did not respond, or refuses its payload; during a deployment this passes'",
    ),
    Mutant(
        "a turn at a limit is explained as a hold",
        modules.EXPLAINED_TIME,
        "_given_time",
        "job.holds.cause is HoldCause.LIMIT",
        "job.wait is None",
    ),
    Mutant(
        "a snooze is explained by the last error",
        modules.EXPLAINED_TIME,
        "_usual_time",
        "job.errors and job.errors[-1].next_due == job.due",
        "job.errors",
    ),
    Mutant(
        "a follow-up with a delay is explained as a snooze",
        modules.EXPLAINED_TIME,
        "_usual_time",
        "job.lease.claimed_at and job.hops",
        "job.hops",
    ),
    Mutant(
        "a retry is explained as a delay of the submission",
        modules.EXPLAINED_TIME,
        "_usual_time",
        "job.errors[-1].next_due == job.due",
        "job.errors[-1].next_due is None",
    ),
    Mutant(
        "a dead job that blocks its group goes unnoticed",
        modules.EXPLAIN,
        "_blocks",
        "job.state is State.DEAD and job.group.blocks",
        "False",
    ),
    Mutant(
        "every dead job at the head blocks its group",
        modules.EXPLAIN,
        "_blocks",
        "job.state is State.DEAD and job.group.blocks",
        "job.state is State.DEAD",
    ),
    Mutant(
        "slots whose time is over count as used", modules.EXPLAIN, "_parked", "state.taken(now)", "state.held or ()"
    ),
    Mutant(
        "the rate of a limit is overlooked",
        modules.EXPLAIN,
        "_parked",
        "max(earliest(limit.rate, state.arrival), state.promised)",
        "earliest(limit.rate, state.arrival)",
    ),
    Mutant(
        "owed work is overlooked",
        modules.EXPLAIN,
        "_ready",
        "(owed := _owed(facts))",
        "(owed := _owed(facts)) and facts.stopped",
    ),
    Mutant(
        "work that was sent again counts as owed",
        modules.EXPLAIN,
        "_owed",
        "owed is None or owed.resent",
        "owed is None",
    ),
    Mutant(
        "a lost message is overlooked",
        modules.EXPLANATION,
        "LaneDepth.empty",
        "not self.waiting + self.delayed + self.in_flight",
        "False",
    ),
    Mutant(
        "messages in flight are overlooked",
        modules.EXPLANATION,
        "LaneDepth.empty",
        "self.waiting + self.delayed + self.in_flight",
        "self.waiting + self.delayed",
    ),
    Mutant(
        "a history omits the errors that its transitions do not have",
        modules.JOB_STORY,
        "_untold",
        "error.at not in others",
        "error.at in others",
    ),
    Mutant(
        "a history names the first redrive for all of them", modules.JOB_STORY, "_told", "redrive.at == entry.at", ""
    ),
    Mutant(
        "a history without its first transition",
        modules.JOB_STORY,
        "story",
        "job.known_history",
        "job.known_history[2:]",
    ),
    Mutant(
        "a claim of a job that dies instead of a run is shown as a run",
        modules.JOB_STORY,
        "_told",
        "'a worker claimed it' if following and _no_run(following, job) else f'{run} began'",
        "f'{run} began'",
    ),
    Mutant(
        "an expired job is explained",
        modules.JOB_FACTS,
        "JobFacts.read",
        "job is None or job.lifetime.over(now)",
        "job is None",
    ),
)

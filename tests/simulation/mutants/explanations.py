"""What would give operators a wrong reason."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

EXPLAINED: Final = (
    Mutant(
        "a lease that is over counts as a run",
        modules.EXPLAIN,
        "    if job.due and job.due > now:\n        began",
        "    if job.due:\n        began",
    ),
    Mutant(
        "a time ahead is overlooked",
        modules.EXPLAIN,
        "case _ if job.due and job.due > now:",
        "case _ if job.due and job.due <= now:",
    ),
    Mutant(
        "a hold is explained by an earlier error",
        modules.EXPLAINED_TIME,
        "    if job.holds:\n",
        "    if job.holds and not job.errors:\n",
    ),
    Mutant(
        "a hold for another version is explained as an outage",
        modules.EXPLAINED_TIME,
        '    HoldCause.VERSION: "its worker does not know its type',
        '    HoldCause.VERSION: "the store did not respond',
    ),
    Mutant(
        "a turn at a limit is explained as a hold",
        modules.EXPLAINED_TIME,
        "if job.holds and job.hold_cause is HoldCause.LIMIT:",
        "if job.holds and job.wait is None:",
    ),
    Mutant(
        "a snooze is explained by the last error",
        modules.EXPLAINED_TIME,
        "if job.errors and job.errors[-1].next_due == job.due:",
        "if job.errors:",
    ),
    Mutant(
        "a follow-up with a delay is explained as a snooze",
        modules.EXPLAINED_TIME,
        "if job.claimed_at and job.hops:",
        "if job.hops:",
    ),
    Mutant(
        "a retry is explained as a delay of the submission",
        modules.EXPLAINED_TIME,
        "if job.errors and job.errors[-1].next_due == job.due:",
        "if job.errors and job.errors[-1].next_due is None:",
    ),
    Mutant(
        "a dead job that blocks its group goes unnoticed",
        modules.EXPLAIN,
        "return job.state is State.DEAD and job.blocks",
        "return False",
    ),
    Mutant(
        "every dead job at the head blocks its group",
        modules.EXPLAIN,
        "return job.state is State.DEAD and job.blocks",
        "return job.state is State.DEAD",
    ),
    Mutant(
        "slots whose time is over count as used",
        modules.EXPLAIN,
        "len(state.taken(now)) >= slots",
        "len(state.held or ()) >= slots",
    ),
    Mutant(
        "the rate of a limit is overlooked",
        modules.EXPLAIN,
        "(begins := max(earliest(limit.rate, state.arrival), state.promised)) > now",
        "(begins := earliest(limit.rate, state.arrival)) > now",
    ),
    Mutant(
        "owed work is overlooked",
        modules.EXPLAIN,
        "if owed := _owed(facts):",
        "if (owed := _owed(facts)) and facts.stopped:",
    ),
    Mutant(
        "work that was sent again counts as owed",
        modules.EXPLAIN,
        "if owed is None or owed.resent:",
        "if owed is None:",
    ),
    Mutant(
        "a lost message is overlooked",
        modules.EXPLANATION,
        "return not self.waiting + self.delayed + self.in_flight",
        "return False",
    ),
    Mutant(
        "messages in flight are overlooked",
        modules.EXPLANATION,
        "return not self.waiting + self.delayed + self.in_flight",
        "return not self.waiting + self.delayed",
    ),
    Mutant(
        "a history omits the errors that its transitions do not have",
        modules.JOB_STORY,
        "if error.at not in others]",
        "if error.at in others]",
    ),
    Mutant(
        "a history names the first redrive for all of them",
        modules.JOB_STORY,
        "for redrive in job.redrives if redrive.at == entry.at)",
        "for redrive in job.redrives)",
    ),
    Mutant(
        "a history without its first transition",
        modules.JOB_STORY,
        "entries = job.known_history\n",
        "entries = job.known_history[2:]\n",
    ),
    Mutant(
        "a claim of a job that dies instead of a run is shown as a run",
        modules.JOB_STORY,
        'began = "a worker claimed it" if following and _no_run(following, job) else f"{run} began"',
        'began = f"{run} began"',
    ),
    Mutant(
        "an expired job is explained",
        modules.JOB_FACTS,
        "if job is None or job.retention_over(now):",
        "if job is None:",
    ),
)

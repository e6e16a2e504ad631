"""What would show operators less than the documents hold, or something else."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

READ: Final = (
    Mutant("the progress of a job is not read", "tidemill.dynamodb.document", '    "progress_done": _NUMBER,\n', ""),
    Mutant(
        "operators do not see why a job was cancelled",
        "tidemill.application.job_view",
        "(job.cancel.reason or None) if job.cancel else None",
        "None",
    ),
    Mutant(
        "the story of a job leaves out its wait",
        "tidemill.application.job_story",
        "    if job.wait and job.wait.since not in others:\n",
        "    if False:\n",
    ),
    Mutant("an explanation leaves out the deadline", modules.EXPLAIN, "    if job.deadline:\n", "    if job.holds:\n"),
    Mutant(
        "a search takes jobs of any age",
        "tidemill.application.job_filter",
        "(self.since is None or job.created_at >= self.since)",
        "True",
    ),
    Mutant(
        "a count takes one partition",
        "tidemill.dynamodb.attention_counts",
        "return self._sum(_partitions(state), most=most)",
        "return self._sum(_partitions(state)[:1], most=most)",
    ),
    Mutant(
        "a dead job cannot be cancelled",
        "tidemill.domain.states",
        "if state not in TERMINAL | {State.RUNNING}} | {State.DEAD})",
        "if state not in TERMINAL | {State.RUNNING}})",
    ),
    Mutant(
        "the table of transitions lacks a claim",
        "tidemill.domain.states",
        "        State.RETRYING: frozenset({State.RUNNING}),\n",
        "",
    ),
)

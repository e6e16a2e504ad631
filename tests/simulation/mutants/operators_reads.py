"""What would show operators less than the documents hold, or something else."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

READ: Final = (
    Mutant(
        "the progress of a job is not read",
        "tidemill.dynamodb.document",
        "",
        "'progress_done': ('progress.done', _NUMBER)",
        "",
    ),
    Mutant(
        "operators do not see why a job was cancelled",
        "tidemill.application.job_view",
        "operator_view",
        "job.cancel.request.reason or None if job.cancel.request else None",
        "None",
    ),
    Mutant(
        "the story of a job leaves out its wait",
        "tidemill.application.explain.job_story",
        "_untold",
        "job.wait and job.wait.since not in others",
        "False",
    ),
    Mutant(
        "an explanation leaves out the deadline",
        modules.EXPLAIN,
        "_further",
        "if job.lifetime.deadline:\n    yield f'If no run begins by {moment(job.lifetime.deadline, now)}, it dies.'",
        "if job.holds.count:\n    yield f'If no run begins by {moment(job.lifetime.deadline, now)}, it dies.'",
    ),
    Mutant(
        "a search takes jobs of any age",
        "tidemill.application.job_filter",
        "JobFilter.__contains__",
        "self.since is None or job.created_at >= self.since",
        "True",
    ),
    Mutant(
        "a count takes one partition",
        "tidemill.dynamodb.operations.attention_counts",
        "AttentionCounts.jobs",
        "_partitions(state)",
        "_partitions(state)[:1]",
    ),
    Mutant(
        "a dead job cannot be cancelled",
        "tidemill.domain.states",
        "",
        "{state for state in State if state not in TERMINAL | {State.RUNNING}} | {State.DEAD}",
        "{state for state in State if state not in TERMINAL | {State.RUNNING}}",
    ),
    Mutant(
        "the table of transitions lacks a claim",
        "tidemill.domain.states",
        "",
        "State.RETRYING: frozenset({State.RUNNING})",
        "",
    ),
)

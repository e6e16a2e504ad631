"""Claims and settles of several jobs in one call."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

GROUPED: Final = (
    Mutant(
        "jobs that are claimed together share a token",
        modules.GROUPED_COMMIT,
        "GroupedCommit.claim",
        "first_run=first_run, token=token",
        "first_run=first_run, token=worker or token",
    ),
    Mutant(
        "a claim of several counts no open run",
        modules.FIRST_CLAIM,
        "first_claim",
        "'open_runs': number(1)",
        "'open_runs': number(0)",
    ),
    Mutant(
        "a claim of several forgets since when its job was ready",
        modules.FIRST_CLAIM,
        "first_claim",
        "'ready_at': milliseconds(first_run.due)",
        "'ready_at': milliseconds(now)",
    ),
    Mutant(
        "a refused claim of several is a claim",
        modules.GROUPED_WRITES,
        "DynamoGroupedWrites._judged",
        "job.lease.owner == claim.token",
        "job.lease.owner",
    ),
    Mutant(
        "a settle of several whose answer was lost is refused",
        modules.GROUPED_WRITES,
        "_settled",
        "success.job if success.job.settled_in(current) else WriteRefusedError(Write.SETTLE, current)",
        "WriteRefusedError(Write.SETTLE, current)",
    ),
    Mutant(
        "a transaction is settled without its effects",
        modules.GROUPED_COMMIT,
        "GroupedCommit.settle",
        "settlement.state is State.SUCCEEDED and (not settlement.writes) and (not settlement.follow_ups)",
        "settlement.state is State.SUCCEEDED",
    ),
)

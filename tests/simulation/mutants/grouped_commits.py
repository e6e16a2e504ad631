"""Claims and settles of several jobs in one call."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

GROUPED: Final = (
    Mutant(
        "jobs that are claimed together share a token",
        modules.GROUPED_COMMIT,
        "reference=reference, first_run=first_run, token=token, now=now",
        "reference=reference, first_run=first_run, token=worker or token, now=now",
    ),
    Mutant(
        "a claim of several counts no open run",
        modules.FIRST_CLAIM,
        '            "open_runs": number(1),\n',
        '            "open_runs": number(0),\n',
    ),
    Mutant(
        "a claim of several forgets since when its job was ready",
        modules.FIRST_CLAIM,
        '            "ready_at": milliseconds(first_run.due),\n',
        '            "ready_at": milliseconds(now),\n',
    ),
    Mutant(
        "a refused claim of several is a claim",
        modules.GROUPED_WRITES,
        "        if job.owner == claim.token:\n",
        "        if job.owner:\n",
    ),
    Mutant(
        "a settle of several whose answer was lost is refused",
        modules.GROUPED_WRITES,
        "    return success.job if success.job.settled_in(current) else WriteRefusedError(Write.SETTLE, current)\n",
        "    return WriteRefusedError(Write.SETTLE, current)\n",
    ),
    Mutant(
        "a transaction is settled without its effects",
        modules.GROUPED_COMMIT,
        "settlement.state is State.SUCCEEDED and not settlement.writes and not settlement.follow_ups",
        "settlement.state is State.SUCCEEDED",
    ),
)

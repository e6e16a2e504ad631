"""Faults of skipped work and of the jobs that make up for it."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

BACKFILLED: Final = (
    Mutant(
        "the success forgets what it skipped",
        modules.SETTLE_REQUESTS,
        "        backfill_writes.skipped(settlement),\n",
        "        *([backfill_writes.skipped(settlement)] if job.attempt < 2 else []),\n",
    ),
    Mutant(
        "a backfill names no job",
        modules.BACKFILL,
        "parent=done.id,",
        "parent=None,",
    ),
)

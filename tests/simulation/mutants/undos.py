"""Faults of undos."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

UNDONE: Final = (
    Mutant(
        "a repeated undo is refused",
        modules.UNDO,
        "if done.undone is not None:\n                return",
        "if done.undone is not None:\n                raise UndoRefusedError('again')\n                return",
    ),
    Mutant(
        "the success forgets its undo",
        modules.WRITES,
        "if settlement.undo is not None:",
        "if settlement.undo is not None and job.attempt < 2:",
    ),
    Mutant(
        "an undo leaves the group of its job",
        modules.UNDO,
        "now=now, group=done.group)",
        "now=now, group=None)",
    ),
    Mutant(
        "an undo is marked and not inserted",
        modules.GROUPS,
        'self._transact([own("Update", update, table=self._table), put, *entries])',
        'self._transact([own("Update", update, table=self._table), *entries])',
    ),
    Mutant(
        "an undo is inserted and not marked",
        modules.GROUPS,
        'self._transact([own("Update", update, table=self._table), put, *entries])',
        "self._transact([put, *entries])",
    ),
    Mutant(
        "an undo names no job",
        modules.UNDO,
        "undoes=done.id,",
        "undoes=None,",
    ),
    Mutant(
        "an undo loses its tags",
        modules.UNDO,
        "tags=undo.tags,",
        "tags=(),",
    ),
    Mutant(
        "a correction does not wait",
        modules.GATES,
        "if superseder is None or job.supersedes is None or superseder.ready(job):",
        "if superseder is None or job.supersedes is None or superseder.ready(job) in {True, False}:",
    ),
    Mutant(
        "a correction does not wait for the undo",
        modules.SUPERSEDING,
        "return undo is None or undo.state is State.SUCCEEDED",
        "return True",
    ),
    Mutant(
        "a correction leaves the earlier job alone",
        modules.SUPERSEDING,
        "if earlier.state is not State.SUCCEEDED:",
        "if earlier.state is not State.SUCCEEDED and not earlier.state.terminal:\n"
        "                    return True\n"
        "                if earlier.state is State.DEAD:",
    ),
    Mutant(
        "two jobs supersede one",
        modules.SUPERSEDING,
        "if (other := earlier.superseded_by) is not None:",
        "if (other := earlier.superseded_by) is not None and other == job.id:",
    ),
    Mutant(
        "a listing shows no undo",
        modules.JOB_VIEW,
        '"undone_by": job.undone.job_id if job.undone else None',
        '"undone_by": None',
    ),
)

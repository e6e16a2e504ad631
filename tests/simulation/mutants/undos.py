"""Faults of undos."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

UNDONE: Final = (
    Mutant(
        "a second undo is accepted",
        modules.UNDO_WRITES,
        '            "attribute_not_exists(#undone)",\n',
        '            "(attribute_not_exists(#undone) OR attribute_exists(#undone))",\n',
    ),
    Mutant(
        "an undo has a fresh id",
        modules.UNDO,
        "done.created_at.isoformat()]",
        "done.created_at.isoformat(), id(object())]",
    ),
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
        "group=done.group,",
        "group=None,",
    ),
    Mutant(
        "an undo is marked and not inserted",
        modules.GROUPS,
        'self._transact([own("Update", update, table=self._table), put, *entries])',
        'self._transact([own("Update", update, table=self._table), *entries])',
    ),
    Mutant(
        "an undo does not wait for the success",
        modules.UNDO,
        "if done.state is not State.SUCCEEDED:",
        "if done.state is State.CANCELLED:",
    ),
    Mutant(
        "a listing shows no undo",
        modules.JOB_VIEW,
        '"undone_by": job.undone.job_id if job.undone else None',
        '"undone_by": None',
    ),
)

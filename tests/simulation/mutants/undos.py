"""Faults of undos."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

UNDONE: Final = (
    Mutant(
        "a repeated undo is refused",
        modules.UNDO,
        "Undoer.__call__",
        "return Accepted(job=undo, replayed=True)",
        "raise UndoRefusedError('again')",
    ),
    Mutant(
        "the success forgets its undo",
        modules.SETTLE_REQUESTS,
        "settle",
        "undo_writes.undo_kept(settlement)",
        "*([undo_writes.undo_kept(settlement)] if job.attempt < 2 else [])",
    ),
    Mutant("an undo leaves the group of its job", modules.UNDO, "Undoer.__call__", "done.group", "None"),
    Mutant(
        "an undo is marked and not inserted",
        modules.GROUPS,
        "DynamoGroups.insert_with.attempt",
        "put, *entries",
        "*entries",
    ),
    Mutant(
        "an undo is inserted and not marked",
        modules.GROUPS,
        "DynamoGroups.insert_with.attempt",
        "own('Update', update, table=self._table)",
        "",
    ),
    Mutant("an undo names no job", modules.UNDO, "undo_job", "undoes=done.id", "undoes=None"),
    Mutant("an undo loses its tags", modules.UNDO, "undo_job", "undo.tags", "()"),
    Mutant(
        "a correction does not wait",
        modules.UNDO_GATE,
        "UndoGate.enter",
        "context.superseder().ready(job)",
        "context.superseder().ready(job) in {True, False}",
    ),
    Mutant(
        "a correction does not wait for the undo",
        modules.SUPERSEDING,
        "Superseder._undone",
        "undo.state is State.SUCCEEDED",
        "True",
    ),
    Mutant(
        "a correction does not wait for a run",
        modules.SUPERSEDING,
        "Superseder._superseding",
        "earlier.state not in AT_REST | WITHOUT_EFFECT",
        "earlier.state is State.SUCCEEDED",
    ),
    Mutant(
        "an undo can be undone",
        modules.UNDO,
        "Undoer.__call__",
        "done.correction.undoes is not None",
        "done.correction.undoes == 'none'",
    ),
    Mutant(
        "an undo that was cancelled counts as one",
        modules.UNDO,
        "Undoer.__call__",
        "undo is not None and undo.state not in WITHOUT_EFFECT",
        "undo is not None",
    ),
    Mutant(
        "a correction forgets the undo that it waits for",
        modules.SUPERSEDING,
        "Superseder._superseding",
        "undo_id(earlier) if needs_undo else None",
        "None",
    ),
    Mutant("two jobs supersede one", modules.SUPERSEDING, "Superseder._check", "self._check_no_other(earlier)", ""),
    Mutant(
        "a listing shows no undo",
        modules.JOB_VIEW,
        "summary",
        "job.correction.undone.job_id if job.correction.undone else None",
        "None",
    ),
)

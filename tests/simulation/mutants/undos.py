"""Faults of undos."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

UNDONE: Final = (
    Mutant(
        "a repeated undo is refused",
        modules.UNDO,
        "return Accepted(job=undo, replayed=True)",
        "raise UndoRefusedError('again')",
    ),
    Mutant(
        "the success forgets its undo",
        modules.SETTLE_REQUESTS,
        "        undo_writes.undo_kept(settlement),\n",
        "        *([undo_writes.undo_kept(settlement)] if job.attempt < 2 else []),\n",
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
        "return undo.state is State.SUCCEEDED",
        "return True",
    ),
    Mutant(
        "a correction does not wait for a run",
        modules.SUPERSEDING,
        "begun = earlier.state not in AT_REST | WITHOUT_EFFECT",
        "begun = earlier.state is State.SUCCEEDED",
    ),
    Mutant(
        "an undo can be undone",
        modules.UNDO,
        "if done.undoes is not None:",
        "if done.undoes == 'none':",
    ),
    Mutant(
        "an undo that was cancelled counts as one",
        modules.UNDO,
        "if undo is not None and undo.state not in WITHOUT_EFFECT:",
        "if undo is not None:",
    ),
    Mutant(
        "a correction forgets the undo that it waits for",
        modules.SUPERSEDING,
        "after_undo=undo_id(earlier) if needs_undo else None",
        "after_undo=None",
    ),
    Mutant(
        "two jobs supersede one",
        modules.SUPERSEDING,
        "        self._check_no_other(earlier)\n",
        "",
    ),
    Mutant(
        "a listing shows no undo",
        modules.JOB_VIEW,
        '"undone_by": job.undone.job_id if job.undone else None',
        '"undone_by": None',
    ),
)

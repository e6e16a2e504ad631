"""Supersede: a late correction runs after the effect of the earlier job has been undone, or has not come about.

Its submission cancels an earlier job that has not ended. The worker that claims it undoes one that has succeeded.
"""

from contextlib import suppress
from datetime import timedelta
from typing import Final

from tidemill.application.corrections.undo import undo_id, undo_job
from tidemill.application.ports import Clock, SupersedeStore, WriterPayloads
from tidemill.application.submission.job_ids import keyed_job_id, submitted_job_id
from tidemill.application.submission.new_jobs import Accepted, replay
from tidemill.application.submission.unnamed_payloads import delete_unnamed, deleted_on_conflict
from tidemill.application.submission.validation import may_be_id
from tidemill.domain.batches.batches import is_batch
from tidemill.domain.corrections.undo import Undo, Undone
from tidemill.domain.errors import SupersedeRefusedError, UndoFailedError, WriteRefusedError
from tidemill.domain.events.events import is_event
from tidemill.domain.flows.flows import is_blocked, is_flow
from tidemill.domain.job import OWNER, Job
from tidemill.domain.records import replace
from tidemill.domain.states import AT_REST, FINAL_STATES, WITHOUT_EFFECT, State

#: How often one claim looks at an earlier job that others write at the same time.
_MOST_LOOKS: Final = 5
#: The longest pause between two looks at an undo that is under way.
LONGEST_HOLD: Final = timedelta(minutes=5)


class Superseder:
    """For the functions that accept jobs, and for the worker."""

    def __init__(self, *, store: SupersedeStore, payloads: WriterPayloads, clock: Clock) -> None:
        self._store = store
        self._payloads = payloads
        self._clock = clock

    def accept(self, job: Job) -> Accepted:
        """Write a prepared job whose `supersedes` is a key or an id, and mark the earlier job, or neither.

        Raises `SupersedeRefusedError`, and as `Submit.insert`.
        """
        stored: Job | None = None
        while (known := self._find(job.tenant, job.id)) is None:
            delete_unnamed(stored, None, self._payloads)
            earlier = self._earlier(job)
            self._check(earlier, job)
            stored = self._payloads.put_away(self._superseding(job, earlier))
            try:
                with deleted_on_conflict(stored, self._payloads):
                    known = self._store.supersede(earlier, stored)
            except WriteRefusedError:
                continue  # the earlier job has changed since it was read, so another answer may be right
            if known.lifetime.over(self._clock()):
                continue  # it is that of an earlier call, and may be submitted anew
            if (known.trace, known.created_at) == (job.trace, job.created_at):
                return Accepted(job=known, replayed=False)
            break
        delete_unnamed(stored, known, self._payloads)
        return replay(known, job.body_hash)

    def ready(self, job: Job) -> bool:
        """Whether this claimed job, which supersedes another, may run. Else it must look again later.

        An earlier job that ran at the submission is cancelled if it has not succeeded, and undone if it has. Raises
        `UndoFailedError` when that will not come about by itself, and `StoreUnavailableError`.
        """
        if job.correction.after_undo is None:
            return True
        for _ in range(_MOST_LOOKS):
            earlier = self._find(job.tenant, job.correction.supersedes or "")
            if earlier is None or earlier.correction.superseded_by != job.id:
                # It was deleted, or a new job has its key.
                return self._undone(job)
            with suppress(WriteRefusedError):  # it has changed since it was read
                return self._end_effect(earlier, job)
        return False

    def _end_effect(self, earlier: Job, job: Job) -> bool:
        """Whether the earlier job has no effect. Else do what brings that about."""
        if earlier.state not in FINAL_STATES:
            # The run goes on after the request, or an older version took the submission.
            reason = f"superseded by job {job.id}"
            earlier = self._store.cancel(earlier, now=self._clock(), by=OWNER, reason=reason)
            if earlier.state is not State.CANCELLED:
                return False
        # A success removes those of its own payload, and has an undo for what it did.
        if names := ", ".join(earlier.steps.with_effects):
            raise UndoFailedError(
                f"job {earlier.id}, which it supersedes, is {earlier.state} and recorded the steps {names}; undo "
                "what they did, discard this job, and submit it again with another key and without `supersedes`"
            )
        if earlier.state in WITHOUT_EFFECT:
            return True
        if earlier.correction.undone is not None and earlier.correction.undone.job_id == job.correction.after_undo:
            return self._undone(job)
        if earlier.correction.undo is None:
            raise UndoFailedError(f"job {earlier.id}, which it supersedes, recorded no undo")
        self._undo(earlier, earlier.correction.undo, by=job)
        return False

    def _earlier(self, job: Job) -> Job:
        name = job.correction.supersedes or ""
        found = self._find(job.tenant, submitted_job_id(job.tenant, name)) or self._find(
            job.tenant, keyed_job_id(job.tenant, name)
        )
        if found is None and may_be_id(name):
            found = self._find(job.tenant, name)
        if found is None:
            raise SupersedeRefusedError(f"you have no job with the key or id {name}, so nothing can be superseded")
        return found

    def _check(self, earlier: Job, job: Job) -> None:
        """Raises `SupersedeRefusedError`."""
        if job.id == earlier.id:
            raise SupersedeRefusedError("a job cannot supersede itself")
        if is_batch(earlier) or is_flow(earlier) or is_event(earlier):
            raise SupersedeRefusedError(
                f"job {earlier.id} is a {earlier.type}, whose jobs have the effects and would run on; supersede "
                "those, or cancel the whole and leave `supersedes` out"
            )
        if earlier.flow and is_blocked(earlier):
            raise SupersedeRefusedError(
                f"job {earlier.id} is a node of the flow {earlier.flow.id} that is blocked, and would start after a "
                "redrive; cancel the flow, and leave `supersedes` out"
            )
        self._check_no_other(earlier)
        if earlier.group.key is not None and earlier.group.key != job.group.key:
            raise SupersedeRefusedError(
                f"job {earlier.id} is of the group {earlier.group.key}; the job that supersedes it must be, too"
            )
        names = ", ".join(earlier.steps.with_effects)
        if earlier.steps.dropped:
            raise SupersedeRefusedError(
                f"job {earlier.id} recorded the steps {names}, some with a payload that a redrive "
                "replaced, which nothing undoes; undo what they did, cancel it if it is live, and leave `supersedes` "
                "out"
            )
        if names:
            raise SupersedeRefusedError(
                f"job {earlier.id} is {earlier.state} and recorded the steps {names}, which nothing undoes before its "
                "success; supersede it after that, or cancel it, undo what they did, and leave `supersedes` out"
            )
        if earlier.correction.undoes is not None:
            raise SupersedeRefusedError(
                f"job {earlier.id} undoes job {earlier.correction.undoes}, so it cannot be superseded"
            )
        if earlier.correction.supersedes is not None and earlier.state is not State.SUCCEEDED:
            raise SupersedeRefusedError(
                f"job {earlier.id} is {earlier.state}, and supersedes job {earlier.correction.supersedes} itself; "
                "cancel it, and supersede that one"
            )

    def _check_no_other(self, earlier: Job) -> None:
        if (other := earlier.correction.superseded_by) is None:
            return
        later = self._find(earlier.tenant, other)
        if later is not None and later.state not in WITHOUT_EFFECT:
            raise SupersedeRefusedError(f"job {other} supersedes job {earlier.id} already; supersede that one")
        # It undoes the effect before it runs, so it has not run if that effect is in place.
        if later is None and (earlier.correction.undone is not None or earlier.state in WITHOUT_EFFECT):
            raise SupersedeRefusedError(
                f"job {other} superseded job {earlier.id} and has been deleted, so nothing is known of its effect; "
                "leave `supersedes` out if it had none"
            )

    def _superseding(self, job: Job, earlier: Job) -> Job:
        """The job as it is stored. Raises `SupersedeRefusedError`.

        `after_undo` names the job that undoes the earlier one. Without it, that one has no effect for good: it is
        cancelled by the submission or was before, has expired, or is undone.
        """
        begun = earlier.state not in AT_REST | WITHOUT_EFFECT
        needs_undo = begun and not (earlier.state is State.SUCCEEDED and self._is_undone(earlier))
        return replace(
            job,
            correction=replace(
                job.correction, supersedes=earlier.id, after_undo=undo_id(earlier) if needs_undo else None
            ),
        )

    def _is_undone(self, earlier: Job) -> bool:
        """Whether a job that succeeded is undone. Raises `SupersedeRefusedError` if that is unknown or impossible."""
        if earlier.correction.undone is not None:
            undo = self._store.get(earlier.tenant, earlier.correction.undone.job_id)
            if undo is None:
                raise SupersedeRefusedError(
                    f"job {earlier.id} was undone by job {earlier.correction.undone.job_id}, which has been deleted, "
                    "so nothing is known of its success; leave `supersedes` out if it has succeeded"
                )
            if undo.state is State.SUCCEEDED:
                return True
            if undo.state not in WITHOUT_EFFECT:
                raise SupersedeRefusedError(
                    f"job {earlier.id} is undone by job {undo.id}, which is {undo.state}; submit again after its "
                    "success"
                )
        if earlier.correction.undo is None:
            raise SupersedeRefusedError(
                f"job {earlier.id} has succeeded and recorded no undo, so nothing is known that would undo it"
            )
        return False

    def _undone(self, job: Job) -> bool:
        """Whether the undo for which this job waits has succeeded. Raises `UndoFailedError` if it never will."""
        undo = self._store.get(job.tenant, job.correction.after_undo or "")
        if undo is None:
            raise UndoFailedError(
                f"job {job.correction.supersedes}, which it supersedes, or its undo has been deleted, so nothing is "
                "known of the effect; discard this job, and submit it without `supersedes` once it is undone"
            )
        if undo.state in WITHOUT_EFFECT:
            raise UndoFailedError(
                f"job {undo.id}, which undoes job {job.correction.supersedes}, is {undo.state}; discard this job, and "
                "submit it again with another key"
            )
        if undo.state is State.DEAD:
            raise UndoFailedError(
                f"job {undo.id}, which undoes job {job.correction.supersedes}, is dead; redrive that one, then this"
            )
        return undo.state is State.SUCCEEDED

    def _undo(self, earlier: Job, undo: Undo, *, by: Job) -> None:
        """In the turn of `by`, so in no group: at the end of the same group it would wait for that turn to end."""
        now = self._clock()
        job = self._payloads.put_away(undo_job(earlier, undo, now=now, group=None))
        entry = Undone(job_id=job.id, at=now, by=OWNER, reason=f"superseded by job {by.id}")
        try:
            with deleted_on_conflict(job, self._payloads):
                self._store.undo(earlier, job, entry)
        except WriteRefusedError:
            delete_unnamed(job, self._store.get(job.tenant, job.id), self._payloads)
            raise

    def _find(self, tenant: str, job_id: str) -> Job | None:
        job = self._store.get(tenant, job_id)
        return None if job is None or job.lifetime.over(self._clock()) else job

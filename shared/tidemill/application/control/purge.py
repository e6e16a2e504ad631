"""Purge: delete finished jobs before they expire, on an operator's request."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from tidemill.application.ports import Clock, PurgeStore
from tidemill.domain.errors import MalformedDocumentError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import FINAL_STATES


class Purger:
    """It may be repeated, and two callers may work at once."""

    def __init__(self, *, store: PurgeStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        #: Whether these jobs, by tenant and id, still need the documents of others.
        self._needing: dict[tuple[str, str], bool] = {}

    def without_needed(self, jobs: Iterable[Job], *, kept: Callable[[Job], object]) -> Iterator[Job]:
        """The jobs whose document nothing needs. `kept` is called with the others.

        Each flow and each batch is read once. A flow would start a node again whose document is gone, and a batch
        could not say what has become of a member. A unique job keeps others away. A correction and an undo need the
        job that they are for, and a correction also the undo of that job.
        """
        for job in jobs:
            try:
                needed = self._is_needed(job)
            except MalformedDocumentError:
                # A newer version has written what may need it.
                needed = True
            if needed:
                kept(job)
            else:
                yield job

    def _is_needed(self, job: Job) -> bool:
        if job.lifetime.unique_until is not None and job.lifetime.unique_until > self._clock():
            return True
        by = (
            job.flow and job.flow.id,
            job.batch,
            job.correction.superseded_by,
            job.correction.undone and job.correction.undone.job_id,
        )
        if any(self._needs_others(job.tenant, each) for each in by if each):
            return True
        return job.correction.undoes is not None and self._is_corrected(job.tenant, job.correction.undoes)

    def _is_corrected(self, tenant: str, undone_id: str) -> bool:
        """Whether a correction of this job needs to know that it is undone. It looks at the undo before each run.

        Perhaps, if nothing is left of the job.
        """
        undone = self._store.get(tenant, undone_id)
        return undone is None or bool(
            undone.correction.superseded_by and self._needs_others(tenant, undone.correction.superseded_by)
        )

    def _needs_others(self, tenant: str, job_id: str) -> bool:
        """Whether this flow, batch, correction or undo is live, or dead and so may be redriven."""
        name = (tenant, job_id)
        if name not in self._needing:
            found = self._store.get(tenant, job_id)
            ended = found is None or found.lifetime.over(self._clock())
            self._needing[name] = not (ended or (found and found.state in FINAL_STATES))
        return self._needing[name]

    def purge(self, job: Job) -> bool:
        """False when the job has changed since it was read: redriven, or redriven and ended again.

        It may be needed: see `without_needed`. Publish deletes its payload when the stream reports the deletion of the
        document.
        """
        try:
            self._store.forget(job)
        except WriteRefusedError:
            return False
        if job.group.key is not None:
            # The job may have been the dead job that blocked its group. Publish advances it too, if this call cannot,
            # as where the next job of the group is unreadable.
            with suppress(MalformedDocumentError):
                self._store.advance(job.tenant, job.group.key, now=self._clock())
        return True

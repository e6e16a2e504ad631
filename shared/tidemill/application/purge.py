"""Purge: delete finished jobs before they expire, on an operator's request."""

from contextlib import suppress

from tidemill.application.ports import Clock, PurgeStore
from tidemill.domain.errors import MalformedDocumentError, WriteRefusedError
from tidemill.domain.job import Job


class Purger:
    """It may be repeated, and two callers may work at once."""

    def __init__(self, *, store: PurgeStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def purge(self, job: Job) -> bool:
        """False when the job has changed since it was read: redriven, or redriven and ended again.

        Publish deletes its payload when the stream reports the deletion of the document.
        """
        try:
            self._store.forget(job)
        except WriteRefusedError:
            return False
        if job.group is not None:
            # The job may have been the dead job that blocked its group. Publish advances it too, if this call cannot,
            # as where the next job of the group is unreadable.
            with suppress(MalformedDocumentError):
                self._store.advance(job.tenant, job.group, now=self._clock())
        return True

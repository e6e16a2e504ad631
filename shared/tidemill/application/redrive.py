"""Redrive: requeue dead jobs with a fresh set of attempts."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from tidemill.application.dead_letter_sweep import Swept, sweep
from tidemill.application.ports import (
    Clock,
    DeadLetterQueue,
    NewToken,
    RedriveStore,
    Unreadable,
    ignore_unreadable,
)
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job

#: Gets a job that was not redriven, as it was read and as it is now; None if it is gone.
Refused = Callable[[Job, Job | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selects dead jobs by type and id. An empty field selects all."""

    types: Collection[str] = ()
    ids: Collection[str] = ()

    def __contains__(self, job: Job) -> bool:
        return (not self.types or job.type in self.types) and (not self.ids or job.id in self.ids)


class Redriver:
    """Each method may be repeated, and two callers may work at once: the job documents decide."""

    def __init__(self, *, store: RedriveStore, clock: Clock, new_token: NewToken) -> None:
        self._store = store
        self._clock = clock
        self._new_token = new_token

    def plan(self, selection: Selection, *, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        """The selected dead jobs, without the expired ones. Changes nothing."""
        now = self._clock()
        dead = self._store.dead(unreadable=unreadable)
        return (job for job in dead if job in selection and not job.expired(now))

    def redrive(self, job: Job, *, by: str, reason: str = "", refused: Refused = lambda _job, _current: None) -> bool:
        """False when the job has changed since it was read, for example by another redrive. Then calls `refused`."""
        try:
            self._store.redrive(job, token=self._new_token(), now=self._clock(), by=by, reason=reason)
        except WriteRefusedError as error:
            refused(job, error.current)
            return False
        return True

    def sweep(self, dead_letter_queue: DeadLetterQueue) -> Swept:
        """Delete the dead-letter messages of the redriven jobs, as `sweep` of `dead_letter_sweep` does."""
        return sweep(dead_letter_queue, store=self._store, clock=self._clock)

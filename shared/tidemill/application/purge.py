"""Purge: delete finished jobs before they expire, on an operator's request."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from tidemill.application.ports import Clock, PurgeStore, Unreadable, ignore_unreadable
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import TERMINAL, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """Selects finished jobs. An empty field selects all; `ended_before` None means up to now."""

    states: Collection[State] = ()
    types: Collection[str] = ()
    ended_before: datetime | None = None

    def __post_init__(self) -> None:
        if live := sorted(set(self.states) - TERMINAL):
            raise ValueError(f"cannot purge jobs that are {', '.join(live)}: only jobs that have ended can be purged")

    def __contains__(self, job: Job) -> bool:
        return (
            job.state.terminal
            and (not self.states or job.state in self.states)
            and (not self.types or job.type in self.types)
            and (self.ended_before is None or (job.finished_at is not None and job.finished_at < self.ended_before))
        )


class Purger:
    """Each method may be repeated, and two callers may work at once."""

    def __init__(self, *, store: PurgeStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def plan(self, purge: Purge, *, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        """The selected jobs, by a scan of the whole table. Changes nothing."""
        return (job for job in self._store.ended(before=self._clock(), unreadable=unreadable) if job in purge)

    def purge(self, job: Job) -> bool:
        """False when the job has changed since it was read: redriven, or redriven and ended again.

        Publish deletes its payload when the stream reports the deletion of the document.
        """
        try:
            self._store.forget(job)
        except WriteRefusedError:
            return False
        if job.group is not None:
            # The job may have been the dead job that blocked its group.
            self._store.advance(job.tenant, job.group, now=self._clock())
        return True

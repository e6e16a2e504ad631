"""Watches the foreground, the start of urgent jobs, and governs the level of strain by it."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Protocol

from tidemill.application.configuration import CACHED_FOR, CurrentConfiguration
from tidemill.application.ports import Clock
from tidemill.domain.admission.governor import WINDOW, Governed, Starts, in_force, minute_begins, next_level
from tidemill.domain.admission.strain import NO_STRAIN
from tidemill.domain.breakers.latest_tenants import LatestTenants
from tidemill.domain.job import Job
from tidemill.domain.spans import is_within
from tidemill.domain.time_constants import EPOCH

#: The least time between two reports of a process. It doubles up to the longest while the store does not take them.
REPORTS_AFTER: Final = timedelta(seconds=1)
LONGEST_BETWEEN_REPORTS: Final = timedelta(seconds=16)

#: Gets each change of the level: before and after.
Changed = Callable[[Governed, Governed], None]


class GovernorStore(Protocol):
    """Where the level is. All methods raise `StoreUnavailableError`."""

    def read(self) -> Governed:
        """It may be a second old."""

    def add(self, starts: Starts, *, now: datetime) -> Governed:
        """Count the starts in the present window, or begin one with them."""

    def move(self, seen: Governed, level: int, *, now: datetime) -> Governed | None:
        """Set the level if nothing has changed it since `seen`, and begin a minute. None if something has."""

    def begin_minute(self, seen: Governed, *, now: datetime) -> None:
        """Count the starts of another minute, unless something has changed the level or begun one since `seen`."""


class Governor:
    """Governs the strain for one process; its threads share it.

    Nothing is read or written while an operator has it switched off.
    """

    def __init__(
        self, store: GovernorStore, *, clock: Clock, configuration: CurrentConfiguration, changed: Changed
    ) -> None:
        self._store = store
        self._clock = clock
        self._configuration = configuration
        self._changed = changed
        self._reading = threading.Lock()
        self._known = Governed()
        self._read_at = EPOCH

    @property
    def off(self) -> bool:
        return self._configuration().governor_is_off(self._clock())

    def level(self) -> int:
        """At most `CACHED_FOR` old; older only if reads fail."""
        if self.off:
            return NO_STRAIN
        with self._reading:
            now = self._clock()
            if not is_within(CACHED_FOR, since=self._read_at, now=now):
                try:
                    self._known, self._read_at = self._store.read(), now
                except Exception:  # noqa: BLE001 - what governs the strain must not stop a job
                    # The last known level holds. A read that hangs may take longer than the level lasts.
                    self._read_at = self._clock()
            return in_force(self._known, now=now)

    def report(self, starts: Starts) -> None:
        """Count the starts, and raise the level if that is due. Raises `StoreUnavailableError`."""
        self._decide(self._store.add(starts, now=self._clock()))

    def settle(self) -> int:
        """Lower the level if that is due, also while no urgent job starts, and return it.

        Raises `StoreUnavailableError`.
        """
        return in_force(self._decide(self._store.read()), now=self._clock())

    def _decide(self, seen: Governed) -> Governed:
        now = self._clock()
        level = next_level(seen, now=now)
        after = self._store.move(seen, level, now=now) if level != seen.level else None
        if after:
            self._changed(seen, after)
        elif minute_begins(seen, now=now):
            self._store.begin_minute(seen, now=now)
        with self._reading:
            self._known, self._read_at = after or seen, now
        return after or seen


def strain_level(configuration: CurrentConfiguration, governor: Governor | None, clock: Clock) -> int:
    """The level in force: the higher one of the operator's and the governor's."""
    return max(configuration().strain_level(clock()), governor.level() if governor else NO_STRAIN)


class Foreground:
    """Counts in this process how often callers wait too long: for the start of an urgent job, or as the app says."""

    def __init__(self, governor: Governor, *, target: timedelta, clock: Clock) -> None:
        self._governor = governor
        self._target = target
        self._clock = clock
        self._lock = threading.Lock()
        self._starts = Starts()
        self._counted_from = EPOCH
        self._reports_at = EPOCH
        self._pause = REPORTS_AFTER
        #: The tenants that started late here, and in time.
        self._late, self._in_time = LatestTenants(), LatestTenants()

    def claimed(self, job: Job) -> None:
        """Only a first run that waited for nothing but its turn says how long callers wait. Never raises."""
        if job.attempt == 1 and not job.wait and job.lease.ready_at and job.lease.claimed_at:
            self._started(job.lease.claimed_at - job.lease.ready_at, job.tenant)

    def waited(self, time: timedelta) -> None:
        """A caller waited for so long. Never raises."""
        self._started(time, None)

    def _started(self, time: timedelta, tenant: str | None) -> None:
        if self._governor.off:
            return
        if starts := self._due(tenant, late=time > self._target):
            try:
                self._governor.report(starts)
            except Exception:  # noqa: BLE001 - what governs the strain must not stop a job
                self._pause = min(self._pause * 2, LONGEST_BETWEEN_REPORTS)
                self._reports_at = self._clock() + self._pause
            else:
                self._pause = REPORTS_AFTER

    def _due(self, tenant: str | None, *, late: bool) -> Starts | None:
        """The starts to report now, with this one. A process without late starts reports only under strain."""
        strained = self._governor.level() > NO_STRAIN
        with self._lock:
            now = self._clock()
            if tenant is not None:
                (self._late if late else self._in_time).note(tenant, now)
                late = late and not self._alone(tenant, now)
            if not is_within(WINDOW, since=self._counted_from, now=now):
                self._starts, self._counted_from = Starts(), now
            self._starts += Starts(late=int(late), total=1)
            waits = timedelta(0) < self._reports_at - now <= LONGEST_BETWEEN_REPORTS
            if waits or not (self._starts.late or strained):
                return None
            due, self._starts = self._starts, Starts()
            self._reports_at = now + self._pause
            return due

    def _alone(self, tenant: str, now: datetime) -> bool:
        """Whether only this tenant starts late, while another one starts in time: it waits behind its own jobs."""
        since = now - WINDOW
        return self._in_time.others(tenant, since=since) and not self._late.others(tenant, since=since)

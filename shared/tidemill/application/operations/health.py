"""Whether jobs are accepted and get through, for `GET /health`. Kept for some seconds, so a prober costs little."""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from tidemill.application.ports import Clock
from tidemill.domain.errors import TidemillError

#: A lane has a canary each minute, and the alarm on late canaries allows four of them to be late.
LATE_CANARY: Final = timedelta(minutes=5)
#: A canary that ends later marks nothing. One that was retried may end after newer ones, and must not make their lane
#: look late before the next one ends.
LATEST_MARK: Final = LATE_CANARY - timedelta(minutes=2)
KEPT: Final = timedelta(seconds=5)


class Check(Struct, frozen=True, kw_only=True):
    """One thing that was checked."""

    name: str
    ok: bool
    #: How long ago the canary that it saw was submitted. None if the check sees the present, or saw nothing.
    age: timedelta | None = None
    #: Whether the service is unhealthy without it.
    required: bool = True


class Health(Struct, frozen=True, kw_only=True):
    checked_at: datetime
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks if check.required)


class HealthChecks:
    """`canaries` reads when the last canary that got through was submitted, by lane, from the jobs table.

    It raises `StoreUnavailableError` or `MissingResourceError`. `lanes` are those with canaries.
    """

    def __init__(
        self,
        *,
        canaries: Callable[[], Mapping[str, datetime]],
        lanes: Collection[str],
        broken_job_files: int,
        clock: Clock,
    ) -> None:
        self._canaries = canaries
        self._lanes = lanes
        self._broken_job_files = broken_job_files
        self._clock = clock
        self._last: Health | None = None

    def read(self) -> Health:
        now = self._clock()
        if self._last is None or now - self._last.checked_at >= KEPT:
            self._last = Health(checked_at=now, checks=tuple(self._checks(now)))
        return self._last

    def _checks(self, now: datetime) -> Iterator[Check]:
        # A broken file stops its own types alone, and has an alarm.
        yield Check(name="job_files", ok=not self._broken_job_files, required=False)
        try:
            submitted = self._canaries()
        except TidemillError:
            yield Check(name="table", ok=False)
            return
        yield Check(name="table", ok=True)
        for lane in self._lanes:
            age = now - submitted[lane] if lane in submitted else None
            yield Check(name=f"lane_{lane}", ok=age is not None and age < LATE_CANARY, age=age)

"""A service outside AWS that handlers call: it has a capacity, a latency, and times in which it is down or slow.

Up to its capacity, a call takes the latency. Beyond it, calls share the capacity, so each takes longer in proportion.
A caller waits no longer than its timeout. With `refuses_above`, the service refuses calls beyond that number at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.task_scheduler import Scheduler

#: Share of the seeds in which it is down for a while, and in which it is slow for a while.
_DOWN: Final = 0.6
_SLOW: Final = 0.3
_BEGINS_WITHIN_MS: Final = (0, 2_000, 60_000)
_LASTS_MS: Final = (5_000, 60_000, 600_000)
_MOST_TIMES_SLOWER: Final = 20


class DownstreamStatusError(Exception):
    """The service answered with the HTTP status of an error."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"the downstream answered {status_code}")
        self.status_code = status_code


@dataclass(slots=True)
class DownstreamCall:
    """One call, as the service saw it. Times in milliseconds."""

    by: str
    began_ms: int
    #: None while it lasts, and for ever if its caller was killed.
    ended_ms: int | None = None
    succeeded: bool = False


@dataclass(slots=True)
class Trouble:
    """From one time until another, in milliseconds, calls fail, or take several times as long."""

    from_ms: int
    until_ms: int
    #: None: it is down, and each call fails.
    slower: int | None = None


@dataclass(slots=True)
class Downstream:
    """One service."""

    scheduler: Scheduler
    faults: Faults
    capacity: int = 4
    latency_ms: int = 100
    timeout_ms: int = 3_000
    refuses_above: int | None = None
    #: Whether it fails a call of this process for this tenant, while it serves the others.
    fails_for: Callable[[str, str], bool] = lambda _process, _tenant: False
    troubles: list[Trouble] = field(default_factory=list)
    calls: list[DownstreamCall] = field(default_factory=list)

    def plan(self, random: Random, until_ms: int) -> None:
        """Draw its troubles. All are over when the other faults stop, at `until_ms`."""
        for share, slower in ((_DOWN, None), (_SLOW, random.randint(2, _MOST_TIMES_SLOWER))):
            if random.random() < share:
                now_ms = self.scheduler.now_ms
                from_ms = now_ms + random.randint(0, random.choice(_BEGINS_WITHIN_MS))
                lasts_ms = random.randint(1_000, random.choice(_LASTS_MS))
                self.troubles.append(Trouble(from_ms, min(from_ms + lasts_ms, until_ms), slower))

    def call(self, tenant: str = "") -> None:
        """Call it from a handler. Raises `DownstreamStatusError`, and `TimeoutError` after the timeout."""
        task = self.scheduler.current
        call = DownstreamCall(task.process.name if task else "", self.scheduler.now_ms)
        self.calls.append(call)
        try:
            self._serve(fails=self.fails_for(call.by, tenant))
            call.succeeded = True
        finally:
            call.ended_ms = self.scheduler.now_ms

    def in_flight(self) -> int:
        """Calls under way. A killed caller counts until its timeout."""
        now_ms = self.scheduler.now_ms
        return sum(call.ended_ms is None and call.began_ms + self.timeout_ms > now_ms for call in self.calls)

    def _serve(self, *, fails: bool) -> None:
        if fails or self._down():
            self.scheduler.sleep(self.latency_ms)
            raise DownstreamStatusError(503)
        in_flight = self.in_flight()
        if self.refuses_above is not None and in_flight > self.refuses_above:
            raise DownstreamStatusError(429)
        load = max(in_flight / self.capacity, 1.0)
        takes_ms = round(self.latency_ms * load * self._slower())
        self.scheduler.sleep(min(takes_ms, self.timeout_ms))
        if takes_ms > self.timeout_ms:
            raise TimeoutError(f"the downstream did not answer within {self.timeout_ms} ms")
        if self._down():
            raise DownstreamStatusError(503)

    def _down(self) -> bool:
        return any(trouble.slower is None for trouble in self._present(Fault.DOWNSTREAM_DOWN))

    def _slower(self) -> int:
        return max((trouble.slower or 1 for trouble in self._present(Fault.DOWNSTREAM_SLOW)), default=1)

    def _present(self, counted: Fault) -> list[Trouble]:
        """The troubles of this moment, of the kind that is counted."""
        down, now_ms = counted is Fault.DOWNSTREAM_DOWN, self.scheduler.now_ms
        present = [
            trouble
            for trouble in self.troubles
            if (trouble.slower is None) is down and trouble.from_ms <= now_ms < trouble.until_ms
        ]
        if present:
            self.faults.count(counted)
        return present

"""A queueing model of workers, a lane and one downstream. No AWS; the limit and the backoff are the engine's own code.

The downstream shares its capacity between the calls that it has at once. Above its capacity each further call costs
some of it, for switching, memory and locks. A caller that has waited too long gives its call up, and the work of that
call is lost. So its goodput falls under overload. https://sre.google/sre-book/addressing-cascading-failures/
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Final, NamedTuple

from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive, RunSample, Trouble, change_after, changed

BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)
#: The calls that the downstream serves at once at full speed, and the mean time of one.
SERVERS: Final = 20
SERVICE_SECONDS: Final = 0.4
CAPACITY: Final = SERVERS / SERVICE_SECONDS
#: The share of its capacity that each call above `SERVERS` costs, in units of `SERVERS`.
OVERHEAD: Final = 0.05
TIMEOUT_SECONDS: Final = 3.0
#: The runs that the workers of the lane can have at once.
WORKERS: Final = 150
BOUNDS: Final = Adaptive(floor=1, ceiling=100, target_seconds=0.9)
RETRY: Final = RetryPolicy(max_attempts=25, backoff_seconds=2, backoff_cap_seconds=60)


@dataclass(slots=True)
class _Job:
    attempt: int = 0


@dataclass(slots=True)
class Call:
    #: None for a call of another kind.
    job: _Job | None
    began: float
    #: What the run found when it entered the limit.
    entered: Adapted
    taken: int
    over: bool = False


class Event(NamedTuple):
    at: float
    happen: Callable[[], None]


@dataclass
class Model:
    """One lane whose jobs all call one downstream."""

    #: Jobs a second that are submitted, also while none succeeds: an open loop.
    offered: float
    adaptive: bool
    seed: int = 1
    #: Jobs that wait at the beginning, all of them due at once.
    backlog: int = 0
    now: float = 0.0
    succeeded: int = 0
    dead: int = 0
    _waiting: deque[_Job] = field(default_factory=deque)
    _calls: int = 0
    #: Workers that run a job.
    _busy: int = 0
    _adapted: Adapted = field(default_factory=BOUNDS.begin)
    #: The work that each call has got so far since the beginning, in seconds of one server.
    _work: float = 0.0
    #: By the work at which they are done, and by the time at which their callers give up.
    _ends: list[tuple[float, int, Call]] = field(default_factory=list)
    _timeouts: list[tuple[float, int, Call]] = field(default_factory=list)
    _retries: list[tuple[float, int, _Job]] = field(default_factory=list)
    _order: "count[int]" = field(default_factory=count)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311 - a model
        self._waiting.extend(_Job() for _ in range(self.backlog))
        self._next_arrival = self._random.expovariate(self.offered)

    def run_until(self, end: float) -> None:
        while True:
            self._start_runs()
            at, happen = min(self._events(end), key=lambda event: event.at)
            if at >= end:
                self._pass(end - self.now)
                return
            self._pass(at - self.now)
            happen()

    def _events(self, end: float) -> list[Event]:
        """The next one of each kind."""
        return [
            Event(self._next_arrival, self._arrive),
            Event(self._retries[0][0] if self._retries else end, self._retry),
            Event(self._timeouts[0][0] if self._timeouts else end, self._time_out),
            Event(self._end_of_first(end), self._finish),
        ]

    @property
    def live(self) -> int:
        """The jobs that have not ended."""
        return len(self._waiting) + len(self._retries) + self._busy

    def _pass(self, seconds: float) -> None:
        self.now += seconds
        self._work += seconds * self._speed

    @property
    def _speed(self) -> float:
        """The share of a server that each call has."""
        over = max(self._calls / SERVERS - 1, 0.0)
        return 1 / ((1 + over) * (1 + OVERHEAD * over))

    def _end_of_first(self, end: float) -> float:
        while self._ends and self._ends[0][2].over:
            heapq.heappop(self._ends)
        return self.now + max(self._ends[0][0] - self._work, 0.0) / self._speed if self._ends else end

    def _start_runs(self) -> None:
        while self._waiting and self._busy < self._slots:
            job = self._waiting.popleft()
            job.attempt += 1
            self._busy += 1
            self._call(job)

    def _call(self, job: _Job | None) -> None:
        self._calls += 1
        call = Call(job, self.now, self._adapted, self._busy)
        work = SERVICE_SECONDS * self._random.uniform(0.5, 1.5)
        heapq.heappush(self._ends, (self._work + work, next(self._order), call))
        heapq.heappush(self._timeouts, (self.now + TIMEOUT_SECONDS, next(self._order), call))

    @property
    def _slots(self) -> int:
        return min(BOUNDS.slots(self._adapted), WORKERS) if self.adaptive else WORKERS

    def _arrive(self) -> None:
        self._waiting.append(_Job())
        self._next_arrival += self._random.expovariate(self.offered)

    def _retry(self) -> None:
        self._waiting.append(heapq.heappop(self._retries)[2])

    def _finish(self) -> None:
        call = heapq.heappop(self._ends)[2]
        self.succeeded += call.job is not None
        self._leave(call, None)

    def _time_out(self) -> None:
        call = heapq.heappop(self._timeouts)[2]
        if call.over:
            return
        self._leave(call, Trouble.TIMEOUT)
        if call.job is None:
            return
        if call.job.attempt >= RETRY.max_attempts:
            self.dead += 1
            return
        due = self.now + RETRY.delay_seconds(call.job.attempt, self._random.random())
        heapq.heappush(self._retries, (due, next(self._order), call.job))

    def _leave(self, call: Call, trouble: Trouble | None) -> None:
        call.over = True
        self._calls -= 1
        self._left(call, in_time=trouble is None)
        if call.job is None:
            return
        self._busy -= 1
        sample = RunSample(entered=call.entered, taken=call.taken, seconds=self.now - call.began, trouble=trouble)
        change = change_after(BOUNDS, self._adapted, sample, now=BEGINNING + timedelta(seconds=self.now))
        self._adapted = changed(self._adapted, change)

    def _left(self, call: Call, *, in_time: bool) -> None:
        """A call has ended."""

"""The queueing model with a foreground: callers who use the same downstream as the jobs, with and without a governor.

The governor, its target and the rests of the workers are the engine's own code.
"""

import heapq
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from demo.figures.strain_model import BEGINNING, CAPACITY, Call, Event, Model
from tidemill.application.admission.foreground import Foreground, Governor
from tidemill.application.configuration import nothing_set
from tidemill.domain.admission.governor import Governed, Starts, changed, window_is_over
from tidemill.domain.admission.strain import slowdown
from tidemill.domain.records import replace
from tidemill.names import Lane

#: Calls a second of callers, who do not wait for each other and do not try again.
FOREGROUND: Final = 0.3 * CAPACITY
#: A caller is content with an answer within this time.
TARGET: Final = timedelta(seconds=1)
_WAKE_EVERY_SECONDS: Final = 60.0


@dataclass
class _Item:
    """`GovernorStore` in memory."""

    governed: Governed = field(default_factory=Governed)

    def read(self) -> Governed:
        return self.governed

    def add(self, starts: Starts, *, now: datetime) -> Governed:
        seen = self.governed
        if window_is_over(seen, now=now):
            seen = replace(seen, starts=Starts(), window_from=now)
        self.governed = replace(seen, starts=seen.starts + starts, minute=seen.minute + starts)
        return self.governed

    def move(self, seen: Governed, level: int, *, now: datetime) -> Governed:
        self.governed = changed(seen, level, now=now)
        return self.governed

    def begin_minute(self, seen: Governed, *, now: datetime) -> None:
        self.governed = replace(seen, minute=Starts(), minute_from=now)


@dataclass(kw_only=True)
class ForegroundModel(Model):
    """The jobs are those of the lane `bulk`."""

    governed: bool
    #: Calls of the foreground that have ended, and those that were answered within the target.
    asked: int = 0
    answered: int = 0
    #: The changes of the level, each with its time in seconds.
    changes: list[tuple[float, int]] = field(default_factory=list)
    #: The ends of the rests.
    _rests: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._governor = Governor(_Item(), clock=self._clock, configuration=nothing_set, changed=self._changed)
        self._foreground = Foreground(self._governor, target=TARGET, clock=self._clock)
        self._next_ask = self._random.expovariate(FOREGROUND)
        self._next_wake = _WAKE_EVERY_SECONDS

    def _events(self, end: float) -> list[Event]:
        return [
            *super()._events(end),
            Event(self._next_ask, self._ask),
            Event(self._next_wake, self._wake),
            Event(self._rests[0] if self._rests else end, self._work_again),
        ]

    def _ask(self) -> None:
        self._next_ask += self._random.expovariate(FOREGROUND)
        self._call(None)

    def _wake(self) -> None:
        self._next_wake += _WAKE_EVERY_SECONDS
        if self.governed:
            self._governor.settle()

    def _work_again(self) -> None:
        heapq.heappop(self._rests)
        self._busy -= 1

    def _left(self, call: Call, *, in_time: bool) -> None:
        seconds = self.now - call.began
        if call.job is None:
            self.asked += 1
            self.answered += in_time and seconds <= TARGET.total_seconds()
            if self.governed:
                self._foreground.waited(timedelta(seconds=seconds))
        elif self.governed and (times := slowdown(Lane.BULK, level=self._governor.level())) > 1:
            self._busy += 1
            heapq.heappush(self._rests, self.now + (times - 1) * seconds)

    def _clock(self) -> datetime:
        return BEGINNING + timedelta(seconds=self.now)

    def _changed(self, _before: Governed, after: Governed) -> None:
        self.changes.append((self.now, after.level))

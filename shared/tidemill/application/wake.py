"""Wake: put scheduled jobs on their lanes shortly before their time comes. The clock calls it each minute."""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

from tidemill.application.ports import Clock, WakeStore
from tidemill.domain.errors import StoreUnavailableError, TidemillError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.names import WAKE_INTERVAL_SECONDS, WAKE_WINDOW_SECONDS, Lane

#: The most that are woken in a second, and so 24,000 in an interval: a clock that was down catches up by that, and no
#: faster. Each takes an entry out of the index. A partition takes 1,000 writes a second, and an index that is throttled
#: throttles its table; spread over the shards, this is a tenth of that.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
MOST_PER_SECOND: Final = 400
_AT_ONCE: Final = 8
#: The time of an invocation that is kept back to finish the work in progress and to report.
WAKE_RESERVE: Final = timedelta(seconds=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    """What one call came to."""

    #: How many jobs, by lane.
    jobs: Mapping[Lane, int]
    #: How long before its time the latest of them was on its lane; below zero if it was too late.
    ahead: timedelta | None = None
    #: Whether all were woken whose time comes within the window. What is left, the next call takes first.
    finished: bool = True
    #: Tenant, id and what is wrong.
    unreadable: tuple[tuple[str, str, TidemillError], ...] = ()


class _Try(Enum):
    WOKEN = auto()
    #: It was cancelled or claimed, or another clock was faster.
    REFUSED = auto()
    #: The store did not answer, or there was no time.
    LEFT = auto()


class Waker:
    """The use case. Two at once are harmless: the documents decide."""

    def __init__(self, *, store: WakeStore, clock: Clock, pause: Callable[[float], None]) -> None:
        self._store = store
        self._clock = clock
        self._pause = pause

    def wake(self, *, time_left: timedelta) -> Woken:
        """The earliest first. Raises `StoreUnavailableError` when they cannot even be read."""
        now = self._clock()
        until = now + min(time_left - WAKE_RESERVE, timedelta(seconds=WAKE_INTERVAL_SECONDS))
        unreadable: list[tuple[str, str, TidemillError]] = []
        scheduled = self._store.scheduled(
            before=now + timedelta(seconds=WAKE_WINDOW_SECONDS), unreadable=lambda *what: unreadable.append(what)
        )
        woken: Counter[Lane] = Counter()
        ahead: timedelta | None = None
        finished = True
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            while batch := list(itertools.islice(scheduled, MOST_PER_SECOND)):
                began = self._clock()
                tries = list(pool.map(lambda job: self._try(job, until), batch))
                done = [job for job, tried in zip(batch, tries, strict=True) if tried is _Try.WOKEN]
                woken.update(job.lane for job in done)
                # The earliest come first, so the first of all is the one that was the latest.
                ahead = next((job.due - began for job in done if job.due and ahead is None), ahead)
                if _Try.LEFT in tries:
                    finished = False
                    break
                if len(batch) == MOST_PER_SECOND:
                    self._pause(max(1.0 - (self._clock() - began).total_seconds(), 0.0))
        return Woken(jobs=woken, ahead=ahead, finished=finished, unreadable=tuple(unreadable))

    def _try(self, job: Job, until: datetime) -> _Try:
        if self._clock() >= until:
            return _Try.LEFT
        try:
            self._store.wake(job)
        except WriteRefusedError:
            return _Try.REFUSED
        except StoreUnavailableError:
            return _Try.LEFT
        return _Try.WOKEN

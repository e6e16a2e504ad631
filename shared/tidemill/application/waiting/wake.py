"""Wake: queue scheduled jobs shortly before they are due, and jobs that wait alone before the end of their wait.

The scheduler calls it each minute, several times at once. Each call does a part of the work.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from tidemill.application.ports import WHOLE, Clock, Part, WakeStore
from tidemill.domain.errors import (
    MalformedDocumentError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.names import WAKE_INTERVAL_SECONDS, WAKE_WINDOW_SECONDS, Lane

#: The most jobs that a call queues in a second, and so 24,000 in an interval. Each wake removes an entry of the index.
#: A partition accepts 1,000 writes a second, and a throttled index throttles its table. A part has at least one of the
#: partitions that writes use, so the larger half of that remains for submissions.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
MOST_PER_SECOND: Final = 400
#: The connections of the client.
AT_ONCE: Final = 16
#: How long one call begins to do owed work. Scheduled jobs are queued minutes ahead, so they do not start late.
OWED_TIME: Final = timedelta(seconds=10)
#: How long one call begins to release parked jobs. Before the scheduled jobs, because many of those take all the time.
RELEASE_TIME: Final = timedelta(seconds=25)
#: How long one call has at least for scheduled jobs.
SCHEDULED_TIME: Final = timedelta(seconds=10)
#: The time of an invocation that is kept back to finish the work in progress and to report.
WAKE_RESERVE: Final = timedelta(seconds=3)
#: The shortest invocation that has time for each of them.
LEAST_WAKE_TIME: Final = OWED_TIME + RELEASE_TIME + SCHEDULED_TIME + WAKE_RESERVE


class Woken(Struct, frozen=True, kw_only=True):
    """The result of one call."""

    #: The number of jobs by lane.
    jobs: Mapping[Lane, int]
    #: The smallest lead of a queued job before its due time; negative if the job was late.
    ahead: timedelta | None = None
    #: Whether all jobs of the part due within the window were woken. The next call starts with the rest.
    finished: bool = True
    #: Tenant, id and error.
    unreadable: tuple[tuple[str, str, TidemillError], ...] = ()


class _Result(Enum):
    WOKEN = auto()
    #: The job was cancelled or claimed, or another wake was faster.
    REFUSED = auto()
    #: The store did not respond, or a transaction of another job held the document.
    FAILED = auto()
    #: No time was left.
    LEFT = auto()


class Waker:
    """Two concurrent calls are safe: the job documents decide."""

    def __init__(self, *, store: WakeStore, clock: Clock, pause: Callable[[float], None]) -> None:
        self._store = store
        self._clock = clock
        self._pause = pause

    def wake(self, *, time_left: timedelta, part: Part = WHOLE) -> Woken:
        """Wake the earliest jobs of the part first. Raises `StoreUnavailableError` when the index cannot be read.

        The parts go round with each interval. So if one of the parallel calls is missing, the next interval does its
        work, long before the jobs are due.
        """
        now = self._clock()
        until = now + min(time_left - WAKE_RESERVE, timedelta(seconds=WAKE_INTERVAL_SECONDS))
        unreadable: list[tuple[str, str, TidemillError]] = []
        scheduled = self._store.scheduled(
            before=now + timedelta(seconds=WAKE_WINDOW_SECONDS),
            part=part.at(now),
            unreadable=lambda *details: unreadable.append(details),
        )
        woken: Counter[Lane] = Counter()
        ahead: timedelta | None = None
        finished = True
        began = now
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while batch := list(itertools.islice(scheduled, MOST_PER_SECOND)):
                results = list(pool.map(lambda job: self._wake(job, until, unreadable), batch))
                done = [job for job, result in zip(batch, results, strict=True) if result is _Result.WOKEN]
                woken.update(job.lane for job in done)
                # Jobs come in order of due time, so the first job has the smallest lead.
                ahead = next((job.due - began for job in done if job.due and ahead is None), ahead)
                finished = finished and not {_Result.FAILED, _Result.LEFT} & set(results)
                # One job that is throttled does not stop the others. An outage of the store does.
                if _Result.LEFT in results or set(results) == {_Result.FAILED}:
                    break
                if len(batch) == MOST_PER_SECOND:
                    # The next batch is read within its second, so reading does not slow the pace.
                    self._pause(max(1.0 - (self._clock() - began).total_seconds(), 0.0))
                    began = self._clock()
        return Woken(jobs=woken, ahead=ahead, finished=finished, unreadable=tuple(unreadable))

    def _wake(self, job: Job, until: datetime, unreadable: list[tuple[str, str, TidemillError]]) -> _Result:
        if self._clock() >= until:
            return _Result.LEFT
        try:
            if job.state is State.PARKED:
                # No signal came. It may not start before the end of its wait.
                self._store.unpark(job, now=self._clock(), due=job.due or self._clock())
            else:
                self._store.wake(job, now=self._clock())
        except WriteRefusedError:
            return _Result.REFUSED
        except MalformedDocumentError as error:
            # The document that refuses the write is of a newer version.
            unreadable.append((job.tenant, job.id, error))
            return _Result.REFUSED
        except (StoreUnavailableError, TransactionConflictError):
            return _Result.FAILED
        return _Result.WOKEN

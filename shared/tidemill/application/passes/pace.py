"""`Pace`: keeps a run within a number of units a second, such as read units, writes or jobs."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from tidemill.application.ports import Clock

#: Jobs a second that reconcile repairs, and that a command of an operator redrives, cancels or purges by default. As
#: many as one partition of DynamoDB takes, and they spread over all partitions of the table.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
MOST_WRITES_PER_SECOND: Final = 1_000


class Pace:
    """Shared by the threads of one run. A read is paid for after it: its price is known only then.

    So the reads in progress, one page of at most 1 MB (128 units) a thread, may exceed the rate for a moment.
    """

    def __init__(self, units_per_second: float, *, clock: Clock, pause: Callable[[float], None]) -> None:
        """`clock` is steady: a step back of the wall clock would be a pause."""
        self._rate = units_per_second
        self._clock = clock
        self._pause = pause
        self._lock = threading.Lock()
        self._paid_until: datetime | None = None

    def spend(self, units: float, *, within: timedelta) -> bool:
        """Wait until `units` are paid for. False, without a wait, if that takes longer than `within`."""
        with self._lock:
            now = self._clock()
            begin = max(self._paid_until or now, now)
            self._paid_until = begin + timedelta(seconds=units / self._rate)
            wait = self._paid_until - now
        if wait > within:
            return False
        if wait > timedelta(0):
            self._pause(wait.total_seconds())
        return True

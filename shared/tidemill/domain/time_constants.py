"""Points and spans of time that several layers share, and the number that stands for a time."""

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
#: The precision of limits and rates.
MICROSECOND: Final = timedelta(microseconds=1)
#: The precision of the times in a document.
MILLISECOND: Final = timedelta(milliseconds=1)
#: A year, leap or not: the longest delay, snooze, period of a unique job and retention of an ended job.
LONGEST_SPAN: Final = timedelta(days=366)
#: For how long an ended job is kept, unless its type or the stage says otherwise.
JOB_RETENTION_DAYS: Final = 30


def epoch_milliseconds(time: datetime) -> int:
    """Return the milliseconds that documents and messages hold, rounded up so that nothing starts before its time."""
    return -((EPOCH - time) // MILLISECOND)

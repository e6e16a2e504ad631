"""The cancel of a batch or a flow as a whole, with its jobs.

Its own job gets a signal, and looks again and again until the others have ended.
"""

from datetime import datetime, timedelta
from typing import Final

from tidemill.domain.job import Job
from tidemill.domain.spans import pause_after

#: The name of the signal.
CANCELLED: Final = "cancelled"
_SHORTEST_PAUSE: Final = timedelta(seconds=5)
_LONGEST_PAUSE: Final = timedelta(minutes=15)
#: For each job that a look reads. Above 1,800 of them, this is longer.
_PAUSE_OF_JOB: Final = timedelta(milliseconds=500)


def cancelled_at(whole: Job) -> datetime | None:
    return next((signal.at for signal in whole.signals.received if signal.name == CANCELLED), None)


def is_cancelled(whole: Job) -> bool:
    return cancelled_at(whole) is not None


def pause_of_cancelled(whole: Job, *, jobs: int, now: datetime) -> timedelta:
    """The time between two looks. It grows, since a job may run for hours, or be readable to another version only."""
    since = cancelled_at(whole) or now
    return pause_after(now - since, shortest=_SHORTEST_PAUSE, longest=_LONGEST_PAUSE, costs=jobs * _PAUSE_OF_JOB)

"""Time spans: the check of those that a handler gives, whether one is over, and the pause between two looks."""

from datetime import datetime, timedelta
from typing import Final

from tidemill.domain.time_constants import LONGEST_SPAN

#: So much of the time that has passed is the pause until the next look.
_PAUSE_SHARE: Final = 4


def require_wait(span: timedelta, name: str) -> None:
    """Raises `TypeError` or `ValueError`. `name` is that of the argument."""
    if not isinstance(span, timedelta):
        raise TypeError(f"{name} must be a timedelta, such as timedelta(seconds=30); got {span!r}")
    if not timedelta(0) <= span <= LONGEST_SPAN:
        raise ValueError(f"{name} must be from 0 to {LONGEST_SPAN.days} days; got {span}")


def is_within(span: timedelta, *, since: datetime, now: datetime) -> bool:
    """Whether less than `span` has passed. False if the clock was set back: no value may hold for ever."""
    return timedelta(0) <= now - since < span


def pause_after(
    passed: timedelta, *, shortest: timedelta, longest: timedelta, costs: timedelta = timedelta(0)
) -> timedelta:
    """Between two looks at others that have not ended: it grows with the time that has passed.

    `costs`: of a look at so many others that it is worth a longer pause than `longest`, that pause.
    """
    return min(max(passed / _PAUSE_SHARE, shortest), max(longest, costs))

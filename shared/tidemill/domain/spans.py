"""Time spans: the check of those that a handler gives, and whether one is over."""

from datetime import datetime, timedelta

from tidemill.domain.time_constants import LONGEST_SPAN


def require_wait(span: timedelta, name: str) -> None:
    """Raises `TypeError` or `ValueError`. `name` is that of the argument."""
    if not isinstance(span, timedelta):
        raise TypeError(f"{name} must be a timedelta, such as timedelta(seconds=30); got {span!r}")
    if not timedelta(0) <= span <= LONGEST_SPAN:
        raise ValueError(f"{name} must be from 0 to {LONGEST_SPAN.days} days; got {span}")


def is_within(span: timedelta, *, since: datetime, now: datetime) -> bool:
    """Whether less than `span` has passed. False if the clock was set back: no value may hold for ever."""
    return timedelta(0) <= now - since < span

"""Checks the time spans that a handler gives."""

from datetime import timedelta

from tidemill.domain.time_constants import LONGEST_SPAN


def require_wait(span: timedelta, name: str) -> None:
    """Raises `TypeError` or `ValueError`. `name` is that of the argument."""
    if not isinstance(span, timedelta):
        raise TypeError(f"{name} must be a timedelta, such as timedelta(seconds=30); got {span!r}")
    if not timedelta(0) <= span <= LONGEST_SPAN:
        raise ValueError(f"{name} must be from 0 to {LONGEST_SPAN.days} days; got {span}")

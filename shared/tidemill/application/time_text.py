"""Times as text: for programs, and for readers with the distance from the present. Pure."""

from datetime import datetime, timedelta
from typing import Final

_UNITS: Final = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "m"))


def time_text(value: datetime | None) -> str | None:
    """In RFC 3339, to the millisecond: `2045-03-04T05:06:07.089Z`."""
    return None if value is None else value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(at: datetime | None, now: datetime) -> str:
    """`2045-03-04 05:06:07Z (3m ago)`, or `(in 3m)`."""
    if at is None:
        return "at an unknown time"
    return f"{at:%Y-%m-%d %H:%M:%S}Z ({f'in {span(at - now)}' if at > now else f'{span(now - at)} ago'})"


def span(duration: timedelta) -> str:
    """Whole units of the largest unit that fits: `3d`, `12m`, `42s`. Clocks differ, so a negative span becomes `0s`."""
    at_least_zero = max(duration, timedelta())
    return next(
        (f"{at_least_zero // unit}{symbol}" for unit, symbol in _UNITS if at_least_zero >= unit),
        f"{at_least_zero // timedelta(seconds=1)}s",
    )

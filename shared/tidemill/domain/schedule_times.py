"""The times of a schedule expression of EventBridge Scheduler, in UTC. Pure.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

_RATE: Final = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_CRON: Final = re.compile(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)")
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
#: Leap years are at most eight years apart.
_LONGEST_SEARCH: Final = timedelta(days=9 * 366)
_DAY: Final = timedelta(days=1)


def period(expression: str) -> timedelta | None:
    """Of a rate; None for another expression."""
    found = _RATE.fullmatch(expression)
    return int(found[1]) * timedelta(**{f"{found[2]}s": 1}) if found else None


def next_time(expression: str, *, after: datetime) -> datetime | None:
    """The first time after `after`. None for a rate, which counts from its creation, and for the forms L, W and #."""
    found = _CRON.fullmatch(expression)
    if not found:
        return None
    try:
        minutes, hours = values(found[1], range(60)), values(found[2], range(24))
        days, months = values(found[3], range(1, 32)), values(found[4], range(1, 13), _MONTHS)
        weekdays, years = values(found[5], range(1, 8), _DAYS), values(found[6], range(1970, 2200))
    except ValueError:
        return None
    first = after.astimezone(UTC)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    while midnight - first < _LONGEST_SEARCH:
        # Sunday is 1, and `isoweekday` of Sunday is 7.
        weekday = midnight.isoweekday() % 7 + 1
        if midnight.year in years and midnight.month in months and midnight.day in days and weekday in weekdays:
            times = (midnight.replace(hour=hour, minute=minute) for hour in hours for minute in minutes)
            if at := next((at for at in times if at > first), None):
                return at
        midnight += _DAY
    return None


def values(field: str, allowed: range, names: Sequence[str] = ()) -> list[int]:
    """The numbers that a field of a cron expression names, in order. `names` stand for those of `allowed`.

    A range whose end is before its begin turns over: `22-4` hours are those of a night. AWS does not document it; this
    is how Quartz reads it, whose fields AWS uses. Raises `ValueError` for a form that this does not read.
    """
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span in {"*", "?"}:
            first, last = allowed[0], allowed[-1]
        else:
            begin, _, end = span.partition("-")
            first = _number(begin, allowed, names)
            last = _number(end, allowed, names) if end else allowed[-1] if step else first
        if last < first:
            turned = range(first, last + len(allowed) + 1, int(step or 1))
            found.update(allowed[(number - allowed[0]) % len(allowed)] for number in turned)
        else:
            found.update(range(first, last + 1, int(step or 1)))
    return sorted(found)


def _number(text: str, allowed: range, names: Sequence[str]) -> int:
    return allowed[names.index(text.upper())] if text.upper() in names else int(text)

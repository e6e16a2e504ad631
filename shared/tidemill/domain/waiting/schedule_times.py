"""The schedule expressions of EventBridge Scheduler: which of them are valid, and their times, in UTC. Pure.

It accepts the values and wildcards in the tables of these pages and no other form, since the scheduler refuses an
expression only when a deployment creates the schedule:
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from msgspec import Struct

_RATE: Final = re.compile(r"rate\((?:1 (minute|hour|day)|(?!0|1 )([0-9]{1,5}) (minute|hour|day)s)\)")
_CRON: Final = re.compile(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)")
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_SUNDAY, _SATURDAY = 1, 7
_DAY: Final = timedelta(days=1)
_BEFORE_ALL: Final = datetime(1969, 12, 31, tzinfo=UTC)

#: The days of a month, by its year and its number, in order.
DaysOfMonth = Callable[[int, int], Iterable[int]]


class Rate(Struct, frozen=True):
    """It counts from the creation of the schedule."""

    period: timedelta


class Cron(Struct, frozen=True):
    """The values of each field, in order."""

    minutes: Sequence[int]
    hours: Sequence[int]
    days: DaysOfMonth
    months: Sequence[int]
    years: Sequence[int]

    def next_time(self, *, after: datetime) -> datetime | None:
        """The first time after `after`; None if no further one comes."""
        first = after.astimezone(UTC)
        for year in (year for year in self.years if year >= first.year):
            for month in (month for month in self.months if (year, month) >= (first.year, first.month)):
                for day in self.days(year, month):
                    midnight = datetime(year, month, day, tzinfo=UTC)
                    if midnight + _DAY <= first:
                        continue
                    hours = (midnight.replace(hour=hour) for hour in self.hours)
                    times = (hour.replace(minute=minute) for hour in hours for minute in self.minutes)
                    if at := next((at for at in times if at > first), None):
                        return at
        return None


class _Field(Struct, frozen=True):
    """`takes` is for the error."""

    name: str
    allowed: range
    takes: str
    names: Sequence[str] = ()
    has_steps: bool = True
    turns_over: bool = True

    def values(self, text: str) -> Sequence[int]:
        """The numbers that a list of values, ranges and steps means, in order. Raises `ValueError`.

        A range whose end is before its begin turns over: `22-4` hours are those of a night. AWS does not document it;
        this is how Quartz reads it, whose fields AWS uses.
        """
        found: set[int] = set()
        for part in text.split(","):
            span, slash, step = part.partition("/")
            every = self._step(text, step) if slash else 1
            begin, dash, end = span.partition("-")
            if span == "*":
                first, last = self.allowed[0], self.allowed[-1]
            else:
                first = self.number(text, begin)
                last = self.number(text, end) if dash else self.allowed[-1] if slash else first
            turned = len(self.allowed) if last < first else 0
            if turned and not self.turns_over:
                raise self.error(text)
            offsets = range(first - self.allowed[0], last - self.allowed[0] + turned + 1, every)
            found.update(self.allowed[offset % len(self.allowed)] for offset in offsets)
        return sorted(found)

    def number(self, text: str, value: str) -> int:
        """Raises `ValueError`, which shows `text`."""
        if value.upper() in self.names:
            return self.allowed[self.names.index(value.upper())]
        if not re.fullmatch("[0-9]{1,4}", value) or int(value) not in self.allowed:
            raise self.error(text)
        return int(value)

    def error(self, text: str, reason: str = "") -> ValueError:
        return ValueError(f"the field {self.name} is {text!r}, and it takes {self.takes}{reason}")

    def _step(self, text: str, step: str) -> int:
        most = min(self.allowed[-1], len(self.allowed))
        if not self.has_steps:
            raise self.error(text)
        if not re.fullmatch("[0-9]{1,4}", step) or not 1 <= int(step) <= most:
            raise self.error(text, f"; after / a step of 1 to {most}")
        return int(step)


_MINUTES: Final = _Field("minutes", range(60), "0 to 59 with , - * /")
_HOURS: Final = _Field("hours", range(24), "0 to 23 with , - * /")
_DAY_OF_MONTH: Final = _Field("day of month", range(1, 32), "1 to 31 with , - * /, or ?, L, or one day with W")
_MONTH: Final = _Field("month", range(1, 13), "1 to 12 or JAN to DEC with , - * /", _MONTHS)
_DAY_OF_WEEK: Final = _Field(
    "day of week",
    range(_SUNDAY, _SATURDAY + 1),
    "1 to 7 or SUN to SAT with , - *, or ?, L, or one day with L or #1 to #5",
    _DAYS,
    has_steps=False,
)
_YEAR: Final = _Field("year", range(1970, 2200), "1970 to 2199 with , - * /", turns_over=False)


def parse(expression: str) -> Rate | Cron:
    """Raises `ValueError` with the field and its range, also for an expression that no day fits."""
    if rate := _RATE.fullmatch(expression):
        unit = rate[1] or rate[3]
        return Rate(int(rate[2] or 1) * timedelta(**{f"{unit}s": 1}))
    found = _CRON.fullmatch(expression)
    if not found:
        raise ValueError(f"invalid schedule {expression!r}: use a form such as rate(1 hour) or cron(0 3 * * ? *)")
    try:
        cron = Cron(
            minutes=_MINUTES.values(found[1]),
            hours=_HOURS.values(found[2]),
            days=_days(found[3], found[5]),
            months=_MONTH.values(found[4]),
            years=_YEAR.values(found[6]),
        )
    except ValueError as error:
        raise ValueError(f"invalid schedule {expression!r}: {error}") from None
    if cron.next_time(after=_BEFORE_ALL) is None:
        raise ValueError(f"invalid schedule {expression!r}: no month of these years has such a day")
    return cron


def _days(of_month: str, of_week: str) -> DaysOfMonth:
    if (of_month == "?") == (of_week == "?"):
        raise ValueError("use ? for either the day of the month or the day of the week, not both")
    return _by_week(of_week) if of_month == "?" else _by_month(of_month)


def _by_month(text: str) -> DaysOfMonth:
    if text == "L":
        return lambda year, month: [_last(year, month)]
    if text.endswith("W"):
        day = _DAY_OF_MONTH.number(text, text.removesuffix("W"))
        return lambda year, month: [_nearest_weekday(year, month, day)] if day <= _last(year, month) else []
    days = _DAY_OF_MONTH.values(text)
    return lambda year, month: [day for day in days if day <= _last(year, month)]


def _by_week(text: str) -> DaysOfMonth:
    """L alone is the last day of the week: Saturday."""
    day, mark, number = text.partition("#")
    if mark:
        weekday = _DAY_OF_WEEK.number(text, day)
        if number not in {"1", "2", "3", "4", "5"}:
            raise _DAY_OF_WEEK.error(text)
        return lambda year, month: _weekdays(year, month, [weekday])[int(number) - 1 : int(number)]
    if text != "L" and text.endswith("L"):
        weekday = _DAY_OF_WEEK.number(text, text.removesuffix("L"))
        return lambda year, month: _weekdays(year, month, [weekday])[-1:]
    weekdays = [_SATURDAY] if text == "L" else _DAY_OF_WEEK.values(text)
    return lambda year, month: _weekdays(year, month, weekdays)


def _weekdays(year: int, month: int, weekdays: Sequence[int]) -> list[int]:
    return [day for day in range(1, _last(year, month) + 1) if _weekday(year, month, day) in weekdays]


def _nearest_weekday(year: int, month: int, day: int) -> int:
    """Monday to Friday, in the same month."""
    weekday = _weekday(year, month, day)
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < _last(year, month) else day - 2
    return day


def _weekday(year: int, month: int, day: int) -> int:
    """Sunday is 1, and `isoweekday` of Sunday is 7."""
    return date(year, month, day).isoweekday() % 7 + 1


def _last(year: int, month: int) -> int:
    return monthrange(year, month)[1]

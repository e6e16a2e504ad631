"""Parameter types for times: durations such as `15m`, and timestamps with a time zone."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from tidemill.system import clock

_UNITS: Final = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
#: A century. The calendar ends not long after the longest duration of nine digits.
_LONGEST: Final = timedelta(days=36_500)
#: In characters. Job documents should stay small.
LONGEST_REASON: Final = 200
_DURATION_PATTERN: Final = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_TIME_OF_DAY_PATTERN: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


class _JobId(click.ParamType[str]):
    """The id of a job, a batch or a flow. It may be in upper case: ids are UUIDs (RFC 9562, section 4)."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002 - of click
        return str(value).lower()


class _Duration(click.ParamType[timedelta]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        found = _DURATION_PATTERN.fullmatch(value)
        if found is None:
            self.fail(f"invalid duration {value!r}: use a number and a unit, such as 30s, 15m, 2h or 7d", param, ctx)
        return _duration(self, found, param, ctx)


class _Timestamp(click.ParamType[datetime]):
    name = "timestamp"
    expected = "use a timestamp such as 2026-01-31T12:00:00Z"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            timestamp = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"invalid time {value!r}: {self.expected}", param, ctx)
        if timestamp.tzinfo is None:
            self.fail(f"time {value!r} has no time zone: append Z for UTC, or an offset such as +01:00", param, ctx)
        try:
            return timestamp.astimezone(UTC)
        except OverflowError:
            self.fail(f"invalid time {value!r}: it lies outside of the years 1 to 9999 in UTC", param, ctx)


class _TimestampOrAge(_Timestamp):
    name = "time"
    expected = "use a duration before now, such as 2h, or a timestamp such as 2026-01-31T12:00:00Z"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        found = _DURATION_PATTERN.fullmatch(value)
        return super().convert(value, param, ctx) if found is None else clock.now() - _duration(self, found, param, ctx)


class _Until(_Timestamp):
    name = "until"
    expected = "use a duration from now, such as 2h, a time of the day in UTC, such as 14:00, or a timestamp such as "
    expected += "2026-01-31T12:00:00Z"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        now = clock.now()
        if found := _DURATION_PATTERN.fullmatch(value):
            return now + _duration(self, found, param, ctx)
        if found := _TIME_OF_DAY_PATTERN.fullmatch(value):
            at = now.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
            return at if at > now else at + timedelta(days=1)
        return super().convert(value, param, ctx)


def _duration(
    type_: click.ParamType[Any], found: re.Match[str], param: click.Parameter | None, ctx: click.Context | None
) -> timedelta:
    number, unit = int(found[1]), _UNITS[found[2]]
    if number > _LONGEST // unit:
        type_.fail(f"invalid duration {found[0]!r}: at most {_LONGEST.days}d", param, ctx)
    return number * unit


#: Converts to `timedelta`.
JOB_ID: Final = _JobId()
DURATION: Final = _Duration()
#: Converts to an aware `datetime` in UTC.
TIMESTAMP: Final = _Timestamp()
#: Also accepts a duration before now: `2h` is two hours ago.
TIMESTAMP_OR_AGE: Final = _TimestampOrAge()
#: A time ahead. `2h` is in two hours, and `14:00` is the next time that it is two in the afternoon, in UTC.
UNTIL: Final = _Until()


def reason_text(_: click.Context, __: click.Parameter, reason: str) -> str:
    """A callback: the reason of a change, for its record."""
    if len(reason) > LONGEST_REASON:
        raise click.BadParameter(f"has {len(reason)} characters: shorten it to at most {LONGEST_REASON}")
    return reason

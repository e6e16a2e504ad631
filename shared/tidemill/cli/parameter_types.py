"""Times as a person writes them: spans such as `15m`, and instants with their zone."""

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
_SPAN: Final = re.compile(r"(\d{1,9})([smhd])", re.ASCII)


class _Span(click.ParamType[timedelta]):
    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        found = _SPAN.fullmatch(value)
        if found is None:
            self.fail(f"{value!r} is no span; write a whole number and its unit: 30s, 15m, 2h or 7d", param, ctx)
        return _span(found)


class _Instant(click.ParamType[datetime]):
    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time; write it like 2026-01-31T12:00:00Z", param, ctx)
        if instant.tzinfo is None:
            self.fail(f"{value!r} does not say its time zone; end it in Z for UTC, or in +01:00", param, ctx)
        return instant.astimezone(UTC)


class _Moment(_Instant):
    """An instant, or a span before now."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        found = _SPAN.fullmatch(value)
        return super().convert(value, param, ctx) if found is None else clock.now() - _span(found)


def _span(found: re.Match[str]) -> timedelta:
    return int(found[1]) * _UNITS[found[2]]


#: `timedelta`.
SPAN: Final = _Span()
#: An aware `datetime` in UTC.
INSTANT: Final = _Instant()
#: The same; a span such as `2h` means that long ago.
MOMENT: Final = _Moment()

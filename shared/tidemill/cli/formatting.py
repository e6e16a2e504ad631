"""How the command line puts things: times, ages, numbers, and text that is safe to show. Pure."""

from datetime import datetime, timedelta
from typing import Final

_UNITS: Final = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "m"))
NOTHING: Final = "–"  # noqa: RUF001 - a dash, as in a printed table


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def age(span: timedelta | None) -> str:
    """In whole units of the largest that fits: `3d`, `12m`, `42s`. Clocks differ, so less than nothing is nothing."""
    if span is None:
        return NOTHING
    left = max(span, timedelta())
    return next(
        (f"{left // unit}{symbol}" for unit, symbol in _UNITS if left >= unit), f"{left // timedelta(seconds=1)}s"
    )


def instant(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}Z"


def timestamp(value: datetime) -> str:
    """As the HTTP API writes it: RFC 3339, in milliseconds."""
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def visible(text: str) -> str:
    """Without what would move the cursor, colour the terminal or hide itself: a job's texts are a stranger's."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)

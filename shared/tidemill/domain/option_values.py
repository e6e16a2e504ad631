"""The rules for the values of a job type's options, in declarations and in overrides. Pure.

Each raises `ValueError` with the name of the option and the values that are allowed.
"""

import math
import re
from datetime import timedelta
from typing import Any, Final

from tidemill.domain.time_constants import LONGEST_SPAN, MILLISECOND

#: Names appear in URLs, metrics, log queries and the names of schedules, which may have 64 characters:
#: https://docs.aws.amazon.com/scheduler/latest/APIReference/API_CreateSchedule.html
_TYPE_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)*")
LONGEST_NAME: Final = 64


def type_name(name: object) -> str:
    return _name("job type", name, "mail.welcome")


def downstream_name(name: object) -> str:
    return _name("downstream", name, "payments")


def limit_name(name: object) -> str:
    return _name("shared limit", name, "payments")


def event_name(name: object) -> str:
    return _name("event type", name, "order.placed")


def _name(what: str, name: object, example: str) -> str:
    if not isinstance(name, str) or not _TYPE_NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise ValueError(
            f"the name of the {what} is {name!r}; use words of lower-case letters, digits, _ and -, joined by dots, "
            f"such as {example!r}, of at most {LONGEST_NAME} characters"
        )
    return name


def whole(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}; it must be a whole number")  # noqa: TRY004 - as for a wrong number
    return value


def number(name: str, value: Any) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return value
    except OverflowError:
        raise ValueError(f"{name} has too many digits; use a smaller number") from None
    hint = ", such as what its method total_seconds returns" if isinstance(value, timedelta) else ""
    raise ValueError(f"{name} is {value!r}; it must be a number{hint}")


def span(name: str, value: Any, unit: timedelta, *, shortest: timedelta = MILLISECOND) -> timedelta:
    """`value` units, at least `shortest` and at most `LONGEST_SPAN`. No time of a job is finer than a millisecond."""
    if not 0 < number(name, value) <= LONGEST_SPAN / unit:
        raise ValueError(f"{name} is {value}; it must be positive and at most {LONGEST_SPAN / unit:g}")
    if (given := number(name, value) * unit) < shortest:
        raise ValueError(f"{name} is {value}; it must be at least {shortest / unit:g}")
    return given

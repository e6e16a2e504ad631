"""Overrides: options of a job type or of a shared limit that an operator has changed for a time. Pure.

An option has the name that it has in the declaration, and the same rule decides about its value.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Self

from msgspec import Struct

from tidemill.domain import option_values
from tidemill.domain.attempt.retry import LONGEST_BACKOFF_SECONDS, RetryPolicy
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.time_constants import SECOND

#: No run lasts longer on any lane: https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
LONGEST_TIMEOUT: Final = timedelta(minutes=15)
#: The members of a rate.
_COUNT: Final = "count"
_PERIOD: Final = "period_seconds"


class Option(StrEnum):
    """What an override may change."""

    MAX_ATTEMPTS = "max_attempts"
    BACKOFF = "backoff_seconds"
    BACKOFF_CAP = "backoff_cap_seconds"
    TIMEOUT = "timeout_seconds"
    CONCURRENCY = "concurrency_per_key"
    RATE = "rate_per_key"


#: The options of a limit. A shared limit has no others.
LIMIT_OPTIONS: Final = (Option.CONCURRENCY, Option.RATE)


class TypeOverrides(Struct, frozen=True, kw_only=True):
    """The values in force for one job type. None leaves the declared one."""

    max_attempts: int | None = None
    backoff_seconds: float | None = None
    backoff_cap_seconds: float | None = None
    timeout: timedelta | None = None
    concurrency: int | None = None
    rate: Rate | None = None

    def retry(self, declared: RetryPolicy) -> RetryPolicy:
        """An overridden first backoff raises a declared cap that is lower. An overridden cap bounds every backoff."""
        first = declared.backoff_seconds if self.backoff_seconds is None else self.backoff_seconds
        cap = max(declared.backoff_cap_seconds, first) if self.backoff_cap_seconds is None else self.backoff_cap_seconds
        return replace(
            declared,
            max_attempts=self.max_attempts or declared.max_attempts,
            backoff_seconds=min(first, cap),
            backoff_cap_seconds=cap,
        )

    def limit(self, declared: Limit | None) -> Limit | None:
        """A type that declares no limit may get one. An overridden concurrency does not adapt."""
        concurrency = self.concurrency or (declared.concurrency if declared else None)
        adaptive = None if self.concurrency or declared is None else declared.adaptive
        rate = self.rate or (declared.rate if declared else None)
        if concurrency is None and adaptive is None and rate is None:
            return None
        return Limit(concurrency=concurrency, adaptive=adaptive, rate=rate)


NO_OVERRIDES: Final = TypeOverrides()


class Overridden(Struct, frozen=True, kw_only=True):
    """One option of one type or shared limit, as the name of a setting has it: `mail.welcome.max_attempts`."""

    #: None for a shared limit.
    type: str | None = None
    #: The name of a shared limit; None for a type.
    limit: str | None = None
    option: Option

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an override of a type. Raises `InvalidSettingError`."""
        type_, option = _split(text, Option, "the job type", option_values.type_name)
        return cls(type=type_, option=option)

    @classmethod
    def parse_limit(cls, text: str) -> Self:
        """Read an override of a shared limit. Raises `InvalidSettingError`."""
        limit, option = _split(text, LIMIT_OPTIONS, "the shared limit", option_values.limit_name)
        return cls(limit=limit, option=option)

    @property
    def whose(self) -> str:
        """The type or shared limit."""
        return str(self.type) if self.limit is None else f"shared limit {self.limit}"

    def value(self, value: Any) -> dict[str, Any]:
        """The argument of `TypeOverrides`. Raises `InvalidSettingError`."""
        try:
            return _argument(self.option, value)
        except ValueError as error:
            raise InvalidSettingError(str(error)) from None


def _split(text: str, options: Iterable[Option], owner: str, checked: Callable[[object], str]) -> tuple[str, Option]:
    """The name and the option. `checked` raises `ValueError` for a name that `owner` may not have."""
    name, _, option = text.rpartition(".")
    if option not in set(options):
        raise InvalidSettingError(f"{text!r} names no option: after {owner}, use {', '.join(options)}")
    try:
        return checked(name), Option(option)
    except ValueError as error:
        raise InvalidSettingError(str(error)) from None


def _argument(option: Option, value: Any) -> dict[str, Any]:
    """Raises `ValueError`, as the declaration does."""
    match option:
        case Option.MAX_ATTEMPTS:
            return {"max_attempts": RetryPolicy(max_attempts=option_values.whole(option, value)).max_attempts}
        case Option.BACKOFF:
            seconds = option_values.number(option, value)
            return {"backoff_seconds": _backoff(seconds, LONGEST_BACKOFF_SECONDS).backoff_seconds}
        case Option.BACKOFF_CAP:
            return {"backoff_cap_seconds": _backoff(0, option_values.number(option, value)).backoff_cap_seconds}
        case Option.TIMEOUT:
            timeout = option_values.span(option, value, SECOND)
            if timeout > LONGEST_TIMEOUT:
                raise ValueError(
                    f"{option} is {value}; no lane allows a run more than {LONGEST_TIMEOUT.total_seconds():g}"
                )
            return {"timeout": timeout}
        case Option.CONCURRENCY:
            return {"concurrency": Limit(concurrency=option_values.whole(option, value)).concurrency}
        case Option.RATE:
            return {"rate": _rate(value)}


def _backoff(seconds: float, cap_seconds: float) -> RetryPolicy:
    return RetryPolicy(backoff_seconds=seconds, backoff_cap_seconds=cap_seconds)


def _rate(value: Any) -> Rate:
    if not isinstance(value, dict) or set(value) != {_COUNT, _PERIOD}:
        raise ValueError(f'{Option.RATE} is {value!r}; write it as {{"{_COUNT}": 10, "{_PERIOD}": 60}}')
    count = option_values.whole(_COUNT, value[_COUNT])
    return Rate(count=count, period=option_values.span(_PERIOD, value[_PERIOD], SECOND))

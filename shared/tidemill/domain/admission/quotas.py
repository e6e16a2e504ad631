"""Quotas: how many jobs a tenant may submit over HTTP in a period. Pure.

Periods follow each other without a gap, from the epoch on, so all functions agree on them.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from tidemill.domain import option_values
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.submission.tenants import TENANT_RULE, is_tenant
from tidemill.domain.time_constants import EPOCH, SECOND

#: The name of the quota of each tenant that has none of its own.
DEFAULT_QUOTA: Final = "default"
LARGEST_COUNT: Final = 100_000_000
SHORTEST_PERIOD: Final = timedelta(seconds=1)
LONGEST_PERIOD: Final = timedelta(days=1)
#: An execution environment counts this part of a quota by itself before it writes.
_PARTS: Final = 20
_COUNT: Final = "count"
_PERIOD: Final = "period_seconds"


class Quota(Struct, frozen=True, kw_only=True):
    """At most `count` submissions in each `period`, and at most `share` more for each execution environment."""

    count: int
    period: timedelta

    @classmethod
    def parse(cls, tenant: str, value: Any) -> "Quota":
        """Raises `InvalidSettingError`."""
        if not is_tenant(tenant):
            raise InvalidSettingError(f"a quota names a tenant, {TENANT_RULE}, or {DEFAULT_QUOTA}")
        if not isinstance(value, dict) or set(value) != {_COUNT, _PERIOD}:
            raise InvalidSettingError(f'a quota is {value!r}; write it as {{"{_COUNT}": 1000, "{_PERIOD}": 60}}')
        try:
            count = option_values.whole(_COUNT, value[_COUNT])
            period = option_values.span(_PERIOD, value[_PERIOD], SECOND)
        except ValueError as error:
            raise InvalidSettingError(str(error)) from None
        if not 0 <= count <= LARGEST_COUNT:
            raise InvalidSettingError(f"{_COUNT} is {count}; it must lie within 0 and {LARGEST_COUNT}")
        if not SHORTEST_PERIOD <= period <= LONGEST_PERIOD:
            raise InvalidSettingError(
                f"{_PERIOD} is {period.total_seconds():g}; "
                f"it must lie within {SHORTEST_PERIOD.total_seconds():g} and {LONGEST_PERIOD.total_seconds():g}"
            )
        return cls(count=count, period=period)

    @property
    def share(self) -> int:
        """How many submissions an execution environment counts before it adds them to the shared count."""
        return max(self.count // _PARTS, 1)

    def period_of(self, now: datetime) -> "Period":
        begins = EPOCH + (now - EPOCH) // self.period * self.period
        return Period(begins=begins, ends=begins + self.period)


class Period(Struct, frozen=True, kw_only=True):
    """One period of one quota."""

    begins: datetime
    ends: datetime


def over(quota: Quota, *, shared: int, own: int) -> bool:
    """Whether one more submission is refused. `shared` is the count as it was read last, `own` what was not added."""
    return shared + own >= quota.count

"""A budget of a tenant in dollars, as the quota of submissions that keeps to it."""

from dataclasses import dataclass
from typing import Any, Final

from tidemill.domain.quotas import LARGEST_COUNT

DAY_SECONDS: Final = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class DailyQuota:
    """`count` jobs a day cost the tenant's budget, if they are like those of the profile."""

    count: int

    @property
    def setting(self) -> dict[str, Any]:
        """The value of `quotas.TENANT` of the runtime configuration."""
        return {"count": self.count, "period_seconds": DAY_SECONDS}


def daily_quota(dollars_a_day: float, *, dollars_per_job: float) -> DailyQuota:
    return DailyQuota(min(int(dollars_a_day / dollars_per_job), LARGEST_COUNT))

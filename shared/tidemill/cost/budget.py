"""A budget of a tenant in dollars, as the quota of submissions that keeps to it."""

from typing import Any

from tidemill.cost.job_usage import DAY_SECONDS
from tidemill.domain.quotas import LARGEST_COUNT


def daily_quota(dollars_a_day: float, *, dollars_per_job: float) -> dict[str, Any]:
    """The value of `quotas.TENANT` of the runtime configuration, for jobs like those of the profile."""
    return {"count": min(int(dollars_a_day / dollars_per_job), LARGEST_COUNT), "period_seconds": DAY_SECONDS}

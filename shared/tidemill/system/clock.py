"""The clocks of this process, behind the port `Clock`."""

import time
from datetime import UTC, datetime, timedelta

from tidemill.domain.time_constants import EPOCH


def now() -> datetime:
    """The present in UTC, to the millisecond, which is the precision of a job document."""
    instant = datetime.now(UTC)
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def steady() -> datetime:
    """For time limits and durations within this process: no step of the wall clock moves it.

    Its times count from an arbitrary moment, so they compare with each other only.
    """
    return EPOCH + timedelta(seconds=time.monotonic())

"""The wall clock, behind the port `Clock`."""

from datetime import UTC, datetime


def now() -> datetime:
    """The present in UTC, to the millisecond, which is the precision of a job document."""
    instant = datetime.now(UTC)
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)

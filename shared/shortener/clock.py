"""The current time of the example. A test replaces `now`."""

from datetime import UTC, datetime


def now() -> datetime:
    """The current time in UTC, truncated to the millisecond, the precision of an item."""
    instant = datetime.now(UTC)
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)

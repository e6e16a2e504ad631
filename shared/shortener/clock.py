"""The present time of the example, in one place, so that a test can set it."""

from datetime import UTC, datetime


def now() -> datetime:
    """To the millisecond, which is what an item holds."""
    instant = datetime.now(UTC)
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)

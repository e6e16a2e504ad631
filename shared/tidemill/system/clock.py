"""The world's time, chance and names, behind the ports."""

import secrets
import time
import uuid
from datetime import UTC, datetime
from typing import Final

_VERSION_7: Final = 0x7 << 76
_VARIANT: Final = 0b10 << 62


def now() -> datetime:
    """To the millisecond, which is what a document can hold."""
    instant = datetime.now(UTC)
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def new_token() -> str:
    return uuid.uuid4().hex


def new_job_id() -> str:
    """A UUIDv7: the time in milliseconds, then chance, so that ids sort by age. RFC 9562, section 5.7."""
    random = secrets.randbits(74)
    high, low = random >> 62, random & (1 << 62) - 1
    return str(uuid.UUID(int=time.time_ns() // 1_000_000 << 80 | _VERSION_7 | high << 64 | _VARIANT | low))


def draw() -> float:
    """Uniform over [0, 1)."""
    return secrets.randbits(53) / (1 << 53)

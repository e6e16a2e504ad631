"""Fresh tokens and job ids, behind the port `NewToken`."""

import secrets
import time
import uuid
from datetime import datetime, timedelta
from typing import Final

from tidemill.domain.time_constants import EPOCH

_VERSION_7: Final = 0x7 << 76
_VARIANT: Final = 0b10 << 62
_TIME_ORDERED: Final = 7


def new_token() -> str:
    """32 hexadecimal digits, of which 122 bits are random."""
    return uuid.uuid4().hex


def new_job_id() -> str:
    """A UUIDv7: the time in milliseconds, then random bits, so that ids sort by age. RFC 9562, section 5.7."""
    random = secrets.randbits(74)
    high, low = random >> 62, random & (1 << 62) - 1
    return str(uuid.UUID(int=time.time_ns() // 1_000_000 << 80 | _VERSION_7 | high << 64 | _VARIANT | low))


def submitted_at(job_id: str) -> datetime | None:
    """The time in an id of `new_job_id`. None for an id that was made from a key."""
    try:
        read = uuid.UUID(job_id)
    except ValueError:
        return None
    return EPOCH + timedelta(milliseconds=read.int >> 80) if read.version == _TIME_ORDERED else None

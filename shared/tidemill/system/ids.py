"""Fresh tokens and job ids, behind the port `NewToken`."""

import secrets
import time
import uuid
from typing import Final

_VERSION_7: Final = 0x7 << 76
_VARIANT: Final = 0b10 << 62


def new_token() -> str:
    """32 hexadecimal digits, of which 122 bits are random."""
    return uuid.uuid4().hex


def new_job_id() -> str:
    """A UUIDv7: the time in milliseconds, then random bits, so that ids sort by age. RFC 9562, section 5.7."""
    random = secrets.randbits(74)
    high, low = random >> 62, random & (1 << 62) - 1
    return str(uuid.UUID(int=time.time_ns() // 1_000_000 << 80 | _VERSION_7 | high << 64 | _VARIANT | low))

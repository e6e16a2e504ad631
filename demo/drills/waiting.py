"""How many jobs wait for one thing, as `tidemill status` shows it."""

from collections.abc import Mapping
from typing import Any


def waiting(status: Mapping[str, Any], *, cause: str, key: str) -> int:
    """`status`: the object of `tidemill status --json`, in which a part that could not be read is null.

    `key`: a part of the key of the line. That of a limit also has its limit key.
    """
    lines = status["parked_lines"] or []
    return sum(line["jobs"] for line in lines if line["cause"] == cause and key in line["key"])

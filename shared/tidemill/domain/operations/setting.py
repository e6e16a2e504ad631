"""One setting of the runtime configuration, and its entry in the document of all. Pure."""

from datetime import datetime
from typing import Any

from msgspec import Struct


class Setting(Struct, frozen=True, kw_only=True):
    """One setting with its record."""

    name: str
    #: JSON.
    value: Any
    at: datetime
    #: The ARN of the operator as STS verified it, or `unverified:` and a local name.
    by: str
    reason: str
    #: From then on it counts as absent. None: until an operator removes it.
    until: datetime | None = None

    def in_force(self, now: datetime) -> bool:
        return self.until is None or now < self.until

    def encoded(self) -> dict[str, Any]:
        """Its entry, without the name."""
        entry = {
            "value": self.value,
            "at": self.at.isoformat(),
            "by": self.by,
            "reason": self.reason,
        }
        return entry | ({"until": self.until.isoformat()} if self.until else {})


def decoded(name: str, entry: Any) -> Setting | None:
    """None for an entry that this version cannot read, which must not make the others unreadable."""
    try:
        return Setting(
            name=name,
            value=entry["value"],
            at=_time(entry["at"]),
            by=str(entry["by"]),
            reason=str(entry["reason"]),
            until=_time(entry["until"]) if "until" in entry else None,
        )
    except (KeyError, TypeError, ValueError):
        return None


def _time(text: str) -> datetime:
    """Raises `ValueError` for a time without a zone."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"the time {text!r} has no zone")
    return at

"""Remembers whether something was true of other tenants than one a short time ago. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

#: If one of the two is the tenant in question, the other is another one.
_KEPT: Final = 2


class LatestTenants:
    """The two tenants of which it was true last, and when. It is of one thread, or behind a lock."""

    def __init__(self) -> None:
        self._times: dict[str, datetime] = {}

    def note(self, tenant: str, now: datetime) -> None:
        self._times.pop(tenant, None)
        self._times[tenant] = now
        while len(self._times) > _KEPT:
            del self._times[next(iter(self._times))]

    def times(self) -> Mapping[str, datetime]:
        """By tenant, as they are now."""
        return dict(self._times)

    def others(self, tenant: str, *, since: datetime) -> bool:
        """Whether it was true of another tenant after that time."""
        return any(other != tenant and at > since for other, at in self._times.items())

"""What a parked job waits for: a cause other than its time, and within it a line of jobs that share a key."""

import hashlib
import json
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from tidemill.domain.limits.limit_key import LONGEST_KEY, LimitKey
from tidemill.names import Lane

#: A job is released after this long even if nothing else released it. If its cause stands, it is parked again, and
#: keeps its place in the line. So a line that was lost is found again within a day and one reconcile.
LONGEST_PARKED: Final = timedelta(days=1)
#: The members of the key of a cap.
_TENANT: Final = "tenant"
_LANE: Final = "lane"


class Cause(StrEnum):
    """Why a job is parked. An unknown value raises `ValueError`, since a newer version may have written it."""

    #: The limit of its limit key is full, or the cap of its tenant.
    LIMIT = "limit"
    #: An operator has paused its lane, type, tenant, group or limit key.
    PAUSE = "pause"
    #: The deployed code could not load its type, because a job file is broken.
    TYPE = "type"
    #: The breaker of its downstream is open.
    BREAKER = "breaker"
    #: The handler returned `WaitFor`: the job waits alone, for a signal or its timeout.
    SIGNAL = "signal"
    #: The handler raised `MissingInput`: as `SIGNAL`.
    INPUT = "input"


#: Causes without a line: the job has an entry of its own in the index, by the end of its wait.
_ALONE: Final = frozenset({Cause.SIGNAL, Cause.INPUT})


class Line(Struct, frozen=True):
    """The jobs that wait for one thing. The one that was submitted first is released first."""

    cause: Cause
    key: str

    @classmethod
    def for_limit(cls, limit_key: str) -> "Line":
        return cls(Cause.LIMIT, _short(limit_key))

    @classmethod
    def for_pause(cls, target: str) -> "Line":
        return cls(Cause.PAUSE, _short(target))

    @classmethod
    def for_cap(cls, tenant: str, lane: str) -> "Line":
        """The jobs above the cap of their tenant."""
        return cls(Cause.LIMIT, _short(json.dumps({_TENANT: tenant, _LANE: lane})))

    @property
    def limit_key(self) -> LimitKey | None:
        """None for another line."""
        return LimitKey.of(self._parts)

    @property
    def capped(self) -> tuple[str, str] | None:
        """The tenant and lane of a cap; None for others, and for a tenant so long that its hash replaces it."""
        parts = self._parts
        return (parts[_TENANT], parts[_LANE]) if isinstance(parts, dict) and {_TENANT, _LANE} <= parts.keys() else None

    def capped_tenant(self, last: str | None) -> str | None:
        """The tenant of a cap; None for others. A hash in its place is that of `last`: the tenant of the last job."""
        if self.capped:
            return self.capped[0]
        return last if last and any(Line.for_cap(last, lane) == self for lane in Lane) else None

    @property
    def _parts(self) -> Any:
        if self.cause is not Cause.LIMIT:
            return None
        try:
            return json.loads(self.key)
        except ValueError:
            return None

    def __str__(self) -> str:
        if self.capped:
            tenant, lane = self.capped
            return f"cap of tenant {tenant} in lane {lane}"
        return f"{self.limit_key.title if self.limit_key else self.cause} {self.key}"

    @classmethod
    def for_type(cls, name: str) -> "Line":
        return cls(Cause.TYPE, _short(name))

    @classmethod
    def for_breaker(cls, name: str) -> "Line":
        return cls(Cause.BREAKER, _short(name))


class Wait(Struct, frozen=True, kw_only=True):
    """The line that a job waits in. Kept from the park until the settle of the run that follows the release."""

    cause: Cause
    key: str
    #: When it was parked, or when it got a time of its own.
    since: datetime
    #: The job may not start before this time, even if it is released earlier. None for at once.
    not_before: datetime | None = None

    @property
    def line(self) -> Line:
        return Line(self.cause, self.key)

    @property
    def alone(self) -> bool:
        """Whether no line releases it: a signal does, or wake at its `due`."""
        return self.cause in _ALONE


def _short(key: str) -> str:
    """The key, or its SHA-256 if it is longer than an item key and an index key take."""
    return hashlib.sha256(key.encode()).hexdigest() if len(key) > LONGEST_KEY else key

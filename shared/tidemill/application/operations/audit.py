"""The audit log: one entry for each command of an operator that changes jobs. Who, why, which jobs, and how many."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct, field

from tidemill.application.ports import Clock, NewToken


class Outcome(StrEnum):
    """How a command ended."""

    DONE = "done"
    #: It raised an error, or some of its jobs could not be changed.
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One command. It is written before the first change, so a command that was killed has an entry without an end."""

    id: str
    command: str
    began_at: datetime
    #: The ARN of the operator as STS verified it, or `unverified:` and a local name.
    by: str
    reason: str
    #: The options of the command that select jobs, and those that bound it. JSON.
    options: Mapping[str, Any]
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    #: How many jobs were changed, skipped, left. By the names of the result of `--json`.
    counts: Mapping[str, int] = field(default_factory=dict)


class AuditLog(Protocol):
    """Where the entries are."""

    def begin(self, entry: AuditEntry) -> None:
        """Raises `StoreUnavailableError`: then the command must change nothing."""

    def end(self, entry: AuditEntry, *, at: datetime, outcome: Outcome, counts: Mapping[str, int]) -> None:
        """Add the end to an entry. Does nothing if the entry has expired."""

    def entries(self, *, since: datetime | None = None, before: datetime | None = None) -> Iterator[AuditEntry]:
        """The newest first, from `since` to before `before`. An entry may be missing for a second after its write."""


class Auditor:
    """Writes the beginning and the end of one command at a time."""

    def __init__(self, log: AuditLog, *, clock: Clock, new_token: NewToken) -> None:
        self._log = log
        self._clock = clock
        self._new_token = new_token

    def begin(self, command: str, *, by: str, reason: str, options: Mapping[str, Any]) -> AuditEntry:
        entry = AuditEntry(
            id=self._new_token(), command=command, began_at=self._clock(), by=by, reason=reason, options=options
        )
        self._log.begin(entry)
        return entry

    def end(self, entry: AuditEntry, outcome: Outcome, counts: Mapping[str, int]) -> None:
        self._log.end(entry, at=self._clock(), outcome=outcome, counts=counts)

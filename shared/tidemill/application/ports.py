"""What the use cases need of the outside world. Adapters implement these. The job documents are in `job_store`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tidemill.application.job_store import (
    AttemptStore,
    Checkpoint,
    ControlStore,
    GroupStore,
    JobStore,
    NudgeStore,
    PurgeStore,
    ReconcileStore,
    RedriveStore,
    SubmitStore,
    SweepStore,
    Unreadable,
    WakeStore,
    ignore_unreadable,
)
from tidemill.domain.dispatch import Dispatch
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import DeadLetter, Job, Reference, reference_of
from tidemill.domain.limits import Limit

__all__ = [
    "AttemptStore",
    "Checkpoint",
    "Clock",
    "ControlStore",
    "DeadLetterQueue",
    "Draw",
    "Found",
    "GroupStore",
    "JobStore",
    "Lanes",
    "LimitSlot",
    "Limits",
    "NewToken",
    "NudgeStore",
    "OpenGroup",
    "PayloadItem",
    "Payloads",
    "PurgeStore",
    "ReceivedDeadLetter",
    "ReconcileStore",
    "RedriveStore",
    "SubmitStore",
    "SweepStore",
    "TableScan",
    "Unreadable",
    "UnreadableItem",
    "WakeStore",
    "ignore_unreadable",
]

#: The present, as an aware UTC datetime.
Clock = Callable[[], datetime]
#: A fresh token of at most 36 characters, never given twice.
NewToken = Callable[[], str]
#: A draw from [0, 1).
Draw = Callable[[], float]


class Payloads(Protocol):
    """Where payloads are that are too large for a document."""

    def put_away(self, job: Job) -> Job:
        """`job` as it is to be written. A large payload is stored apart, and the job names its location."""

    def load(self, job: Job) -> str:
        """The payload, JSON text, wherever it is. Raises `MalformedDocumentError` when it is gone."""

    def delete(self, job: Job) -> None:
        """Delete what `put_away` stored for this job, if anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSlot:
    """The share of a limit that one run takes while it lasts."""

    #: Limit key: the job type, the key that the payload gives, and the tenant unless the limit spans tenants.
    limit_key: str
    limit: Limit
    #: The owner token of the run.
    token: str
    #: When the run has ended in any case.
    until: datetime
    #: How often in a row the job was held back before.
    holds: int = 0


class Limits(Protocol):
    """The bounds of each key on what runs at once and how often."""

    def acquire(self, slot: LimitSlot, *, now: datetime) -> datetime | None:
        """Take the slot and return None, or return the time at which to try again."""

    def release(self, slot: LimitSlot) -> None:
        """Give the slot back. Does nothing if it no longer belongs to this run."""


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """A group with somebody in it."""

    tenant: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadItem:
    """A payload beside its job. An orphan, unless the document of that job names its location."""

    tenant: str
    job_id: str
    #: As `Job.payload_at`. Never given twice.
    location: str
    #: A document that names it is written a moment later, or by the transaction of whoever asked for it.
    stored_at: datetime
    #: Partition key of the item.
    item_key: str


@dataclass(frozen=True, slots=True)
class UnreadableItem:
    """What this code cannot read."""

    key: str
    error: TidemillError


Found = Job | OpenGroup | PayloadItem | UnreadableItem


class TableScan(Protocol):
    """The whole table, for whoever looks after what was left behind."""

    def segment(self, number: int, *, of: int, overdue_since: datetime) -> Iterator[Sequence[Found]]:
        """What is in one of `of` parts, page by page, read consistently. A page may be empty.

        Of the jobs, those whose `due` is not after that time.
        """

    def discard(self, payload: PayloadItem) -> None:
        """Delete it."""


class Lanes(Protocol):
    """The queues, as publish sees them."""

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[int]:
        """Send these messages; return the indices of those that were not taken."""


@dataclass(frozen=True, slots=True)
class ReceivedDeadLetter:
    """A message found in a dead-letter queue. A bare reference was moved there by SQS: its worker never started."""

    message_id: str
    receipt: str
    body: DeadLetter | Reference | None
    sent_at: datetime
    #: Written by a newer version, which alone can tell what to do with it.
    newer: bool = False

    @property
    def reference(self) -> Reference | None:
        """None for rubbish, which no job waits for."""
        return None if self.body is None else reference_of(self.body)


class DeadLetterQueue(Protocol):
    """One lane's dead-letter queue, as an operator's tool sees it."""

    def receive(self) -> Sequence[ReceivedDeadLetter]:
        """Up to ten letters, hidden from others for a while; none when the queue seems empty."""

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> None: ...

    def put_back(self, dead_letters: Sequence[ReceivedDeadLetter]) -> None:
        """Make these visible again at once."""

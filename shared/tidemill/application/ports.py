"""What the use cases need of the world. Adapters implement these; one contract suite holds for every job store."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from tidemill.domain.dispatch import Dispatch
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import DeadLetter, Job, Reference, reference_of
from tidemill.domain.limits import Limit
from tidemill.domain.outcomes import Settlement

#: The present, as an aware UTC datetime.
Clock = Callable[[], datetime]
#: A fresh token of at most 36 characters, never given twice.
NewToken = Callable[[], str]
#: A draw from [0, 1).
Draw = Callable[[], float]
#: Told of the tenant and id of a document that this code cannot read, and why, while those beside it are read on.
Unreadable = Callable[[str, str, TidemillError], None]


def ignore_unreadable(_tenant: str, _job_id: str, _error: TidemillError) -> None:
    """`Unreadable`, for whoever has nobody to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a handler saves while it runs. None leaves what was saved before."""

    #: JSON text.
    state: str | None = None
    done: int | None = None
    total: int | None = None


class JobStore(Protocol):
    """The job documents.

    Every write is one conditional call. It raises `WriteRefusedError` with the document that refused it, and
    `StoreUnavailableError` when it is unknown whether it took effect. A write that the SDK sent twice and that
    was applied the first time succeeds.
    """

    def insert_if_absent(self, job: Job) -> Job:
        """Write a new job unless one with its id is there and has not expired; return it as written.

        A job of a group is given its place in it, and waits if it is not the head.
        """

    def claim(self, reference: Reference, *, token: str, now: datetime, lease_end: datetime) -> Job:
        """Take the job to run it until `lease_end`; return it as claimed."""

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> None:
        """End the run that claimed `job`, with the handler's own writes and follow-up jobs in the same transaction.

        A job that is to live on is refused once somebody has asked for its end: the document then is still this
        run's. Raises `EffectRefusedError` or `TransactionConflictError` when what goes with it stands in the way,
        also `TransactionTooLargeError` when it is more than a transaction holds.
        """

    def release(self, job: Job, *, due: datetime) -> None:
        """Give the claim back as if it had not been made, to run again at `due`."""

    def unclaim(self, reference: Reference, *, token: str, now: datetime) -> None:
        """Give a claim back whose answer was lost, if it was made after all, as if it had not been."""

    def checkpoint(self, job: Job, saved: Checkpoint, *, now: datetime) -> bool:
        """Save how far the run that claimed `job` is. True when somebody has asked for its end."""

    def cancel(self, job: Job, *, now: datetime) -> Job:
        """End a job that does not run, or ask a running one to end; return it as written. `job` may be out of date."""

    def wake(self, job: Job) -> None:
        """Put a scheduled job on its lane; its `due` stays."""

    def nudge(self, job: Job, *, now: datetime, limit: timedelta, last: bool = False) -> None:
        """Have a live job, overdue by more than `limit` and not nudged within it, dispatched once more.

        With `last`, one that waits on its lane dies as undeliverable instead.
        """

    def redrive(self, job: Job, *, token: str, now: datetime, by: str) -> Job:
        """Give a dead job another life; return it as written: queued, or waiting if its group has passed it."""

    def advance(self, tenant: str, group: str, *, now: datetime) -> Job | None:
        """Move the head of a group past its ended jobs, and put the next on its lane.

        Returns that job as written, or None when the head has not ended, blocks, or is the last. May be repeated.
        """

    def forget(self, job: Job) -> None:
        """Delete a terminal job that has not changed since it was read. Does nothing if it is gone."""

    def get(self, tenant: str, job_id: str) -> Job | None:
        """Read one job, expired or not, consistently."""

    def get_many(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable = ignore_unreadable) -> list[Job]:
        """Read the jobs of these (tenant, id), consistently, in any order, leaving out those that are not there."""

    def scheduled(self, *, before: datetime, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        """Every scheduled job whose `due` is not after `before`, the earliest first."""

    def dead(self, *, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        """Every dead job, oldest death first, each read from its document."""

    def overdue(self, *, before: datetime, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        """Every live job whose `due` is not after `before`, in any order, by reading the whole table."""

    def ended(self, *, before: datetime, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        """Every terminal job that ended before that, in any order, by reading the whole table."""


class Payloads(Protocol):
    """Where payloads are that are too large for a document."""

    def put_away(self, job: Job) -> Job:
        """`job` as it is to be written: if its payload is large, stored at a place of its own, which the job names."""

    def load(self, job: Job) -> str:
        """The payload, JSON text, wherever it is. Raises `MalformedDocumentError` when it is gone."""

    def delete(self, job: Job) -> None:
        """Delete what `put_away` stored for this job, if anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What one run takes of what the limits of its key leave."""

    #: The type, the key that its payload gives, and whose it is.
    key: str
    limit: Limit
    #: The owner token of the run.
    token: str
    #: When the run has ended in any case.
    until: datetime
    #: How often in a row the job was held back before.
    holds: int = 0


class Limits(Protocol):
    """The bounds of each key on what runs at once and how often."""

    def enter(self, place: Place, *, now: datetime) -> datetime | None:
        """Take the place. None, or when it is worth trying again."""

    def leave(self, place: Place) -> None:
        """Give the place back. Does nothing if it is no longer this run's."""


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """A group with somebody in it."""

    tenant: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadItem:
    """A payload beside its job. An orphan, unless the document of that job names the place."""

    tenant: str
    job_id: str
    #: As `Job.payload_at`. Never given twice.
    place: str
    #: A document that names it is written a moment later, or by the transaction of whoever asked for it.
    stored_at: datetime
    #: Of the item.
    key: str


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

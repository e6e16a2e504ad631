"""What the use cases need of the world. Adapters implement these; one contract suite holds for every job store."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from shared.domain.dispatch import Dispatch
from shared.domain.job import Job, Letter, Reference, reference_of
from shared.domain.outcomes import Settlement

#: The present, as an aware UTC datetime.
Clock = Callable[[], datetime]
#: A fresh token of at most 36 characters, never given twice.
NewToken = Callable[[], str]
#: A draw from [0, 1).
Draw = Callable[[], float]


class JobStore(Protocol):
    """The job documents.

    Every write is one conditional call. It raises `WriteRefusedError` with the document that refused it, and
    `StoreUnavailableError` when it is unknown whether it took effect. A write that the SDK sent twice and that
    was applied the first time succeeds.
    """

    def insert_if_absent(self, job: Job) -> None:
        """Write a new job unless one with its id is there and has not expired."""

    def claim(self, reference: Reference, *, token: str, now: datetime, lease_end: datetime) -> Job:
        """Take the job to run it until `lease_end`; return it as claimed."""

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> None:
        """End the run that claimed `job`, with the handler's own writes in the same transaction.

        Raises `EffectRefusedError` or `TransactionConflictError` when those writes stand in the way.
        """

    def release(self, job: Job, *, due: datetime) -> None:
        """Give the claim back as if it had not been made, to run again at `due`."""

    def nudge(self, job: Job, *, now: datetime, limit: timedelta) -> None:
        """Have a live job, overdue by more than `limit` and not nudged within it, dispatched once more."""

    def redrive(self, job: Job, *, token: str, now: datetime, by: str) -> Job:
        """Give a dead job another life; return it as queued."""

    def get(self, tenant: str, job_id: str) -> Job | None:
        """Read one job, expired or not, consistently."""

    def get_many(self, keys: Sequence[tuple[str, str]]) -> list[Job]:
        """Read the jobs of these (tenant, id), consistently, in any order, leaving out those that are not there."""

    def dead(self) -> Iterator[Job]:
        """Every dead job, oldest death first within a shard, each read from its document."""

    def overdue(self, *, before: datetime) -> Iterator[Job]:
        """Every live job whose `due` is not after `before`, in any order, by reading the whole table."""


class Lanes(Protocol):
    """The queues, as publish sees them."""

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[int]:
        """Send these messages; return the indices of those that were not taken."""


@dataclass(frozen=True, slots=True)
class ReceivedLetter:
    """A message found in a dead-letter queue. A bare reference was moved there by SQS: its worker never started."""

    message_id: str
    receipt: str
    body: Letter | Reference | None
    sent_at: datetime
    #: Written by a newer version, which alone can tell what to do with it.
    newer: bool = False

    @property
    def reference(self) -> Reference | None:
        """None for rubbish, which no job waits for."""
        return None if self.body is None else reference_of(self.body)


class LetterBox(Protocol):
    """One lane's dead-letter queue, as an operator's tool sees it."""

    def receive(self) -> Sequence[ReceivedLetter]:
        """Up to ten letters, hidden from others for a while; none when the queue seems empty."""

    def delete(self, letters: Sequence[ReceivedLetter]) -> None: ...

    def put_back(self, letters: Sequence[ReceivedLetter]) -> None:
        """Make these visible again at once."""

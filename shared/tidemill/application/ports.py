"""What the use cases need of the outside world. Adapters implement these. The job documents are in `job_store`."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

from tidemill.application.job_store import (
    WHOLE,
    AttemptStore,
    BatchStore,
    Checkpoint,
    ControlStore,
    DebounceStore,
    FlowStore,
    GroupStore,
    JobStore,
    MigrationStore,
    NudgeStore,
    OwedStore,
    Part,
    PublishStore,
    PurgeStore,
    ReconcileStore,
    RedriveStore,
    ReleaseStore,
    SettleJointly,
    Settling,
    SubmitStore,
    SupersedeStore,
    SweepStore,
    UndoStore,
    Unreadable,
    WakeStore,
    ignore_unreadable,
)
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.dispatch.job_message import DeadLetter, Reference, reference_of
from tidemill.domain.job import Job
from tidemill.domain.limits.adaptive_limit import Adapted, ConcurrencyChange, RunSample
from tidemill.domain.limits.limit_state import LimitState, Turn, reservation_name
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.waiting.waiting import Line

__all__ = [
    "WHOLE",
    "AttemptStore",
    "BatchStore",
    "Checkpoint",
    "Clock",
    "ControlStore",
    "DeadLetterQueue",
    "DebounceStore",
    "Draw",
    "Entered",
    "FlowStore",
    "Found",
    "GroupStore",
    "JobStore",
    "Lanes",
    "LimitSlot",
    "Limits",
    "MigrationStore",
    "NewToken",
    "NudgeStore",
    "OpenGroup",
    "OwedStore",
    "Part",
    "PayloadItem",
    "Payloads",
    "PublishStore",
    "PurgeStore",
    "ReceivedDeadLetter",
    "ReconcileStore",
    "RedriveStore",
    "Refusal",
    "ReleaseStore",
    "ScanPage",
    "SettleJointly",
    "Settling",
    "SubmitStore",
    "SupersedeStore",
    "SweepStore",
    "TableScan",
    "UndoStore",
    "Unreadable",
    "UnreadableItem",
    "WakeStore",
    "ignore_unreadable",
]
#: The present, as an aware UTC datetime.
Clock = Callable[[], datetime]
#: A fresh token of at most 36 characters. Each call returns another one.
NewToken = Callable[[], str]
#: A random number from [0, 1).
Draw = Callable[[], float]
#: The most statements of one call.
#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
MOST_TOGETHER: Final = 25
#: One job has a call of its own: its insert costs the same, and its claim less, since that reads nothing.
FEWEST_TOGETHER: Final = 2


class Payloads(Protocol):
    """The payloads that are too large for a document."""

    def put_away(self, job: Job, *, now: datetime | None = None) -> Job:
        """`job` as it is to be written. A large payload is stored apart, and the job names its location.

        A payload that replaces one needs `now`: reconcile deletes a payload that is old and that no document names.
        By default it is as old as its job.
        """

    def stays_inline(self, job: Job) -> bool:
        """Whether `put_away` would store nothing."""

    def load(self, job: Job) -> str:
        """The payload as JSON text. Raises `MalformedDocumentError` if it is gone."""

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        """Delete the payload of that job at `location`, as `Job.payload_at`. No-op if it is None or gone.

        Only if no document names it, nor will: see `OwingPayloads`.
        """


class WriterPayloads(Payloads, Protocol):
    """For those that write jobs: see `OwingPayloads`."""

    def delete_later(self, job: Job) -> None:
        """Delete the payload of `job` in a minute, unless its document names it then. No-op for one inline.

        For a job whose write may not have arrived yet. Best effort: if it cannot be owed, the payload stays.
        """


class LimitSlot(Struct, frozen=True, kw_only=True):
    """The share of a limit that one run takes while it lasts."""

    #: Its key is made from the job type, the key that the payload gives, and the tenant unless the limit spans them.
    line: Line
    #: With the overrides of operators.
    limit: Limit
    #: The owner token of the run.
    token: str
    #: When the run has ended in any case.
    until: datetime
    #: The tenant and id of its job.
    job: tuple[str, str]
    #: The job has waited in this line, and its turn has come.
    released: bool = False
    #: Without the overrides; None if the type declares no limit.
    declared: Limit | None = None
    #: What the run measured, for an adaptive concurrency. None if its handler did not run.
    sample: RunSample | None = None

    @property
    def lasting(self) -> Limit:
        """For wake, which applies the overrides of its own time to it."""
        return self.declared or self.limit

    @property
    def reservation(self) -> str:
        return reservation_name(*self.job)


class Entered(Struct, frozen=True, kw_only=True):
    """The run has its slot. `line_stands`: jobs may wait for it."""

    line_stands: bool = False
    #: The number of an adaptive concurrency, and the slots that are in use, this one included.
    adapted: Adapted | None = None
    taken: int = 0


class Limits(Protocol):
    """For each limit key, the bounds on how many jobs run at once and how often, and whose turn is next."""

    def acquire(self, slot: LimitSlot, *, now: datetime) -> Entered | datetime | Line:
        """Take the slot; or return the time that the rate gives to the job, or the line in which to park it.

        Wake looks at that line from then on, until it is clear that no job waits in it. Raises `StoreUnavailableError`
        when it is unknown whether the slot was taken.
        """

    def release(self, slot: LimitSlot, change: ConcurrencyChange | None = None) -> bool:
        """Give the slot back, and apply the change of its run. True if neither, because jobs may wait in its line.

        Raises `OutdatedChangeError`, having done neither.
        """

    def vacate(self, line: Line, name: str, change: ConcurrencyChange | None = None) -> None:
        """Give back the slot of that name, though jobs may wait for it. Wake finds them.

        Raises `OutdatedChangeError` for a change that cannot be applied. Then the slot may still be taken.
        """

    def look(self, line: Line) -> LimitState:
        """The present use of the limit, read consistently."""

    def reserve(
        self,
        line: Line,
        state: LimitState,
        turns: Sequence[Turn],
        *,
        leaving: str | None,
        now: datetime,
        change: ConcurrencyChange | None = None,
    ) -> bool:
        """Reserve these turns, and give back the slot `leaving` with them. False if `state` is out of date.

        `change` is that of the leaving run. The turns count with it, and `state` is as it was read.
        """

    def list_line(self, line: Line, rate: Rate, *, job: tuple[str, str], now: datetime) -> None:
        """Wake looks at this line from now on, and empties it at this rate once its cause has ended.

        For a cause that the limit item does not know. `job` is the tenant and id of a job that is about to be parked.
        Raises `StoreUnavailableError`.
        """

    def clear(self, line: Line, state: LimitState) -> None:
        """Wake need not look at this line any more, unless a job has found no room since `state`."""

    def lines(self, part: Part) -> Iterator[Line]:
        """The lines that wake has to look at, of this part of them."""


class OpenGroup(Struct, frozen=True):
    """A group that holds jobs."""

    tenant: str
    group: str


class PayloadItem(Struct, frozen=True, kw_only=True):
    """A payload beside its job. An orphan, unless the document of that job names its location."""

    tenant: str
    job_id: str
    #: The location, as in `Job.payload_at`. It is never given twice.
    location: str
    #: A document that names it is written a moment later, or by the transaction of the caller.
    stored_at: datetime
    #: Partition key of the item.
    item_key: str


class UnreadableItem(Struct, frozen=True):
    """An item that this code cannot read or repair."""

    key: str
    error: Exception


Found = Job | OpenGroup | PayloadItem | UnreadableItem


class ScanPage(Struct, frozen=True, kw_only=True):
    """One page of a segment of the table."""

    #: May be empty: most items need nothing.
    found: Sequence[Found]
    #: The key after which the next page begins. None at the end of the segment.
    cursor: str | None
    #: The number of items that the page read, and their price in read units.
    items: int
    read_units: float


class TableScan(Protocol):
    """The whole jobs table, for reconcile."""

    def page(self, segment: int, *, of: int, after: str | None, overdue_since: datetime) -> ScanPage:
        """The next items in one of `of` segments of the table. `after` is None for the first page.

        Jobs are included if their `due` is not after `overdue_since`. The items may be some seconds old. So a repair
        must be conditional on what was read, or read again.
        """

    def cursor_after(self, found: Found) -> str:
        """A cursor that begins after this item of a page."""

    def discard(self, payload: PayloadItem) -> None:
        """Delete an orphan."""


class Refusal(Struct, frozen=True):
    """SQS did not accept, or not delete, the message at `index`."""

    index: int
    #: SQS blames the message, or the queue is missing or denied. So a repeat is refused, too.
    sender_fault: bool = False
    error: str = "SQS refused the message"


class Lanes(Protocol):
    """The queues of the lanes, for publish."""

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[Refusal]:
        """Send these messages; return those that SQS did not accept."""


class ReceivedDeadLetter(Struct, frozen=True):
    """A DLQ message. Its body is a bare `Reference` if SQS moved it there because its worker never started."""

    message_id: str
    receipt: str
    body: DeadLetter | Reference | None
    sent_at: datetime
    #: A newer version of the code wrote it, and only that version can handle it.
    newer: bool = False

    @property
    def reference(self) -> Reference | None:
        """None if the body is unreadable: then no job waits for this message."""
        return None if self.body is None else reference_of(self.body)


class DeadLetterQueue(Protocol):
    """The dead-letter queue of one lane, for operators and reconcile."""

    def receive(self, *, hidden_for: timedelta) -> Sequence[ReceivedDeadLetter]:
        """Up to ten messages, hidden from other receivers for that long. Empty when the queue seems empty."""

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> Sequence[Refusal]:
        """Returns those that SQS did not delete."""

    def hide(self, dead_letters: Sequence[ReceivedDeadLetter], *, duration: timedelta) -> None:
        """Hide these messages for `duration` from now. Zero makes them visible at once.

        One that SQS refuses twice stays hidden for as long as before.
        """

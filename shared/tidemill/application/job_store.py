"""What each use case needs of the job documents: one narrow protocol for each consumer.

Every write is one conditional call. It raises `WriteRefusedError` with the document that refused it, and
`StoreUnavailableError` when it is unknown whether the write took effect. A write that the SDK sent twice, and whose
first send was applied, succeeds. An adapter implements all of them, as `JobStore`, and passes one contract suite.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.batches.batches import Page
from tidemill.domain.corrections.undo import Undone
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.errors import TidemillError
from tidemill.domain.flows.flow_cursor import Cursor
from tidemill.domain.job import OPERATOR, Job
from tidemill.domain.states import State
from tidemill.domain.steps.steps import Step
from tidemill.domain.waiting.signals import Signal
from tidemill.domain.waiting.waiting import Line, Wait
from tidemill.names import WAKE_INTERVAL_SECONDS

#: Called with the tenant and id of a document that this code cannot read, and the reason. The read goes on.
Unreadable = Callable[[str, str, TidemillError], None]


def ignore_unreadable(_tenant: str, _job_id: str, _error: TidemillError) -> None:
    """`Unreadable` that reports nothing."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    """What a handler saves while it runs. None keeps the value that was saved before."""

    #: JSON text.
    state: str | None = None
    done: int | None = None
    total: int | None = None


class _ReadMany(Protocol):
    def get_many(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable = ignore_unreadable) -> list[Job]:
        """Read the jobs of these (tenant, id), consistently, in any order, without those that do not exist."""


class _Read(Protocol):
    def get(self, tenant: str, job_id: str) -> Job | None:
        """Read one job, expired or not, consistently."""


class _Wake(Protocol):
    def wake(self, job: Job, *, now: datetime) -> None:
        """Queue a scheduled job; its `due` stays."""


class Part(Struct, frozen=True):
    """A share of the scheduled jobs and of the owed work: each is in one of `count` parts. `number` counts from 0."""

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 0 <= self.number < self.count:
            raise ValueError(f"part {self.number} of {self.count} does not exist: count from 0")

    def at(self, now: datetime) -> "Part":
        """The part of the same caller at `now`: the parallel callers of an interval of wake take turns.

        So if one of them is missing, another does its part an interval later.
        """
        turns = int(now.timestamp()) // WAKE_INTERVAL_SECONDS
        return Part((self.number + turns) % self.count, self.count)


WHOLE: Final = Part(0, 1)


class _Unpark(Protocol):
    def unpark(self, job: Job, *, now: datetime, due: datetime) -> None:
        """Queue a parked job, to run at `due`."""


class _Redrive(Protocol):
    def redrive(self, job: Job, *, token: str, now: datetime, by: str, reason: str = "", edited: bool = False) -> Job:
        """Requeue a dead job with a fresh set of attempts; return it as written.

        It is queued, or waiting if its group has passed it. `by` and `reason` are for the audit entry. With `edited`,
        the payload of `job`, which `Payloads.put_away` has stored, replaces the one that it had.
        """


class SubmitStore(_Read, Protocol):
    """For `Submit`."""

    def insert_if_absent(self, job: Job, *, batch: Job | None = None) -> Job:
        """Write a new job unless a job with its id exists and has not expired; return it as written.

        A job of a group gets its position in the group, and waits if it is not the head. A member of `batch` gets its
        place there. Raises `BatchRefusedError` if it can have none.
        """


class GroupStore(Protocol):
    """For publish, and for every other use case after which a group may go on."""

    def advance(self, tenant: str, group: str, *, now: datetime) -> Job | None:
        """Move the head of a group past its ended jobs, and queue the next job.

        Returns that job as written, or None when the head has not ended, blocks, or is the last. Safe to repeat.
        """


class PublishStore(_ReadMany, GroupStore, Protocol):
    """For publish."""

    def park(self, job: Job, wait: Wait, *, now: datetime) -> Job:
        """Park a queued or retrying job before its message is sent; return it as written."""


class ReleaseStore(_Read, _Unpark, Protocol):
    """For the release of parked jobs."""

    def parked(
        self, line: Line, *, most: int, since: datetime | None = None, unreadable: Unreadable = ignore_unreadable
    ) -> Sequence[Job]:
        """The first parked jobs of a line, in its order, each read from its document. The newest may be missing.

        `since` passes over the jobs that were submitted before.
        """


class AttemptStore(ReleaseStore, _Redrive, GroupStore, Protocol):
    """For the worker: claim a job, run it, settle it, and let its group go on.

    The worker redrives a dead job whose DLQ message an operator moved back to the lane.
    """

    def claim(self, reference: Reference, *, token: str, now: datetime, lease_end: datetime, worker: str = "") -> Job:
        """Claim the job until `lease_end`; return it as claimed. `worker` is for its history."""

    def checkpoint(self, job: Job, saved: Checkpoint, *, now: datetime) -> bool:
        """Save the progress of the run that claimed `job`. True when a cancel was requested."""

    def record_step(self, job: Job, step: Step) -> Job:
        """Add a step to those that the run which claimed `job` knows; return the job as written."""

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> Sequence[Job]:
        """End the run that claimed `job`, with the handler's own writes and follow-up jobs in the same transaction.

        Returns the follow-up jobs that existed before and were not written, so that no document names their payloads.
        Raises `KeyReusedError` if such a job has another body; nothing is written then.
        A settlement after which the job lives on is refused once a cancel was requested; the run keeps its claim then.
        Raises `EffectRefusedError` or `TransactionConflictError` when another item of the transaction stands in the
        way, and `TransactionTooLargeError` when the settlement is more than one transaction holds.
        """

    def release(self, job: Job, *, now: datetime, due: datetime) -> None:
        """Give the claim back, and its attempt, to run again at `due`."""

    def unclaim(self, reference: Reference, *, token: str, now: datetime) -> None:
        """Give back a claim whose answer was lost, and its attempt, if the claim was applied."""


class Settling(Struct, frozen=True, eq=False):
    """A settle that waits to be written: its job, as claimed, what to write, and the time of the decision."""

    job: Job
    settlement: Settlement
    now: datetime


#: Settle jobs that succeeded together, each as `AttemptStore.settle` does, in as few transactions as possible. Without
#: follow-up jobs. For each, in their order: None if it was written, or the error that its settle raised.
SettleJointly = Callable[[Sequence[Settling]], Sequence[TidemillError | None]]


class WakeStore(_Unpark, _Wake, Protocol):
    """For wake."""

    def scheduled(
        self, *, before: datetime, part: Part = WHOLE, unreadable: Unreadable = ignore_unreadable
    ) -> Iterator[Job]:
        """The scheduled jobs of this part, and those that wait alone, whose `due` is not after `before`.

        The earliest is first.
        """


class NudgeStore(ReleaseStore, _Wake, Protocol):
    """For the nudge of one job."""

    def nudge(self, job: Job, *, now: datetime, limit: timedelta, last: bool = False) -> None:
        """Dispatch a live job again that is overdue by more than `limit` and was not nudged within it.

        With `last`, a job that waits on its lane dies as undeliverable instead.
        """

    def cancel(self, job: Job, *, now: datetime, by: str = OPERATOR, reason: str = "", as_read: bool = False) -> Job:
        """Request a cancel, or cancel the job, as `ControlStore.cancel` does."""


class OwedStore(NudgeStore, GroupStore, Protocol):
    """For the work that publish handed over."""

    def resend(self, job: Job, *, now: datetime) -> None:
        """Make publish send the message of a queued, retrying or dead job again; nothing else changes."""


class SweepStore(NudgeStore, _ReadMany, Protocol):
    """For the sweep of a dead-letter queue."""


class RedriveStore(SweepStore, _Redrive, Protocol):
    """For the operator's redrive."""

    def dead(self, wanted: JobFilter = ANY_JOB, *, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        """The dead jobs that match, oldest death first, each read from its document just before it is yielded.

        Documents are read only of jobs whose tenant, id and time of death match. Holds some hundred jobs at a time.
        """


class ReconcileStore(SweepStore, GroupStore, Protocol):
    """For reconcile."""

    def overdue(
        self,
        *,
        before: datetime,
        unreadable: Unreadable = ignore_unreadable,
        spend: Callable[[float], object] = lambda _units: None,
    ) -> Iterator[Job]:
        """Every live job whose `due` is not after `before`, in any order. Reads the whole table.

        Calls `spend` with the read units of each page before it reads the next one.
        """


class ControlStore(_Read, _Redrive, Protocol):
    """For a caller's own jobs over HTTP."""

    def cancel(self, job: Job, *, now: datetime, by: str = OPERATOR, reason: str = "", as_read: bool = False) -> Job:
        """Cancel a job that does not run, or request the cancel of a running one; return it as written.

        `job` may be out of date; with `as_read` it may not. `by` and `reason` are for the audit entry.
        """

    def signal(self, job: Job, signal: Signal, *, wakes: bool) -> Job:
        """Add a signal to a job that has not changed since it was read; return it as written.

        With `wakes`, queue the job as well, which waits for it.
        """


class UndoStore(Protocol):
    """For undo."""

    def undo(self, done: Job, job: Job, entry: Undone) -> Job:
        """Insert `job` and mark `done`, in one transaction; return `job` as written.

        Refused if `done` has not succeeded, is undone already or has expired.
        """


class SupersedeStore(UndoStore, _Read, Protocol):
    """For jobs that supersede others."""

    def supersede(self, earlier: Job, job: Job) -> Job:
        """Insert `job` and mark `earlier`, in one transaction; return `job` as written.

        Refused if `earlier` has another state, undo or superseding job than when it was read, or has expired.
        """

    def cancel(self, job: Job, *, now: datetime, by: str = OPERATOR, reason: str = "", as_read: bool = False) -> Job:
        """Request a cancel, or cancel the job, as `ControlStore.cancel` does."""


class DebounceStore(_Read, Protocol):
    """For debounced jobs."""

    def debounced_job_id(self, tenant: str, name: str) -> str | None:
        """The id of the job that the last burst of this name began, read consistently."""

    def begin_debounce(self, job: Job, *, after: str | None) -> Job:
        """Insert the job of a new burst, whose name leads to it from then on; return it as written.

        `after` is the job to which the name leads now. Refused if another burst has begun since. Raises
        `TransactionConflictError` if other submissions were faster for a second.
        """

    def join_debounce(self, job: Job, changed: Job, *, by: str, now: datetime, replaces: bool) -> Job:
        """Write the time that a later submission gave to `job`, as it was read, and with `replaces` the payload.

        Returns the job as written. `by` is fresh for each submission. Refused if a worker has claimed the job since, or
        another write has moved it or the payload that it has stored apart.
        """


class PurgeStore(_Read, GroupStore, Protocol):
    """For purge."""

    def forget(self, job: Job) -> None:
        """Delete a terminal job that has not changed since it was read. Does nothing if it is gone."""


class BatchStore(_Read, _ReadMany, Protocol):
    """For the job of a batch: the pages on which its members are listed."""

    def pages(self, batch: Job) -> Sequence[Page]:
        """The pages that exist, read consistently."""

    def close(self, batch: Job, *, now: datetime) -> None:
        """Let no more members join. Raises `TransactionConflictError` while some do."""

    def record(
        self, batch: Job, page: Page, ended: Mapping[State, frozenset[str]], *, now: datetime, last: bool = False
    ) -> None:
        """Note which members of the page have ended, and in which state.

        With `last`, the page is kept only for as long as its batch.
        """


class FlowStore(_Read, _ReadMany, Protocol):
    """For flows: the documents of their nodes, the cursors of the nodes, and the nodes that were added."""

    def cursors(self, flow: Job, nodes: Sequence[int]) -> Mapping[int, Cursor]:
        """The cursor of each of these nodes, read consistently; the default one for a node without an item."""

    def move(self, flow: Job, node: int, cursor: Cursor) -> Cursor | None:
        """Write a cursor unless it has changed since the version that it holds; return it as written.

        None if it has changed.
        """

    def look(self, flow: Job, *, now: datetime) -> None:
        """Make sure that a run of the flow begins after this call. The flow is as it was read, consistently.

        Raises `WriteRefusedError` if it has changed since, so that another answer may be right.
        """

    def added(self, flow: Job, numbers: Sequence[int]) -> Sequence[str]:
        """The additions of these numbers as JSON texts, in their order, without those that are missing."""

    def add(self, flow: Job, addition: str, *, now: datetime) -> Job:
        """Write the next addition, and count it in the document of the flow, in one transaction; return the flow.

        The transaction makes sure that a run of the flow begins after it, as `look`. Raises `WriteRefusedError` if the
        flow has changed since it was read.
        """


class MigrationStore(Protocol):
    """For migrations."""

    def rewrite(self, job: Job, stored: Job) -> None:
        """Replace the payload of a job that does not run and has not changed since it was read, by that of `stored`."""


class JobStore(
    SubmitStore,
    PublishStore,
    AttemptStore,
    WakeStore,
    RedriveStore,
    ReconcileStore,
    ControlStore,
    SupersedeStore,
    DebounceStore,
    PurgeStore,
    OwedStore,
    MigrationStore,
    Protocol,
):
    """All of them. The contract suite runs against this."""

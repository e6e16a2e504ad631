"""Recover: dispatch the jobs of a restored table anew, and find those that may run twice and those that are missing.

No function uses the table yet, so nothing else changes it. Each write is conditional nevertheless, and a call that was
interrupted is repeated: it skips the jobs that this recovery has dispatched.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeVar

from msgspec import Struct

from tidemill.application.passes.pace import Pace
from tidemill.application.ports import Clock, OpenGroup, UnreadableItem
from tidemill.domain.errors import MalformedDocumentError, WriteRefusedError
from tidemill.domain.flows.flows import starts_nodes
from tidemill.domain.history import Why
from tidemill.domain.job import Job
from tidemill.domain.states import State

_In = TypeVar("_In")
_Out = TypeVar("_Out")
#: `map`, or one with threads.
Mapper = Callable[[Callable[[_In], _Out], Iterable[_In]], Iterable[_Out]]


class Recovery(Struct, frozen=True, kw_only=True):
    """One recovery of one table. The table keeps it."""

    #: Above that of every function and message so far.
    epoch: int
    #: The name of the table that was recovered: a restored copy of it needs a recovery of its own.
    table: str
    began_at: datetime
    #: The name of the table in use, whose place it takes.
    replaces: str


class RecoveryLog(Protocol):
    """Where the table keeps its last recovery."""

    def read(self) -> Recovery | None: ...

    def write(self, recovery: Recovery, *, seen: Recovery | None) -> None:
        """Raises `ConfigurationConflictError` if another operator has written one since `seen` was read."""


class RecoverStore(Protocol):
    """The writes of a recovery."""

    def resend(self, job: Job, *, now: datetime) -> None: ...

    def release(self, job: Job, *, now: datetime, due: datetime, cause: Why) -> None: ...

    def advance(self, tenant: str, group: str, *, now: datetime) -> Job | None: ...


#: Reads jobs by tenant and id.
ReadJobs = Callable[[Sequence[tuple[str, str]]], Sequence[Job]]


class Page(Struct, frozen=True, kw_only=True):
    """One page of the restored table, or of the former one."""

    found: Sequence[Job | OpenGroup | UnreadableItem]
    #: The key after which the next page begins. None at the end.
    cursor: str | None
    read_units: float


ReadPage = Callable[[str | None], Page]


class Fate(StrEnum):
    """What a recovery does with a job, or with what is not a job of the restored table."""

    #: Queued or retrying: its message is sent again.
    DISPATCHED = "dispatched"
    #: It ran at the restore point. Its attempt is given back, and it starts again at once.
    GIVEN_BACK = "given_back"
    #: Dead: its dead-letter message is sent again.
    DEAD = "dead"
    #: Scheduled, parked or waiting for its group. It starts when what it waits for comes.
    WAITS = "waits"
    #: It was accepted after the restore point, so only the former table has it.
    MISSING = "missing"
    UNREADABLE = "unreadable"


class Recovered(Struct, frozen=True, kw_only=True):
    """One job of the report."""

    tenant: str
    job_id: str
    type: str
    #: The state as restored; for a missing job, the state in the former table.
    state: str
    fate: Fate
    #: It has run after the restore point, or that is unknown, and it will run.
    may_run_again: bool = False


def recovery_of(found: Recovery | None, *, table: str, replaces: str, deployed_epoch: int, now: datetime) -> Recovery:
    """The recovery of `table` to continue, or a new one. `found` is the one that the table has."""
    same = found is not None and found.table == table and found.replaces == replaces
    if found and same and found.epoch > deployed_epoch:
        return found
    epoch = max(found.epoch if found else 0, deployed_epoch) + 1
    return Recovery(epoch=epoch, table=table, replaces=replaces, began_at=now)


def ran_since(restored: Job, former: Job | None) -> bool:
    """Whether a run of the job may have begun after the restore point. `former` is None if the document is gone.

    Each claim leaves its time, so an unchanged time means that no run has begun.
    """
    return (
        former is None
        or former.created_at != restored.created_at
        or former.lease.claimed_at != restored.lease.claimed_at
    )


class Recoverer:
    """`former` reads the table that the restored one replaces; None if it cannot be read."""

    def __init__(
        self,
        *,
        store: RecoverStore,
        former: ReadJobs | None,
        recovery: Recovery,
        clock: Clock,
        pace: Pace,
        change: bool,
        in_parallel: Mapper[Job | OpenGroup | UnreadableItem, Recovered | None] = map,
    ) -> None:
        """Without `change`, only the report is made."""
        self._store = store
        self._former = former
        self._recovery = recovery
        self._clock = clock
        self._pace = pace
        self._in_parallel = in_parallel
        self._change = change

    def run(self, read: ReadPage) -> Iterator[Recovered]:
        """Recover each live and each dead job, and each group. Raises `StoreUnavailableError`: then call it again."""
        for page in pages(read, self._pace):
            live = [found for found in page.found if isinstance(found, Job) and not found.state.terminal]
            former = self._former([(job.tenant, job.id) for job in live]) if self._former else ()
            ran = self._ran(live, former)
            recovered = self._in_parallel(lambda found, ran=ran: self._recover(found, ran), page.found)  # type: ignore[misc]
            yield from filter(None, recovered)

    def _ran(self, live: Sequence[Job], former: Sequence[Job]) -> set[tuple[str, str]]:
        by_key = {(job.tenant, job.id): job for job in former}
        return {
            (job.tenant, job.id)
            for job in live
            # A run at the restore point went on after it.
            if job.state is State.RUNNING or self._given_back(job) or ran_since(job, by_key.get((job.tenant, job.id)))
        }

    def _recover(self, found: Job | OpenGroup | UnreadableItem, ran: set[tuple[str, str]]) -> Recovered | None:
        match found:
            case UnreadableItem():
                tenant, _, job_id = found.key.rpartition("#")
                return Recovered(tenant=tenant, job_id=job_id, type="", state="", fate=Fate.UNREADABLE)
            case OpenGroup():
                return self._advance(found) if self._change else None
        fate = _fate(found)
        if self._change and not self._done(found):
            self._dispatch(found, fate)
        return Recovered(
            tenant=found.tenant,
            job_id=found.id,
            type=found.type,
            state=found.state,
            fate=fate,
            may_run_again=(found.tenant, found.id) in ran,
        )

    def _advance(self, found: OpenGroup) -> Recovered | None:
        """Its head may have ended just before the restore point. No stream has the record of that."""
        try:
            self._store.advance(found.tenant, found.group, now=self._clock())
        except MalformedDocumentError:
            # Its head or next job. A repeat of the command would end here, too.
            return Recovered(tenant=found.tenant, job_id=found.group, type="", state="", fate=Fate.UNREADABLE)
        return None

    def _dispatch(self, job: Job, fate: Fate) -> None:
        now = self._clock()
        try:
            if fate is Fate.GIVEN_BACK:
                self._store.release(job, now=now, due=now, cause=Why.RESTORED)
            elif fate in {Fate.DISPATCHED, Fate.DEAD}:
                self._store.resend(job, now=now)
        except WriteRefusedError:
            # A second call of the command has dispatched it since it was read.
            return

    def _done(self, job: Job) -> bool:
        """Whether an earlier call of this recovery has dispatched the job."""
        return self._given_back(job) or (
            job.nudges.last_at is not None and job.nudges.last_at >= self._recovery.began_at
        )

    def _given_back(self, job: Job) -> bool:
        return any(entry.cause == Why.RESTORED and entry.at >= self._recovery.began_at for entry in job.history)


def _fate(job: Job) -> Fate:
    match job.state:
        case State.QUEUED | State.RETRYING:
            return Fate.DISPATCHED
        case State.RUNNING:
            return Fate.GIVEN_BACK
        case State.DEAD:
            return Fate.DEAD
        case _:
            return Fate.WAITS


def missing(read_former: ReadPage, restored: ReadJobs, pace: Pace) -> Iterator[Recovered]:
    """The jobs of these pages of the former table that the restored table does not have.

    A flow that is alive starts its missing nodes anew, except those that were added to it after the restore point. Its
    job of the restored table counts.
    """
    for page in pages(read_former, pace):
        jobs = [found for found in page.found if isinstance(found, Job)]
        there = {(job.tenant, job.id) for job in restored([(job.tenant, job.id) for job in jobs])}
        gone = [job for job in jobs if (job.tenant, job.id) not in there]
        flows = {flow for job in gone if (flow := _flow_of(job))}
        alive = {(flow.tenant, flow.id) for flow in restored(sorted(flows)) if starts_nodes(flow)}
        for job in gone:
            yield Recovered(
                tenant=job.tenant,
                job_id=job.id,
                type=job.type,
                state=job.state,
                fate=Fate.MISSING,
                may_run_again=_flow_of(job) in alive,
            )


def _flow_of(job: Job) -> tuple[str, str] | None:
    """The key of the flow of which the job is a node. None for a document that only records that a node has no job."""
    return (job.tenant, job.flow.id) if job.flow and job.flow.mark is None else None


def pages(read: ReadPage, pace: Pace) -> Iterator[Page]:
    cursor: str | None = None
    while True:
        page = read(cursor)
        yield page
        cursor = page.cursor
        if cursor is None:
            return
        pace.spend(page.read_units, within=timedelta.max)


def counts(report: Iterable[Recovered]) -> Counter[str]:
    """By fate, and those that may run again."""
    counted: Counter[str] = Counter()
    for each in report:
        counted[each.fate] += 1
        counted["may_run_again"] += each.may_run_again
    return counted

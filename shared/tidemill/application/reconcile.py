"""Reconcile: look after what was left behind, by reading everything. Safe at any time, and two at once are harmless."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from tidemill.application.nudge import LaneDelay, Nudger, no_delay
from tidemill.application.ports import (
    Clock,
    DeadLetterQueue,
    Draw,
    Found,
    OpenGroup,
    PayloadItem,
    ReconcileStore,
    TableScan,
    UnreadableItem,
)
from tidemill.application.redrive import Swept, sweep
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError, TransactionConflictError
from tidemill.domain.job import Job
from tidemill.names import Lane

#: The parts in which the table is read, and how many at a time. Parts that time did not suffice for are left to the
#: next run, which takes them in another order: so they are many, and each is soon done.
SEGMENTS: Final = 64
_AT_ONCE: Final = 8
#: A payload is stored before the document that names it, so only one that is older can have been left behind.
ORPHANED_AFTER: Final = timedelta(days=1)
#: The time of an invocation that is kept back to finish the work in progress and to report.
RECONCILE_RESERVE: Final = timedelta(seconds=10)

#: Whether there is time for more.
InTime = Callable[[], bool]


class Act(StrEnum):
    """What reconcile did, or could not do."""

    #: As `Nudge`.
    NUDGED = "nudged"
    WOKEN = "woken"
    UNDELIVERABLE = "undeliverable"
    #: A group went on whose head had ended.
    ADVANCED = "advanced"
    #: A payload was deleted that belonged to no job.
    DISCARDED = "discarded"
    #: The store did not answer, or others stood in the way: whoever called it calls it again.
    FAILED = "failed"
    #: A part of the table for which time did not suffice: left to the next run.
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What a run came to."""

    #: How often, by lane where it concerns one.
    acts: Counter[tuple[Act, Lane | None]] = field(default_factory=Counter)
    unreadable: tuple[UnreadableItem, ...] = ()
    dead_letters: Mapping[Lane, Swept] = field(default_factory=dict)

    def count(self, act: Act) -> int:
        return sum(number for (done, _), number in self.acts.items() if done is act)


class Reconciler:
    """The use case.

    `limit` is how late a job must be beyond what its lane explains. Choose it longer than the messages of a worker that
    was killed stay hidden, or jobs are nudged that are on their way.
    """

    def __init__(
        self, *, store: ReconcileStore, clock: Clock, limit: timedelta, lane_delay: LaneDelay = no_delay
    ) -> None:
        self._store = store
        self._clock = clock
        self._limit = limit
        self._nudger = Nudger(store=store, clock=clock, limit=limit, lane_delay=lane_delay)

    def overdue(self) -> Iterator[Job]:
        """The jobs that a nudge would be for. Changes nothing."""
        return filter(self._nudger.owed, self._store.overdue(before=self._clock() - self._limit))

    def nudge(self, job: Job) -> bool:
        """False when the job has moved, or somebody else nudged it first."""
        return self._nudger.nudge(job) is not None

    def run(
        self,
        table_scan: TableScan,
        boxes: Mapping[Lane, DeadLetterQueue],
        *,
        draw: Draw,
        time_left: Callable[[], timedelta],
    ) -> Reconciled:
        """Everything, as far as the time goes: jobs, groups and payloads, then letters, whose jobs may have moved."""

        def in_time() -> bool:
            return time_left() > RECONCILE_RESERVE

        def part(number: int) -> Reconciled:
            return self._part(table_scan, number, in_time)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            parts = list(pool.map(part, sorted(range(SEGMENTS), key=lambda _: draw())))
        acts = sum((each.acts for each in parts), Counter())
        dead_letters = {}
        for lane, box in boxes.items():
            try:
                dead_letters[lane] = sweep(box, store=self._store, clock=self._clock, in_time=in_time)
            except StoreUnavailableError:
                acts[Act.FAILED, lane] += 1
        unreadable = tuple(item for each in parts for item in each.unreadable)
        return Reconciled(acts=acts, unreadable=unreadable, dead_letters=dead_letters)

    def _part(self, table_scan: TableScan, number: int, in_time: InTime) -> Reconciled:
        acts: Counter[tuple[Act, Lane | None]] = Counter()
        unreadable = []
        try:
            for found in _while(
                in_time, table_scan.segment(number, of=SEGMENTS, overdue_since=self._clock() - self._limit)
            ):
                came_of_it = found if isinstance(found, UnreadableItem) else self._look_after(table_scan, found)
                if isinstance(came_of_it, UnreadableItem):
                    unreadable.append(came_of_it)
                elif came_of_it:
                    acts[came_of_it] += 1
        except StoreUnavailableError:
            acts[Act.FAILED, None] += 1
        except TimeoutError:
            acts[Act.UNFINISHED, None] += 1
        return Reconciled(acts=acts, unreadable=tuple(unreadable))

    def _look_after(
        self, table_scan: TableScan, found: Job | OpenGroup | PayloadItem
    ) -> tuple[Act, Lane | None] | UnreadableItem | None:
        """What was done, if anything had to be. One that fails keeps nobody else waiting."""
        try:
            match found:
                case Job():
                    nudge = self._nudger.nudge(found) if self._nudger.owed(found) else None
                    return (Act(nudge.value), found.lane) if nudge else None
                case OpenGroup():
                    job = self._store.advance(found.tenant, found.group, now=self._clock())
                    return (Act.ADVANCED, job.lane) if job else None
                case PayloadItem():
                    return (Act.DISCARDED, None) if self._discard(table_scan, found) else None
        except MalformedDocumentError as error:
            # The head of the group, or the next, or the job that a payload is of. To try again would read no better.
            return UnreadableItem(_name(found), error)
        except (StoreUnavailableError, TransactionConflictError):
            return Act.FAILED, None

    def _discard(self, table_scan: TableScan, payload: PayloadItem) -> bool:
        if payload.stored_at > self._clock() - ORPHANED_AFTER:
            return False
        job = self._store.get(payload.tenant, payload.job_id)
        if job is not None and job.payload_at == payload.location:
            return False
        table_scan.discard(payload)
        return True


def _name(found: Job | OpenGroup | PayloadItem) -> str:
    match found:
        case Job():
            return f"{found.tenant}#{found.id}"
        case OpenGroup():
            return f"the group {found.group} of {found.tenant}"
        case PayloadItem():
            return found.item_key


def _while(in_time: InTime, pages: Iterator[Sequence[Found]]) -> Iterator[Found]:
    """What is on these pages. Raises `TimeoutError`, and most pages may be empty."""
    while in_time():
        if (page := next(pages, None)) is None:
            return
        for found in page:
            if not in_time():
                break
            yield found
    raise TimeoutError

"""Reconcile: scan the table and repair jobs, groups and payloads that nothing else will reach.

Safe at any time, and two concurrent runs are safe.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from tidemill.application.dead_letter_sweep import Swept, sweep
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
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError, TransactionConflictError
from tidemill.domain.job import Job
from tidemill.names import Lane

#: The number of segments of the scan, and how many run at a time. A run out of time leaves segments to the next run,
#: which takes them in another random order. Many small segments make sure that each is scanned soon.
SEGMENTS: Final = 64
_AT_ONCE: Final = 8
#: A payload is stored before the document that names it. Only a payload older than this can be an orphan.
ORPHANED_AFTER: Final = timedelta(days=1)
#: The time of an invocation that is kept back to finish the work in progress and to report.
RECONCILE_RESERVE: Final = timedelta(seconds=10)

#: Whether time is left.
InTime = Callable[[], bool]


class RepairAction(StrEnum):
    """A repair by reconcile, or a repair that it could not do."""

    #: These three as in `Nudge`.
    NUDGED = "nudged"
    WOKEN = "woken"
    UNDELIVERABLE = "undeliverable"
    #: A group advanced past a head that had ended.
    ADVANCED = "advanced"
    #: An orphaned payload was deleted.
    DISCARDED = "discarded"
    #: The store did not respond, or other transactions conflicted. The caller must call reconcile again.
    FAILED = "failed"
    #: No time was left for a segment of the table. The next run scans it.
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """The result of one run."""

    #: The number of actions by lane; None where no lane applies.
    actions: Counter[tuple[RepairAction, Lane | None]] = field(default_factory=Counter)
    unreadable: tuple[UnreadableItem, ...] = ()
    dead_letters: Mapping[Lane, Swept] = field(default_factory=dict)

    def count(self, action: RepairAction) -> int:
        return sum(number for (done, _), number in self.actions.items() if done is action)


class Reconciler:
    """`limit` is how late a job must be, beyond the delay of its lane, before a nudge.

    Choose it longer than the visibility timeout of the lane. After a crash of its worker a message stays hidden for
    that long, and reconcile would nudge its job.
    """

    def __init__(
        self, *, store: ReconcileStore, clock: Clock, limit: timedelta, lane_delay: LaneDelay = no_delay
    ) -> None:
        self._store = store
        self._clock = clock
        self._limit = limit
        self._nudger = Nudger(store=store, clock=clock, limit=limit, lane_delay=lane_delay)

    def overdue(self) -> Iterator[Job]:
        """The jobs that are due for a nudge. Changes nothing."""
        return filter(self._nudger.owed, self._store.overdue(before=self._clock() - self._limit))

    def nudge(self, job: Job) -> bool:
        """False when the job has changed since it was read, for example by another nudge."""
        return self._nudger.nudge(job) is not None

    def run(
        self,
        table_scan: TableScan,
        dead_letter_queues: Mapping[Lane, DeadLetterQueue],
        *,
        draw: Draw,
        time_left: Callable[[], timedelta],
    ) -> Reconciled:
        """Repair jobs, groups and payloads until `time_left` nears zero, then sweep the dead-letter queues.

        The sweep comes last because the repairs change the jobs of the messages.
        """

        def in_time() -> bool:
            return time_left() > RECONCILE_RESERVE

        def segment(number: int) -> Reconciled:
            return self._segment(table_scan, number, in_time)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            segments = list(pool.map(segment, sorted(range(SEGMENTS), key=lambda _: draw())))
        actions = sum((each.actions for each in segments), Counter())
        dead_letters = {}
        for lane, queue in dead_letter_queues.items():
            try:
                dead_letters[lane] = sweep(queue, store=self._store, clock=self._clock, in_time=in_time)
            except StoreUnavailableError:
                actions[RepairAction.FAILED, lane] += 1
        unreadable = tuple(item for each in segments for item in each.unreadable)
        return Reconciled(actions=actions, unreadable=unreadable, dead_letters=dead_letters)

    def _segment(self, table_scan: TableScan, number: int, in_time: InTime) -> Reconciled:
        actions: Counter[tuple[RepairAction, Lane | None]] = Counter()
        unreadable = []
        try:
            for found in _items_in_time(
                in_time, table_scan.segment(number, of=SEGMENTS, overdue_since=self._clock() - self._limit)
            ):
                result = found if isinstance(found, UnreadableItem) else self._repair(table_scan, found)
                if isinstance(result, UnreadableItem):
                    unreadable.append(result)
                elif result:
                    actions[result] += 1
        except StoreUnavailableError:
            actions[RepairAction.FAILED, None] += 1
        except TimeoutError:
            actions[RepairAction.UNFINISHED, None] += 1
        return Reconciled(actions=actions, unreadable=tuple(unreadable))

    def _repair(
        self, table_scan: TableScan, found: Job | OpenGroup | PayloadItem
    ) -> tuple[RepairAction, Lane | None] | UnreadableItem | None:
        """The repair, or None if the item needs none. A failure does not stop the repair of other items."""
        try:
            match found:
                case Job():
                    nudge = self._nudger.nudge(found) if self._nudger.owed(found) else None
                    return (RepairAction(nudge.value), found.lane) if nudge else None
                case OpenGroup():
                    job = self._store.advance(found.tenant, found.group, now=self._clock())
                    return (RepairAction.ADVANCED, job.lane) if job else None
                case PayloadItem():
                    return (RepairAction.DISCARDED, None) if self._discard(table_scan, found) else None
        except MalformedDocumentError as error:
            # The group's head or next job, or the job of the payload, is unreadable. A retry cannot succeed.
            return UnreadableItem(_name(found), error)
        except (StoreUnavailableError, TransactionConflictError):
            return RepairAction.FAILED, None

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


def _items_in_time(in_time: InTime, pages: Iterator[Sequence[Found]]) -> Iterator[Found]:
    """The items of these pages. Raises `TimeoutError` when no time is left. Most pages may be empty."""
    while in_time():
        if (page := next(pages, None)) is None:
            return
        for found in page:
            if not in_time():
                break
            yield found
    raise TimeoutError

"""Reconcile: scan the table and repair jobs, groups and payloads that nothing else will reach.

Safe at any time, and two concurrent runs are safe. The scan may return items that are some seconds old. Each repair is
conditional on what the scan returned, or reads the item again consistently.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from msgspec import Struct, field

from tidemill.application.dispatch.dead_letter_sweep import ROTATING, SweepBounds, Swept, sweep
from tidemill.application.dispatch.nudge import LaneDelay, Nudger, no_delay
from tidemill.application.passes.pace import Pace
from tidemill.application.passes.table_pass import RESERVE, PassReport, TablePasses
from tidemill.application.ports import (
    Clock,
    DeadLetterQueue,
    Found,
    OpenGroup,
    PayloadItem,
    ReconcileStore,
    TableScan,
    Unreadable,
    UnreadableItem,
    ignore_unreadable,
)
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.operations.repair_actions import RepairAction
from tidemill.names import Lane

#: A payload is stored before the document that names it. Only a payload older than this can be an orphan.
ORPHANED_AFTER: Final = timedelta(days=1)
#: The longest time that one run spends on the dead-letter queue of one lane. All lanes take at most half of its time.
LONGEST_SWEEP: Final = timedelta(minutes=1)

#: The time that is left of an invocation.
TimeLeft = Callable[[], timedelta]

#: No lane applies to it.
_FAILED: Final = (RepairAction.FAILED, None)


class Reconciled(Struct, frozen=True, kw_only=True):
    """The result of one run."""

    #: The number of actions by lane; None where no lane applies.
    actions: Counter[tuple[RepairAction, Lane | None]] = field(default_factory=Counter)
    unreadable: tuple[UnreadableItem, ...] = ()
    dead_letters: Mapping[Lane, Swept] = field(default_factory=dict)
    #: None for a sweep of dead-letter queues.
    progress: PassReport | None = None

    def count(self, action: RepairAction) -> int:
        return sum(number for (done, _), number in self.actions.items() if done is action)


class Reconciler:
    """`limit` is how late a job must be, beyond the delay of its lane, before a nudge.

    Choose it longer than the visibility timeout of the lane. After a crash of its worker a message stays hidden for
    that long, and reconcile would nudge its job. `writes` is the pace of the repairs of a pass; None: without one.
    """

    def __init__(
        self,
        *,
        store: ReconcileStore,
        clock: Clock,
        limit: timedelta,
        lane_delay: LaneDelay = no_delay,
        writes: Pace | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._limit = limit
        self._writes = writes
        self._nudger = Nudger(store=store, clock=clock, limit=limit, lane_delay=lane_delay)

    def overdue(
        self, *, unreadable: Unreadable = ignore_unreadable, spend: Callable[[float], object] = lambda _units: None
    ) -> Iterator[Job]:
        """The jobs that are due for a nudge. Changes nothing. `spend` as for `ReconcileStore.overdue`."""
        before = self._clock() - self._limit
        return filter(self._nudger.needs_nudge, self._store.overdue(before=before, unreadable=unreadable, spend=spend))

    def nudge(self, job: Job) -> bool:
        """False when the job has changed since it was read, for example by another nudge."""
        return self._nudger.nudge(job) is not None

    def sweep(
        self,
        dead_letter_queues: Mapping[Lane, DeadLetterQueue],
        *,
        time_left: TimeLeft,
        bounds: SweepBounds = ROTATING,
    ) -> Reconciled:
        """Sweep each dead-letter queue within `bounds`, and a share of the time that is left.

        The trouble of one message or lane, such as a queue that is missing or denied, does not affect the others.
        """
        actions: Counter[tuple[RepairAction, Lane | None]] = Counter()
        unreadable: list[UnreadableItem] = []
        dead_letters: dict[Lane, Swept] = {}
        share = sweep_share(time_left(), len(dead_letter_queues))
        for lane, queue in dead_letter_queues.items():
            end = time_left() - share
            try:
                dead_letters[lane] = sweep(
                    queue,
                    store=self._store,
                    clock=self._clock,
                    bounds=bounds,
                    time_left=_until(end, time_left),
                    progress=partial(dead_letters.__setitem__, lane),
                )
                actions[RepairAction.FAILED, lane] += dead_letters[lane].failed
            except StoreUnavailableError:
                actions[RepairAction.FAILED, lane] += 1
            except Exception as error:  # noqa: BLE001 - as above
                actions[RepairAction.FAILED, lane] += 1
                unreadable.append(UnreadableItem(f"the dead-letter queue of lane {lane}", error))
        return Reconciled(actions=actions, unreadable=tuple(unreadable), dead_letters=dead_letters)

    def run(self, passes: TablePasses, *, time_left: TimeLeft) -> Reconciled:
        """Continue the pass over the table, or begin one that is due, until `time_left` nears zero."""
        actions: Counter[tuple[RepairAction, Lane | None]] = Counter()
        unreadable: list[UnreadableItem] = []

        def work(found: Found) -> bool:
            if time_left() <= RESERVE:
                raise TimeoutError
            result = found if isinstance(found, UnreadableItem) else self._repair(passes.scan, found)
            if isinstance(result, UnreadableItem):
                unreadable.append(result)
            elif result:
                actions[result] += 1
                if self._writes:
                    # A refusal, for lack of time, needs no answer: the next item finds that no time is left.
                    self._writes.spend(1, within=time_left() - RESERVE)
            return result != _FAILED

        progress = passes.run(work, late_by=self._limit, time_left=time_left)
        if progress.failed:
            actions[_FAILED] = max(actions[_FAILED], progress.failed)
        return Reconciled(actions=actions, unreadable=tuple(unreadable), progress=progress)

    def _repair(
        self, table_scan: TableScan, found: Job | OpenGroup | PayloadItem
    ) -> tuple[RepairAction, Lane | None] | UnreadableItem | None:
        """The repair, or None if the item needs none. A failure does not stop the repair of other items."""
        try:
            match found:
                case Job():
                    nudge = self._nudger.nudge(found) if self._nudger.needs_nudge(found) else None
                    return (RepairAction(nudge.value), found.lane) if nudge else None
                case OpenGroup():
                    job = self._store.advance(found.tenant, found.group, now=self._clock())
                    return (RepairAction.ADVANCED, job.lane) if job else None
                case PayloadItem():
                    return (RepairAction.DISCARDED, None) if self._discard(table_scan, found) else None
        except (StoreUnavailableError, TransactionConflictError):
            return _FAILED
        except Exception as error:  # noqa: BLE001 - one item that DynamoDB refuses must not end the run for all others
            # Or the group's head or next job, or the job of the payload, is unreadable. A retry cannot succeed.
            return UnreadableItem(_name(found), error)

    def _discard(self, table_scan: TableScan, payload: PayloadItem) -> bool:
        if payload.stored_at > self._clock() - ORPHANED_AFTER:
            return False
        job = self._store.get(payload.tenant, payload.job_id)
        if job is not None and job.payload.location == payload.location:
            return False
        table_scan.discard(payload)
        return True


def sweep_share(invocation: timedelta, lanes: int) -> timedelta:
    """The longest time of an invocation that goes to the dead-letter queue of one lane."""
    return min(LONGEST_SWEEP, (invocation - RESERVE) / (2 * max(lanes, 1)))


def _until(end: timedelta, time_left: TimeLeft) -> TimeLeft:
    """The time that is left until `end` of the invocation is left."""
    return lambda: time_left() - end


def _name(found: Job | OpenGroup | PayloadItem) -> str:
    match found:
        case Job():
            return f"{found.tenant}#{found.id}"
        case OpenGroup():
            return f"the group {found.group} of {found.tenant}"
        case PayloadItem():
            return found.item_key

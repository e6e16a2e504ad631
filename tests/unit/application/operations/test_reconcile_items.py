"""What reconcile does with each item that a pass finds, how it counts that, and how it shares its time."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from tests.support.builders import NOW, SECOND, TENANT, a_job, with_changes
from tidemill.application.dispatch.dead_letter_sweep import Swept
from tidemill.application.dispatch.nudge import MOST_NUDGES, UNDELIVERABLE_AFTER
from tidemill.application.operations.reconcile import LONGEST_SWEEP, ORPHANED_AFTER, Reconciled, Reconciler, sweep_share
from tidemill.application.passes.pass_state import first_pass
from tidemill.application.passes.table_pass import RESERVE, PassReport
from tidemill.application.ports import Found, OpenGroup, PayloadItem, UnreadableItem
from tidemill.domain.errors import (
    MalformedDocumentError,
    StoreUnavailableError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.operations.repair_actions import RepairAction
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import Lane

LIMIT: Final = timedelta(minutes=30)
INVOCATION: Final = timedelta(minutes=5)
GROUP: Final = OpenGroup(tenant=TENANT, group="a")
ORPHAN: Final = PayloadItem(
    tenant=TENANT, job_id="owner", location="item/1", stored_at=NOW - ORPHANED_AFTER, item_key="!payload#1"
)
LATE: Final = a_job(id="late", lane=Lane.BULK, due=NOW - LIMIT)
GIVEN_UP: Final = with_changes(LATE, nudges=MOST_NUDGES, due=NOW - UNDELIVERABLE_AFTER - timedelta(days=9))


@dataclass
class World:
    """`ReconcileStore`, a pace, and `TablePasses` whose scan discards payloads."""

    items: list[Found] = field(default_factory=list)
    next_of_group: Job | None = None
    owner: Job | None = None
    error: Exception | None = None
    failed: int = 0
    writes: list[tuple[Any, ...]] = field(default_factory=list)
    discarded: list[PayloadItem] = field(default_factory=list)
    spent: list[tuple[float, timedelta]] = field(default_factory=list)
    results: list[bool] = field(default_factory=list)
    late_by: timedelta | None = None
    #: Whether time ended at an item.
    ended: bool = False

    @property
    def scan(self) -> "World":
        return self

    def _write(self, *call: Any) -> None:
        if self.error:
            raise self.error
        self.writes.append(call)

    def wake(self, job: Job, *, now: datetime) -> None:
        self._write("wake", job.id, now)

    def unpark(self, job: Job, *, now: datetime, due: datetime) -> None:
        self._write("unpark", job.id, now, due)

    def nudge(self, job: Job, *, now: datetime, limit: timedelta, last: bool) -> None:
        del limit
        self._write("nudge", job.id, now, last)

    def advance(self, tenant: str, group: str, *, now: datetime) -> Job | None:
        self._write("advance", tenant, group, now)
        return self.next_of_group

    def get(self, tenant: str, job_id: str) -> Job | None:
        if self.error:
            raise self.error
        return self.owner if (tenant, job_id) == (TENANT, "owner") else None

    def discard(self, payload: PayloadItem) -> None:
        self.discarded.append(payload)

    def spend(self, units: float, *, within: timedelta) -> bool:
        self.spent.append((units, within))
        return False

    def run(self, work: Callable[[Found], bool], *, late_by: timedelta, time_left: Any) -> PassReport:
        del time_left
        self.late_by = late_by
        try:
            self.results = [work(item) for item in self.items]
        except TimeoutError:
            self.ended = True
        return PassReport(table_pass=first_pass(NOW), age=timedelta(0), done=0, failed=self.failed)

    def reconciled(self, *, left: timedelta = INVOCATION, paced: bool = True) -> Reconciled:
        reconciler = Reconciler(
            store=self,  # type: ignore[arg-type]  # the parts that it uses
            clock=lambda: NOW,
            limit=LIMIT,
            writes=self if paced else None,  # type: ignore[arg-type]
        )
        return reconciler.run(self, time_left=lambda: left)  # type: ignore[arg-type]


NONE: Final = dict[tuple[RepairAction, Lane | None], int]()
NUDGED, WOKEN, FAILED = RepairAction.NUDGED, RepairAction.WOKEN, RepairAction.FAILED


@pytest.mark.parametrize(
    ("world", "actions", "writes"),
    [
        (World([LATE]), {(NUDGED, Lane.BULK): 1}, [("nudge", "late", NOW, False)]),
        (World([replace(LATE, due=NOW - LIMIT + SECOND)]), NONE, []),
        (World([replace(LATE, due=None)]), NONE, []),
        (World([LATE], error=WriteRefusedError("nudge", LATE)), NONE, []),
        (World([GIVEN_UP]), {(RepairAction.UNDELIVERABLE, Lane.BULK): 1}, [("nudge", "late", NOW, True)]),
        (World([replace(LATE, state=State.SCHEDULED)]), {(WOKEN, Lane.BULK): 1}, [("wake", "late", NOW)]),
        (World([replace(LATE, state=State.PARKED)]), {(WOKEN, Lane.BULK): 1}, [("unpark", "late", NOW, NOW)]),
        (
            World([GROUP], next_of_group=LATE),
            {(RepairAction.ADVANCED, Lane.BULK): 1},
            [("advance", TENANT, "a", NOW)],
        ),
        (World([GROUP]), NONE, [("advance", TENANT, "a", NOW)]),
        (World([LATE, LATE]), {(NUDGED, Lane.BULK): 2}, [("nudge", "late", NOW, False)] * 2),
    ],
)
def test_each_job_and_group_that_needs_it_is_repaired_and_paid_for(
    world: World, actions: dict[Any, int], writes: list[Any]
) -> None:
    reconciled = world.reconciled()

    assert (reconciled.actions, reconciled.unreadable, world.writes) == (Counter(actions), (), writes)
    assert world.results == [True] * len(world.items)
    assert world.spent == [(1, INVOCATION - RESERVE)] * sum(actions.values())
    assert world.late_by == LIMIT
    assert reconciled.progress == PassReport(table_pass=first_pass(NOW), age=timedelta(0), done=0)


@pytest.mark.parametrize(
    ("owner", "stored_at", "goes"),
    [
        (None, NOW - ORPHANED_AFTER, True),
        (None, NOW - ORPHANED_AFTER + SECOND, False),
        (a_job(id="owner", payload_at="item/1"), NOW - ORPHANED_AFTER, False),
        (a_job(id="owner", payload_at="item/2"), NOW - ORPHANED_AFTER, True),
        (a_job(id="owner"), NOW - ORPHANED_AFTER, True),
    ],
)
def test_a_payload_that_is_old_and_that_no_document_names_is_discarded(
    owner: Job | None, stored_at: datetime, goes: bool
) -> None:
    payload = replace(ORPHAN, stored_at=stored_at)
    world = World([payload], owner=owner)

    reconciled = world.reconciled()

    assert world.discarded == ([payload] if goes else [])
    assert reconciled.actions == ({(RepairAction.DISCARDED, None): 1} if goes else {})


ERROR: Final = ZeroDivisionError("a defect")
NAMES: Final = {f"{TENANT}#late": LATE, f"the group a of {TENANT}": GROUP, "!payload#1": ORPHAN}


@pytest.mark.parametrize("error", [StoreUnavailableError("throttled"), TransactionConflictError("busy")])
@pytest.mark.parametrize("found", NAMES.values(), ids=lambda found: type(found).__name__)
def test_an_item_that_the_store_does_not_take_now_has_failed(found: Found, error: Exception) -> None:
    """Then the pass tries its page again."""
    world = World([found], error=error)
    reconciled = world.reconciled()
    assert (reconciled.actions, reconciled.unreadable) == ({(FAILED, None): 1}, ())
    assert world.results == [False]


@pytest.mark.parametrize("error", [MalformedDocumentError("damaged"), ERROR])
@pytest.mark.parametrize(("name", "found"), NAMES.items())
def test_an_item_that_cannot_be_repaired_is_named_and_not_tried_again(
    name: str, found: Found, error: Exception
) -> None:
    world = World([found], error=error)
    reconciled = world.reconciled()
    assert (reconciled.actions, reconciled.unreadable) == ({}, (UnreadableItem(name, error),))
    assert (world.results, world.spent) == ([True], [])


def test_an_item_that_the_scan_cannot_read_is_named_as_it_is() -> None:
    unreadable = UnreadableItem("key", MalformedDocumentError("damaged"))
    world = World([unreadable, LATE])
    reconciled = world.reconciled()
    assert (reconciled.unreadable, reconciled.count(NUDGED), world.results) == ((unreadable,), 1, [True, True])


@pytest.mark.parametrize(("left", "works"), [(RESERVE, False), (RESERVE - SECOND, False), (RESERVE + SECOND, True)])
def test_no_repair_begins_when_the_time_that_is_kept_back_begins(left: timedelta, works: bool) -> None:
    world = World([LATE])
    reconciled = world.reconciled(left=left)
    assert (len(world.writes), reconciled.count(NUDGED), world.ended) == (works, works, not works)


def test_a_run_without_a_pace_pays_for_nothing() -> None:
    world = World([LATE])
    assert world.reconciled(paced=False).count(NUDGED) == 1
    assert world.spent == []


@pytest.mark.parametrize(("failed_segments", "counted"), [(0, 1), (1, 1), (3, 3)])
def test_segments_that_could_not_be_read_count_as_failed(failed_segments: int, counted: int) -> None:
    reconciled = World([LATE], error=StoreUnavailableError("throttled"), failed=failed_segments).reconciled()
    assert reconciled.actions == {(FAILED, None): counted}


def test_a_run_without_failures_counts_none() -> None:
    assert World().reconciled().actions == Counter()
    assert (FAILED, None) not in World().reconciled().actions


def test_a_count_is_that_of_all_lanes() -> None:
    actions = Counter({(NUDGED, Lane.BULK): 2, (NUDGED, None): 1, (WOKEN, Lane.BULK): 4})
    assert Reconciled(actions=actions).count(NUDGED) == 3


@pytest.mark.parametrize(
    ("invocation", "lanes", "share"),
    [
        (timedelta(minutes=5, seconds=10), 3, timedelta(seconds=50)),
        (timedelta(minutes=15), 3, LONGEST_SWEEP),
        (timedelta(seconds=50), 1, timedelta(seconds=20)),
        (timedelta(seconds=50), 0, timedelta(seconds=20)),
        (timedelta(seconds=50), 2, timedelta(seconds=10)),
    ],
)
def test_the_sweeps_of_all_lanes_take_at_most_half_of_the_time(
    invocation: timedelta, lanes: int, share: timedelta
) -> None:
    assert timedelta(minutes=1) == LONGEST_SWEEP
    assert sweep_share(invocation, lanes) == share


def test_a_message_that_could_not_be_swept_counts_as_failed_in_its_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Any, timedelta]] = []

    def sweep(queue: Any, *, time_left: Callable[[], timedelta], progress: Any, **_rest: Any) -> Swept:
        given.append((queue, time_left()))
        if queue == "damaged":
            raise ERROR
        if queue == "broken":
            progress(Swept(outdated=1))
            raise StoreUnavailableError
        return Swept(failed=2, kept=3) if queue == "failing" else Swept()

    monkeypatch.setattr("tidemill.application.operations.reconcile.sweep", sweep)
    reconciler = Reconciler(store=World(), clock=lambda: NOW, limit=LIMIT)  # type: ignore[arg-type]
    queues: Any = {Lane.CRITICAL: "broken", Lane.DEFAULT: "failing", Lane.BULK: "well"}
    queues |= {"another": "damaged"}

    reconciled = reconciler.sweep(queues, time_left=lambda: INVOCATION)

    share = sweep_share(INVOCATION, 4)
    assert given == [(queue, share) for queue in queues.values()]
    assert +reconciled.actions == Counter(
        {(FAILED, Lane.CRITICAL): 1, (FAILED, Lane.DEFAULT): 2, (FAILED, "another"): 1}
    )
    assert reconciled.unreadable == (UnreadableItem("the dead-letter queue of lane another", ERROR),)
    assert {action for action, _lane in reconciled.actions} == {FAILED}
    swept = {Lane.CRITICAL: Swept(outdated=1), Lane.DEFAULT: Swept(failed=2, kept=3), Lane.BULK: Swept()}
    assert (reconciled.dead_letters, reconciled.progress) == (swept, None)


def test_the_overdue_jobs_are_those_that_are_late_by_the_limit() -> None:
    asked: list[Any] = []

    class Store(World):
        def overdue(self, *, before: datetime, unreadable: Any, spend: Any) -> list[Job]:
            asked.append((before, unreadable, spend))
            return [LATE, with_changes(LATE, nudged_at=NOW)]

    reconciler = Reconciler(store=Store(), clock=lambda: NOW, limit=LIMIT)  # type: ignore[arg-type]
    unreadable, spend = (lambda *_details: None), (lambda _units: None)

    assert list(reconciler.overdue(unreadable=unreadable, spend=spend)) == [LATE]
    assert asked == [(NOW - LIMIT, unreadable, spend)]


@pytest.mark.parametrize(("error", "nudged"), [(None, True), (WriteRefusedError("nudge", LATE), False)])
def test_a_nudge_of_a_job_that_has_changed_does_nothing(error: Exception | None, nudged: bool) -> None:
    reconciler = Reconciler(store=World(error=error), clock=lambda: NOW, limit=LIMIT)  # type: ignore[arg-type]
    assert reconciler.nudge(LATE) is nudged

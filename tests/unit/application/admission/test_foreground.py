"""Late starts of urgent jobs, and the level of strain that follows from them."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from tests.support.builders import A_WAIT, MILLISECOND, NOW, SECOND, a_job, with_changes
from tests.support.configurations import configured, strained
from tests.support.one_at_a_time import OneAtATime
from tests.support.patience import PATIENCE_SECONDS
from tests.support.single_job import Clock
from tidemill.application.admission.foreground import REPORTS_AFTER, Foreground, Governor, strain_level
from tidemill.application.configuration import CACHED_FOR
from tidemill.domain.admission.governor import (
    EXPIRES_AFTER,
    FALLS_AFTER,
    GOVERNOR_SETTING,
    WINDOW,
    Governed,
    Starts,
    changed,
)
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.operations.setting import Setting
from tidemill.domain.records import replace

TARGET = 2 * SECOND


@dataclass
class Store:
    """The item of the governor."""

    governed: Governed = field(default_factory=Governed)
    out: bool = False
    reads: int = 0
    added: list[Starts] = field(default_factory=list)
    #: Called by each read.
    respond: Callable[[], None] = lambda: None

    def read(self) -> Governed:
        self.reads += 1
        self.respond()
        self._respond()
        return self.governed

    def add(self, starts: Starts, *, now: datetime) -> Governed:
        self._respond()
        self.added.append(starts)
        seen = self.governed
        if now - seen.window_from >= WINDOW:
            seen = replace(seen, starts=Starts(), window_from=now)
        self.governed = replace(seen, starts=seen.starts + starts, minute=seen.minute + starts)
        return self.governed

    def move(self, seen: Governed, level: int, *, now: datetime) -> Governed | None:
        self._respond()
        if seen.version != self.governed.version:
            return None
        self.governed = changed(seen, level, now=now)
        return self.governed

    def begin_minute(self, seen: Governed, *, now: datetime) -> None:
        self._respond()
        if (seen.version, seen.minute_from) == (self.governed.version, self.governed.minute_from):
            self.governed = replace(self.governed, minute=Starts(), minute_from=now)

    def _respond(self) -> None:
        if self.out:
            raise StoreUnavailableError("throttled")


@dataclass
class Lane:
    """One process that starts urgent jobs."""

    store: Store = field(default_factory=Store)
    clock: Clock = field(default_factory=Clock)
    configuration: RuntimeConfiguration = NOTHING_SET
    changes: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.governor = Governor(
            self.store,
            clock=self.clock,
            configuration=lambda: self.configuration,
            changed=lambda before, after: self.changes.append((before.level, after.level)),
        )
        self.foreground = Foreground(self.governor, target=TARGET, clock=self.clock)

    def start(self, *, after: timedelta, change: Callable[[Job], Job] = lambda job: job) -> None:
        now = self.clock.now
        job = a_job(attempt=1, ready_at=now - after, claimed_at=now)
        self.foreground.claimed(change(job))

    def pass_time(self, seconds: float) -> None:
        self.clock.now += timedelta(seconds=seconds)


@pytest.fixture
def lane() -> Lane:
    return Lane()


def test_late_starts_raise_the_level_and_calm_lowers_it(lane: Lane) -> None:
    for _ in range(5):
        lane.start(after=3 * SECOND)
        lane.pass_time(1)
    assert (lane.governor.level(), lane.changes) == (1, [(0, 1)])

    lane.clock.now += FALLS_AFTER
    assert lane.governor.settle() == 0
    assert lane.changes == [(0, 1), (1, 0)]


@pytest.mark.parametrize(
    ("others", "level"),
    [
        # An app with one tenant.
        ([], 1),
        ([1], 0),
        # The lane is behind for each of them.
        ([3], 1),
        ([1, 3], 1),
    ],
)
def test_a_tenant_that_waits_behind_its_own_jobs_raises_no_level(lane: Lane, others: list[int], level: int) -> None:
    for _ in range(6):
        for number, seconds in enumerate(others):
            lane.start(after=seconds * SECOND, change=lambda job, name=number: replace(job, tenant=f"other {name}"))  # type: ignore[misc]
        lane.start(after=3 * SECOND)
        lane.pass_time(1)

    assert lane.governor.level() == level


@pytest.mark.parametrize(("seconds", "late"), [(9, 0), (10, 1)])
def test_another_tenant_that_began_in_time_counts_for_ten_seconds(lane: Lane, seconds: int, late: int) -> None:
    lane.start(after=SECOND, change=lambda job: replace(job, tenant="other"))
    lane.pass_time(seconds)
    lane.start(after=3 * SECOND)

    assert sum(starts.late for starts in lane.store.added) == late


def test_a_late_start_in_a_thousand_keeps_no_level() -> None:
    store, clock, lanes = Store(), Clock(), list[Lane]()
    store.governed = Governed(level=3, since=NOW, window_from=NOW, minute_from=NOW, version=1)
    for _ in range(10):
        lanes.append(Lane(store=store, clock=clock))

    for number in range(1, 2000):
        # The process whose start is late reports it alone.
        lanes[number % 10].start(after=(3 if number % 1000 == 1 else 1) * SECOND)
        clock.now += SECOND / 10

    assert store.governed.level == 0


def test_one_late_start_in_a_hundred_over_many_processes_swings_no_level() -> None:
    store, clock, changes = Store(), Clock(), list[tuple[int, int]]()
    lanes = [Lane(store=store, clock=clock, changes=changes) for _ in range(200)]

    for number in range(15 * 60 * 60):
        # The process whose start is late reports it alone below level 1.
        lanes[number * 7 % 200].start(after=(3 if number % 100 == 1 else 1) * SECOND)
        clock.now += SECOND / 60

    rises = [change for change in changes if change[0] < change[1]]
    # Nothing tells the true share before the first rise, and again after ten minutes.
    assert len(rises) <= 2


@pytest.mark.parametrize("skew", [-120, -30, 0, 30, 120])
def test_processes_whose_clocks_differ_keep_a_level_while_starts_are_late(skew: int) -> None:
    reporter, wake = Lane(), Lane()
    wake.store = wake.governor._store = reporter.store
    for passed in range(600):
        wake.clock.now = NOW + passed * SECOND
        reporter.clock.now = wake.clock.now + skew * SECOND
        reporter.start(after=3 * SECOND)
        if passed % 60 == 59:
            wake.governor.settle()

    assert reporter.changes + wake.changes == [(0, 1), (1, 2), (2, 3)]


def test_starts_in_time_cost_no_write(lane: Lane) -> None:
    for _ in range(100):
        lane.start(after=TARGET)
        lane.pass_time(0.1)

    assert lane.store.added == []
    assert lane.store.reads <= 10 / CACHED_FOR.total_seconds()


def test_a_process_reports_once_a_second_at_most(lane: Lane) -> None:
    for _ in range(30):
        lane.start(after=3 * SECOND)
        lane.pass_time(0.1)

    assert [starts.late for starts in lane.store.added] == [1, 10, 10]


def test_under_strain_starts_in_time_are_reported_too(lane: Lane) -> None:
    lane.store.governed = Governed(level=1, since=NOW, version=1)

    lane.start(after=SECOND)

    assert lane.store.added == [Starts(late=0, total=1)]


@pytest.mark.parametrize(
    "change",
    [
        lambda job: replace(job, attempt=2),
        lambda job: replace(job, wait=A_WAIT),
        lambda job: with_changes(job, ready_at=None),
        lambda job: with_changes(job, claimed_at=None),
    ],
    ids=["retry", "parked", "never ready", "never claimed"],
)
def test_only_a_first_run_that_waited_for_its_turn_counts(lane: Lane, change: Callable[[Job], Job]) -> None:
    lane.start(after=3 * SECOND, change=change)

    assert lane.store.added == []


def test_a_store_that_is_out_stops_no_job_and_is_asked_less_often(lane: Lane) -> None:
    lane.store.out = True
    lane.start(after=3 * SECOND)
    lane.store.out = False
    lane.clock.now += REPORTS_AFTER
    lane.start(after=3 * SECOND)

    lane.pass_time(1)
    lane.start(after=3 * SECOND)

    # The report that failed is lost: it was one sample of many.
    assert lane.store.added == [Starts(late=2, total=2)]


def test_a_store_that_stays_out_is_asked_every_sixteen_seconds() -> None:
    asked: list[int] = []

    class Out(Store):
        def add(self, starts: Starts, *, now: datetime) -> Governed:
            asked.append((now - NOW) // SECOND)
            raise StoreUnavailableError("throttled")

    lane = Lane(store=Out())
    for _ in range(70):
        lane.start(after=3 * SECOND)
        lane.start(after=3 * SECOND)
        lane.pass_time(1)

    assert asked == [0, 2, 6, 14, 30, 46, 62]


def test_a_store_that_is_back_gets_reports_every_second_again() -> None:
    reported: list[int] = []

    class Back(Store):
        def add(self, starts: Starts, *, now: datetime) -> Governed:
            self.out = now - NOW < 6 * SECOND
            seen = super().add(starts, now=now)
            reported.append((now - NOW) // SECOND)
            return seen

    lane = Lane(store=Back())
    for _ in range(13):
        lane.start(after=3 * SECOND)
        lane.pass_time(1)

    assert reported == [6, 10, 11, 12]


def test_without_an_answer_the_last_known_level_holds(lane: Lane) -> None:
    lane.store.governed = Governed(level=2, since=NOW, version=1)
    assert lane.governor.level() == 2
    lane.store.out = True
    lane.clock.now += CACHED_FOR

    assert lane.governor.level() == 2


def test_a_level_whose_read_hangs_is_not_read_again_at_once(lane: Lane) -> None:
    """All threads of a worker wait for the read."""

    def hangs() -> None:
        lane.clock.now += CACHED_FOR + SECOND
        raise StoreUnavailableError("no answer")

    lane.store.respond = hangs
    assert [lane.governor.level() for _ in range(4)] == [0] * 4
    assert lane.store.reads == 1


def test_a_governor_that_is_switched_off_neither_reads_nor_writes(lane: Lane) -> None:
    lane.store.governed = Governed(level=2, since=NOW, version=1)
    on = lane.configuration
    off = Setting(name=GOVERNOR_SETTING, value={"off": True}, at=NOW, by="arn:ops", reason="")
    lane.configuration = configured(off)

    lane.start(after=3 * SECOND)

    assert (lane.governor.level(), lane.store.reads, lane.store.added) == (0, 0, [])

    lane.clock.now += EXPIRES_AFTER
    lane.configuration = on
    assert lane.governor.level() == 0
    assert lane.governor.settle() == 0
    assert lane.changes == [(2, 0)]


@pytest.mark.parametrize(("declared", "governed"), [(1, 2), (2, 1), (0, 3), (3, 0)])
def test_the_higher_level_is_in_force(lane: Lane, declared: int, governed: int) -> None:
    lane.store.governed = Governed(level=governed, since=NOW, version=1)
    lane.configuration = configured(strained(declared))

    assert strain_level(lambda: lane.configuration, lane.governor, lane.clock) == max(declared, governed)
    assert strain_level(lambda: lane.configuration, None, lane.clock) == declared


@pytest.mark.parametrize(
    ("after", "reads"),
    [
        (timedelta(0), 1),
        (CACHED_FOR - MILLISECOND, 1),
        (CACHED_FOR, 2),
        # The clock was set back.
        (-MILLISECOND, 2),
    ],
)
def test_the_level_is_read_again_once_it_is_old(lane: Lane, after: timedelta, reads: int) -> None:
    lane.governor.level()
    lane.clock.now += after

    lane.governor.level()

    assert lane.store.reads == reads


@pytest.mark.parametrize(
    ("after", "total"), [(timedelta(0), 2), (WINDOW - MILLISECOND, 2), (WINDOW, 1), (-MILLISECOND, 1)]
)
def test_a_late_start_is_reported_with_the_others_of_its_window(lane: Lane, after: timedelta, total: int) -> None:
    lane.start(after=SECOND)
    lane.clock.now += after

    lane.start(after=3 * SECOND)

    assert lane.store.added == [Starts(late=1, total=total)]


def test_a_minute_that_was_not_calm_is_followed_by_another(lane: Lane) -> None:
    begun = NOW - FALLS_AFTER
    late = Starts(late=1, total=1)
    lane.store.governed = Governed(level=1, since=begun, minute=late, minute_from=begun, window_from=begun, version=1)

    assert lane.governor.settle() == 1

    assert (lane.store.governed.minute, lane.store.governed.minute_from) == (Starts(), NOW)


def test_a_thread_waits_for_the_level_that_another_one_reads() -> None:
    reading = threading.Event()

    class Slow(Store):
        def read(self) -> Governed:
            reading.set()
            # The other thread asks meanwhile.
            time.sleep(0.05)
            return super().read()

    lane = Lane(store=Slow(Governed(level=2, since=NOW, version=1)))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lane.governor.level)
        reading.wait(PATIENCE_SECONDS)
        assert (lane.governor.level(), first.result()) == (2, 2)
    assert lane.store.reads == 1


def test_threads_count_their_starts_one_after_another(lane: Lane) -> None:
    counting = OneAtATime()

    def clock() -> datetime:
        counting.visit()
        return NOW

    foreground = Foreground(lane.governor, target=TARGET, clock=clock)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(foreground.waited, [SECOND] * 20))

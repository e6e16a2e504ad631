"""How often a process reads the level of strain, reports the starts that it counted, and what each report changes."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from threading import Thread
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND
from tidemill.application.admission.foreground import Foreground, Governor
from tidemill.domain.admission.governor import Governed, Starts, changed
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.operations.runtime_configuration import NOTHING_SET
from tidemill.domain.records import replace
from tidemill.domain.time_constants import EPOCH

CALM = Governed()
#: Five late starts of a window raise the level.
LATE = Governed(starts=Starts(late=5, total=5), window_from=NOW)
STRAINED = Governed(level=1, since=NOW, window_from=NOW, minute_from=NOW, version=1)


class Store:
    """The item of the governor, which another process may have changed since it was read."""

    def __init__(self, governed: Governed = CALM) -> None:
        self.governed = governed
        self.calls: list[tuple[Any, ...]] = []
        self.down = False
        self.faster = False

    def read(self) -> Governed:
        self._call("read")
        return self.governed

    def add(self, starts: Starts, *, now: datetime) -> Governed:
        self._call("add", starts.late, starts.total, now)
        return self.governed

    def move(self, seen: Governed, level: int, *, now: datetime) -> Governed | None:
        self._call("move", seen.level, level, now)
        return None if self.faster else changed(seen, level, now=now)

    def begin_minute(self, seen: Governed, *, now: datetime) -> None:
        assert seen is self.governed
        self._call("begin minute", now)

    def _call(self, *call: Any) -> None:
        self.calls.append(call)
        if self.down:
            raise StoreUnavailableError("throttled")


class Process:
    """With its clock."""

    def __init__(self, governed: Governed = CALM) -> None:
        self.now = NOW
        self.store = Store(governed)
        self.changes: list[tuple[Governed, Governed]] = []
        self.governor = Governor(
            self.store,
            clock=lambda: self.now,
            configuration=lambda: NOTHING_SET,
            changed=lambda before, after: self.changes.append((before, after)),
        )
        self.foreground = Foreground(self.governor, target=2 * SECOND, clock=lambda: self.now)

    def reports(self) -> list[tuple[int, int]]:
        """The late starts and all starts of each report so far."""
        return [(call[1], call[2]) for call in self.store.calls if call[0] == "add"]


@pytest.mark.parametrize(
    ("after", "reads"),
    [(0, 1), (4.999, 1), (5, 2), (-0.001, 2), (-3_600, 2)],
)
def test_the_level_is_read_again_after_five_seconds_or_if_the_clock_was_set_back(after: float, reads: int) -> None:
    process = Process(STRAINED)
    assert process.governor.level() == 1
    process.store.governed = replace(STRAINED, level=2)
    process.now += timedelta(seconds=after)

    assert process.governor.level() == reads
    assert len(process.store.calls) == reads


def test_a_thread_waits_for_the_read_of_another() -> None:
    process, levels, threads = Process(STRAINED), list[int](), list[Thread]()
    read = process.store.read

    def read_slowly() -> Governed:
        threads.append(Thread(target=lambda: levels.append(process.governor.level())))
        threads[0].start()
        threads[0].join(0.05)
        return read()

    process.store.read = read_slowly  # type: ignore[method-assign]
    assert process.governor.level() == 1
    threads[0].join()
    assert (levels, len(process.store.calls)) == ([1], 1)


def test_a_read_that_fails_is_not_repeated_at_once() -> None:
    process = Process()
    process.store.down = True
    assert [process.governor.level(), process.governor.level()] == [0, 0]
    assert process.store.calls == [("read",)]


def test_a_level_that_nothing_has_governed_for_five_minutes_is_not_in_force() -> None:
    process = Process(STRAINED)
    process.store.governed = replace(STRAINED, minute=Starts(late=1, total=1))
    for after, level in ((timedelta(minutes=5) - MILLISECOND, 1), (timedelta(minutes=5), 0)):
        process.now = NOW + after
        assert (process.governor.settle(), process.governor.level()) == (level, level)


CHANGE = ("move", 0, 1, NOW)
MINUTE = replace(STRAINED, minute_from=NOW - timedelta(minutes=1), minute=Starts(late=5, total=5))


@pytest.mark.parametrize(
    ("governed", "faster", "calls", "level"),
    [
        (CALM, False, [], 0),
        (LATE, False, [CHANGE], 1),
        # Another process was faster: what it wrote is read later.
        (LATE, True, [CHANGE], 0),
        (STRAINED, False, [], 1),
        (MINUTE, False, [("begin minute", NOW)], 1),
        # The level has lasted for less than a minute.
        (replace(MINUTE, minute=Starts(total=5)), False, [("begin minute", NOW)], 1),
    ],
)
@pytest.mark.parametrize("way", ["report", "settle"])
def test_what_is_due_is_decided_by_what_the_store_answers(
    way: str, governed: Governed, faster: bool, calls: Sequence[tuple[Any, ...]], level: int
) -> None:
    process = Process(governed)
    process.store.faster = faster
    if way == "report":
        process.governor.report(Starts(late=1, total=2))
        first: tuple[Any, ...] = ("add", 1, 2, NOW)
    else:
        assert process.governor.settle() == level
        first = ("read",)

    assert process.store.calls == [first, *calls]
    moved = [(governed, changed(governed, 1, now=NOW))] if calls == [CHANGE] and not faster else []
    assert process.changes == moved
    process.store.calls.clear()
    assert process.governor.level() == level
    assert process.store.calls == [], "it knows the level that it has set or found"
    process.now += 5 * SECOND
    process.governor.level()
    assert process.store.calls == [("read",)]


def test_a_report_that_fails_leaves_what_is_known() -> None:
    process = Process(STRAINED)
    process.governor.level()
    process.store.down = True
    with pytest.raises(StoreUnavailableError):
        process.governor.report(Starts(late=1, total=1))
    with pytest.raises(StoreUnavailableError):
        process.governor.settle()
    assert process.governor.level() == 1


LONG, SHORT = 2 * SECOND + MILLISECOND, 2 * SECOND


@pytest.mark.parametrize(
    ("waits", "reports"),
    [
        ([(0, SHORT)], []),
        ([(0, LONG)], [(1, 1)]),
        ([(0, LONG), (0.5, LONG), (0.999, SHORT)], [(1, 1)]),
        ([(0, LONG), (0.5, LONG), (1, SHORT)], [(1, 1), (1, 2)]),
        ([(0, SHORT), (0.1, SHORT), (0.2, LONG)], [(1, 3)]),
        # Starts are counted for ten seconds, from the first one.
        ([(0, SHORT), (9.999, LONG)], [(1, 2)]),
        ([(0, SHORT), (10, LONG)], [(1, 1)]),
        ([(0, LONG), (0.5, LONG), (10, SHORT)], [(1, 1)]),
        # The clock was set back.
        ([(0, SHORT), (-0.001, LONG)], [(1, 1)]),
        ([(0, LONG), (-15, LONG)], [(1, 1)]),
        ([(0, LONG), (-15.001, LONG)], [(1, 1), (1, 1)]),
    ],
)
def test_late_starts_are_reported_once_a_second_with_those_in_time(
    waits: list[tuple[float, timedelta]], reports: list[tuple[int, int]]
) -> None:
    process = Process()
    for at, waited in waits:
        process.now = NOW + timedelta(seconds=at)
        process.foreground.waited(waited)

    assert process.reports() == reports


def test_under_strain_each_start_is_reported_within_a_second() -> None:
    process = Process(replace(STRAINED, since=NOW - SECOND))
    for at in (0, 0.5, 1, 1.5):
        process.now = NOW + timedelta(seconds=at)
        process.foreground.waited(SHORT)
    assert process.reports() == [(0, 1), (0, 2)]


def test_a_store_that_takes_no_reports_is_asked_after_twice_the_time_each_time() -> None:
    process = Process()
    process.store.down = True
    asked = []
    for tick in range(160):
        process.now = NOW + tick * SECOND / 2
        before = len(process.reports())
        process.foreground.waited(LONG)
        if len(process.reports()) > before:
            asked.append(tick / 2)
    assert asked == [0, 2, 6, 14, 30, 46, 62, 78]

    process.store.down = False
    taken = []
    for tick in range(188, 260):
        process.now = NOW + tick * SECOND / 2
        before = len(process.reports())
        process.foreground.waited(LONG)
        if len(process.reports()) > before:
            taken.append(tick / 2)
    assert taken == [
        94,
        110,
        111,
        112,
        113,
        114,
        115,
        116,
        117,
        118,
        119,
        120,
        121,
        122,
        123,
        124,
        125,
        126,
        127,
        128,
        129,
    ]


def test_a_process_begins_without_a_past() -> None:
    process = Process()
    process.now = EPOCH + SECOND
    process.foreground.waited(LONG)
    assert process.reports() == [(1, 1)]

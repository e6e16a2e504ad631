"""One run of a pass, step by step: what it reads and writes, over a pass and a table in memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Self

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tidemill.application.passes.pace import Pace
from tidemill.application.passes.pass_state import PASS_INTERVAL, SEGMENTS, Segment, TablePass, first_pass
from tidemill.application.passes.table_pass import MOST_TRIES, RESERVE, PassReport, TablePasses
from tidemill.application.ports import Found, ScanPage
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.records import replace

INVOCATION: Final = timedelta(minutes=5)
HOUR: Final = timedelta(hours=1)
MOST_WRITE_TRIES: Final = 10
ONE: Final = TablePass(number=7, segments=1, began_at=NOW - HOUR, covered_since=NOW - 2 * HOUR)


@dataclass
class World:
    """`PassStore` and `TableScan`: one pass, and pages of jobs for each segment."""

    stored: TablePass | None = ONE
    #: What each segment has, page by page; the same for each.
    pages: list[list[str]] = field(default_factory=lambda: [["a"]])
    segments: dict[int, Segment] = field(default_factory=dict)
    now: datetime = NOW
    #: The writes of the pass, and whether the next ones are refused.
    writes: list[TablePass] = field(default_factory=list)
    refused: int = 0
    saves: list[Segment] = field(default_factory=list)
    moved_by_another: bool = False
    down: bool = False
    asked_for: list[Any] = field(default_factory=list)
    paid: list[tuple[float, timedelta]] = field(default_factory=list)
    pays: bool = True
    #: Called with each read of the pass.
    between: Callable[[], None] = lambda: None

    def read(self) -> TablePass | None:
        self.between()
        return self.stored

    def write(self, table_pass: TablePass) -> bool:
        if self.refused:
            self.refused -= 1
            return False
        self.writes.append(table_pass)
        self.stored = table_pass
        return True

    def segment(self, table_pass: TablePass, number: int) -> Segment:
        return self.segments.get(number, Segment(pass_number=table_pass.number, number=number))

    def save(self, segment: Segment) -> Segment | None:
        self.saves.append(segment)
        if self.moved_by_another:
            return None
        self.segments[segment.number] = segment
        return segment

    def page(self, segment: int, *, of: int, after: str | None, overdue_since: datetime) -> ScanPage:
        self.asked_for.append((segment, of, after, overdue_since))
        if self.down:
            raise StoreUnavailableError("throttled")
        number = 0 if after is None else int(after) + 1
        jobs = [a_job(id=name) for name in self.pages[number]]
        cursor = str(number) if number + 1 < len(self.pages) else None
        return ScanPage(found=jobs, cursor=cursor, items=10 * len(jobs), read_units=2.5)

    def cursor_after(self, found: Found) -> str:
        assert isinstance(found, Job)
        return f"after {found.id}"

    def spend(self, units: float, *, within: timedelta) -> bool:
        self.paid.append((units, within))
        return self.pays

    @property
    def passes(self) -> TablePasses:
        return TablePasses(
            store=self,
            scan=self,  # type: ignore[arg-type]
            pace=self,  # type: ignore[arg-type]
            clock=lambda: self.now,
            new_token=lambda: "token",
            draw=lambda: 0.5,
        )

    def run(
        self, work: Callable[[str], bool] = lambda _name: True, *, time_left: Callable[[], timedelta] | None = None
    ) -> PassReport:
        def worked(found: Found) -> bool:
            assert isinstance(found, Job)
            return work(found.id)

        return self.passes.run(worked, late_by=HOUR, time_left=time_left or (lambda: INVOCATION))


def found_of(report: PassReport) -> dict[str, int]:
    return {name: getattr(report, name) for name in ("done", "failed", "unfinished", "read", "items")}


def the_counts(**changes: int) -> dict[str, int]:
    return dict.fromkeys(("done", "failed", "unfinished", "read", "items"), 0) | changes


def test_a_run_holds_the_pass_reads_it_to_its_end_and_lets_go() -> None:
    world = World(pages=[["a", "b"], ["c"]])
    seen: list[str] = []

    report = world.run(lambda name: not seen.append(name))  # type: ignore[func-returns-value]

    assert seen == ["a", "b", "c"]
    assert [(segment, of, after) for segment, of, after, _ in world.asked_for] == [(0, 1, None), (0, 1, "0")]
    assert {since for *_, since in world.asked_for} == {NOW - HOUR}
    assert world.paid == [(2.5, INVOCATION - RESERVE)] * 2
    held = replace(ONE, held_by="token", held_until=NOW + INVOCATION)
    ended = replace(held, ended_at=NOW, covered_since=ONE.began_at)
    assert world.writes == [held, ended, replace(ended, held_by=None, held_until=None)]
    assert (report.table_pass, report.age, report.completed, report.busy) == (ended, HOUR, True, False)
    assert found_of(report) == the_counts(done=1, read=30, items=30)


@pytest.mark.parametrize(("left", "held"), [(timedelta(minutes=14), 14), (timedelta(days=1), 15)])
def test_a_run_holds_the_pass_for_its_invocation_and_never_longer_than_one_may_last(left: timedelta, held: int) -> None:
    world = World()
    world.run(time_left=lambda: left)
    assert world.writes[0].held_until == NOW + timedelta(minutes=held)


@pytest.mark.parametrize(
    ("stored", "number"),
    [
        (None, 1),
        (replace(ONE, ended_at=NOW), None),
        (replace(ONE, ended_at=NOW, asked=True), 8),
        (replace(ONE, ended_at=NOW, began_at=NOW - PASS_INTERVAL), 8),
        (replace(ONE, held_by="other", held_until=NOW + SECOND), None),
        (replace(ONE, held_by="other", held_until=NOW), 7),
    ],
)
def test_a_run_takes_an_open_pass_without_a_holder_or_begins_one_that_is_due(
    stored: TablePass | None, number: int | None
) -> None:
    world = World(stored=stored)
    world.run()
    assert [each.number for each in world.writes[:1]] == ([number] if number else [])
    assert (number is None) == (not world.asked_for)


def test_without_work_the_report_is_of_the_pass_as_others_leave_it() -> None:
    ended = replace(ONE, ended_at=NOW, segments=3)
    report = World(stored=ended).run()
    assert (report.table_pass, report.age, report.busy, report.completed) == (ended, 2 * HOUR, False, False)
    assert found_of(report) == the_counts(done=3)

    held = replace(ONE, segments=2, held_by="other", held_until=NOW + SECOND)
    done = Segment(pass_number=7, number=1, done=True, items=5)
    report = World(stored=held, segments={1: done, 0: replace(done, number=0, done=False)}).run()
    assert (report.table_pass, report.age, report.busy, report.completed) == (held, 2 * HOUR, True, False)
    assert found_of(report) == the_counts(done=1, items=10)


def test_a_pass_that_is_let_go_between_two_looks_is_not_busy() -> None:
    held = replace(ONE, held_by="other", held_until=NOW + SECOND)
    world = World(stored=held)
    reads: list[None] = []

    def between() -> None:
        reads.append(None)
        if len(reads) > 1:
            world.stored = replace(ONE)

    world.between = between
    assert not world.run().busy


def test_only_a_pass_that_exists_can_be_asked_for_anew() -> None:
    world = World(stored=None)
    world.passes.ask()
    assert world.writes == []

    world = World()
    world.passes.ask()
    assert world.writes == [replace(ONE, asked=True)]
    assert world.passes.find() == replace(ONE, asked=True)


@pytest.mark.parametrize(("refused", "fails"), [(MOST_WRITE_TRIES - 1, False), (MOST_WRITE_TRIES, True)])
def test_a_write_of_the_pass_is_tried_ten_times(refused: int, fails: bool) -> None:
    world = World(refused=refused)
    if fails:
        with pytest.raises(StoreUnavailableError):
            world.passes.ask()
    else:
        world.passes.ask()
    assert len(world.writes) == (not fails)


CURSOR: Final = Segment(pass_number=7, number=0, cursor="0", items=10, tries=3)


def test_a_run_goes_on_at_the_cursor_and_counts_what_it_read_itself() -> None:
    world = World(pages=[["a"], ["b"], ["c"]], segments={0: CURSOR})
    report = world.run()
    assert [after for _, _, after, _ in world.asked_for] == ["0", "1"]
    assert world.saves == [
        replace(CURSOR, cursor="1", items=20, tries=0),
        replace(CURSOR, cursor=None, done=True, items=30, tries=0),
    ]
    assert found_of(report) == the_counts(done=1, read=20, items=30)


@pytest.mark.parametrize("left", [RESERVE, RESERVE - SECOND])
def test_without_time_a_run_reads_no_page(left: timedelta) -> None:
    world = World(segments={0: CURSOR}, pages=[["a"], ["b"]])
    report = world.run(time_left=lambda: left)
    assert (world.asked_for, world.saves, report.completed) == ([], [], False)
    assert found_of(report) == the_counts(unfinished=1, items=10)
    assert World(segments={0: CURSOR}, pages=[["a"], ["b"]]).run(time_left=lambda: RESERVE + SECOND).done == 1


def test_a_page_that_was_not_paid_for_in_time_is_the_last_of_its_run() -> None:
    world = World(segments={0: CURSOR}, pages=[["a"], ["b"], ["c"]], pays=False)
    report = world.run()
    assert len(world.asked_for) == 1
    assert found_of(report) == the_counts(unfinished=1, read=10, items=20)


@pytest.mark.parametrize(("worked", "saved"), [(0, []), (1, ["after a"])])
def test_a_run_whose_time_ends_amid_a_page_goes_past_what_it_worked(worked: int, saved: list[str]) -> None:
    left = [worked]

    def work(_name: str) -> bool:
        if not left[0]:
            raise TimeoutError
        left[0] -= 1
        return True

    world = World(segments={0: CURSOR}, pages=[["x"], ["a", "b"]])
    report = world.run(work)

    assert [(each.cursor, each.done) for each in world.saves] == [(cursor, False) for cursor in saved]
    assert world.paid == []
    assert found_of(report) == the_counts(unfinished=1, read=worked, items=10 + worked)


@pytest.mark.parametrize(("tries", "passes_on"), [(0, False), (MOST_TRIES - 2, False), (MOST_TRIES - 1, True)])
def test_a_page_with_an_item_that_fails_is_left_after_twelve_runs(tries: int, passes_on: bool) -> None:
    segment = replace(CURSOR, tries=tries)
    world = World(segments={0: segment}, pages=[["x"], ["a", "b"], ["c"]])
    seen: list[str] = []

    def work(name: str) -> bool:
        seen.append(name)
        return name != "a"

    report = world.run(work)

    assert seen[:2] == ["a", "b"]
    if passes_on:
        assert world.saves[0] == replace(segment, cursor="1", items=30, tries=0)
        assert found_of(report) == the_counts(done=1, read=30, items=40)
    else:
        assert world.saves == [replace(segment, tries=tries + 1)]
        assert found_of(report) == the_counts(failed=1, items=10)


def test_a_segment_whose_cursor_another_run_moved_is_left_to_it() -> None:
    world = World(segments={0: CURSOR}, pages=[["x"], ["a"], ["b"]], moved_by_another=True)
    report = world.run()
    assert len(world.saves) == 1
    assert found_of(report) == the_counts(unfinished=1, items=10)


def test_a_table_that_does_not_respond_fails_the_segments_that_it_was_read_for() -> None:
    world = World(stored=replace(ONE, segments=2), segments={0: CURSOR, 1: Segment(pass_number=7, number=1, done=True)})
    world.down = True
    report = world.run()
    assert report.completed is False
    assert found_of(report) == the_counts(done=1, failed=1, items=10)


def test_a_pass_is_complete_only_with_each_of_its_segments() -> None:
    world = World(stored=replace(ONE, segments=3))
    assert world.run().completed
    assert sorted(segment for segment, *_ in world.asked_for) == [0, 1, 2]
    assert first_pass(NOW).segments == SEGMENTS


LATER: Final = replace(ONE, number=8, began_at=NOW)


@pytest.mark.parametrize(
    "others", [None, LATER, replace(LATER, held_by="token"), replace(ONE, ended_at=NOW, covered_since=NOW)]
)
def test_a_run_ends_no_pass_that_others_ended_or_replaced(others: TablePass | None) -> None:
    """It lets go of what it holds, and of nothing else."""
    world = World()

    def work(_name: str) -> bool:
        world.stored = others
        return True

    report = world.run(work)

    assert (report.completed, report.done, report.table_pass.number) == (False, 1, 7)
    let_go = others is not None and others.held_by == "token"
    assert world.writes[1:] == ([replace(LATER, held_by=None)] if let_go else [])


def test_a_run_that_cannot_let_go_reports_all_the_same() -> None:
    """The pass is free when its hold ends."""
    world = World()
    reads: list[None] = []

    def between() -> None:
        reads.append(None)
        if len(reads) > 2:
            raise StoreUnavailableError("throttled")

    world.between = between

    assert world.run().completed
    assert world.stored is not None
    assert world.stored.held_by == "token"


def test_a_run_that_fails_lets_go() -> None:
    world = World()

    def work(_name: str) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        world.run(work)
    assert world.stored == ONE


def test_an_operator_who_interrupts_a_run_waits_for_no_further_page() -> None:
    world = World(stored=replace(ONE, segments=9), pages=[[str(number)] for number in range(100)])
    begun: list[str] = []

    def work(name: str) -> bool:
        begun.append(name)
        if len(begun) == 1:
            raise KeyboardInterrupt
        # The interrupt comes before all pages are done.
        time.sleep(0.001)
        return True

    with pytest.raises(KeyboardInterrupt):
        world.run(work)

    assert len(world.asked_for) < 8 * 100
    assert world.stored == replace(ONE, segments=9)


def test_segments_are_read_in_a_random_order() -> None:
    world, draws = World(stored=replace(ONE, segments=3)), iter([0.9, 0.1, 0.5])
    passes = TablePasses(
        store=world,
        scan=world,  # type: ignore[arg-type]
        pace=Pace(1_000, clock=lambda: NOW, pause=lambda _seconds: None),
        clock=lambda: NOW,
        new_token=lambda: "token",
        draw=lambda: next(draws),
    )
    begun: list[int] = []

    class OneAtATime:
        def __init__(self, _most: int) -> None:
            pass

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_error: object) -> None:
            pass

        def map(self, call: Callable[[int], Any], numbers: list[int]) -> list[Any]:
            begun.extend(numbers)
            return [call(number) for number in numbers]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemill.application.passes.table_pass.ThreadPoolExecutor", OneAtATime)
        passes.run(lambda _found: True, late_by=HOUR, time_left=lambda: INVOCATION)
    assert begun == [1, 2, 0]

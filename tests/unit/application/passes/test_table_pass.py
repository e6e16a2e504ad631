"""A pass reads the whole table over many runs. It survives kills, failures and concurrent runs, and keeps its rate."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tests.support.job_tables import Table
from tests.support.passes import fresh_token, passes_of
from tests.support.single_job import Clock
from tidemill.application.passes import table_pass
from tidemill.application.passes.pace import Pace
from tidemill.application.passes.pass_state import PASS_INTERVAL
from tidemill.application.passes.table_pass import MOST_TRIES, RESERVE, PageWork, PassReport, TablePasses
from tidemill.application.ports import Found, PayloadItem, ScanPage
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.dynamodb.passes.pass_store import DynamoPasses

INVOCATION = timedelta(minutes=15)
PAGES = 4
SEGMENTS = 12


class Pages:
    """A `TableScan` with one job on each of the pages of each segment."""

    def __init__(self) -> None:
        self.read: list[tuple[int, str | None]] = []

    def page(self, segment: int, *, of: int, after: str | None, **_rest: Any) -> ScanPage:
        assert segment < of
        self.read.append((segment, after))
        number = 0 if after is None else int(after.rpartition("/")[2]) + 1
        cursor = f"{segment}/{number}" if number + 1 < PAGES else None
        return ScanPage(found=[a_job(id=f"{segment}/{number}")], cursor=cursor, items=1, read_units=1.0)

    def cursor_after(self, found: Found) -> str:
        raise AssertionError("no page has a second job")

    def discard(self, payload: PayloadItem) -> None:
        raise AssertionError("the table holds no payload")


class Worked:
    """Records the jobs that were worked. `act` may raise, or refuse a job by returning False."""

    def __init__(self, act: Callable[[str], bool] = lambda _job: True) -> None:
        self.jobs: list[str] = []
        self.act = act

    def __call__(self, job: Found) -> bool:
        assert isinstance(job, Job)
        result = self.act(job.id)
        if result:
            self.jobs.append(job.id)
        return result


class Killed(BaseException):
    """Ends a run as the end of its process does."""


@pytest.fixture(autouse=True)
def segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer than in production."""
    monkeypatch.setattr("tidemill.application.passes.pass_state.SEGMENTS", SEGMENTS)


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
def passes(table: Table, clock: Clock, pages: Pages) -> TablePasses:
    return passes_of(table, clock, scan=pages)


def run(passes: TablePasses, worked: PageWork, time_left: Callable[[], timedelta] = lambda: INVOCATION) -> PassReport:
    return passes.run(worked, late_by=timedelta(0), time_left=time_left)


def calls(number: int) -> Callable[[], timedelta]:
    """The time that is left, which ends after this many looks at it."""
    left = [number]

    def time_left() -> timedelta:
        left[0] -= 1
        return INVOCATION if left[0] >= 0 else RESERVE

    return time_left


def test_one_run_reads_every_page_of_every_segment_once(passes: TablePasses) -> None:
    worked = Worked()

    report = run(passes, worked)

    assert sorted(worked.jobs) == sorted(f"{segment}/{page}" for segment in range(SEGMENTS) for page in range(PAGES))
    assert (report.done, report.failed, report.unfinished, report.completed) == (SEGMENTS, 0, 0, True)
    assert report.read == report.items == SEGMENTS * PAGES
    assert not report.table_pass.open


def test_runs_that_are_cut_short_read_every_page_once_together(passes: TablePasses) -> None:
    worked, runs = Worked(), 0
    while (found := passes.find()) is None or found.open:
        report = run(passes, worked, calls(12))
        runs += 1
        assert report.items == len(worked.jobs)

    assert runs > 3
    assert len(worked.jobs) == len(set(worked.jobs)) == SEGMENTS * PAGES


def test_a_killed_run_repeats_at_most_its_open_pages(table: Table, clock: Clock, passes: TablePasses) -> None:
    worked = Worked()
    left = [20]

    def dies(_job: str) -> bool:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return True

    with pytest.raises(Killed):
        run(passes, Worked(dies))
    worked.jobs.clear()

    # A killed process does not let go of its pass, but the time of that ends.
    clock.now += INVOCATION + SECOND
    report = run(passes, worked)

    assert report.completed
    assert SEGMENTS * PAGES - 20 <= len(worked.jobs) <= SEGMENTS * PAGES - 20 + 2 * 8
    assert len(set(worked.jobs)) == len(worked.jobs)
    assert passes_of(table, clock).find() == passes.find()


def test_a_pass_that_is_held_is_left_to_the_other_run(passes: TablePasses, clock: Clock) -> None:
    inner: list[PassReport] = []

    def meets(_job: str) -> bool:
        if not inner:
            inner.append(run(passes, Worked()))
        return True

    outer = run(passes, Worked(meets))

    assert (inner[0].busy, inner[0].read) == (True, 0)
    assert outer.completed
    assert inner[0].age == clock.now - outer.table_pass.began_at


def test_two_runs_on_one_pass_lose_no_page(
    passes: TablePasses, pages: Pages, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """The hold of the first run has ended, for example because its process was frozen."""
    monkeypatch.setattr(table_pass, "_LONGEST_HOLD", timedelta(0))
    second = Worked()
    begun: list[None] = []

    def meets(_job: str) -> bool:
        if not begun:
            begun.append(None)
            run(passes, second)
        return True

    first = Worked(meets)
    run(passes, first)

    assert {*first.jobs, *second.jobs} == {f"{segment}/{page}" for segment in range(SEGMENTS) for page in range(PAGES)}
    # Each run left the segments in which they met to the other one, so perhaps neither has ended the pass.
    run(passes, Worked())
    found = passes.find()
    assert found is not None
    assert (found.number, found.open) == (1, False)
    assert len(pages.read) >= SEGMENTS * PAGES


def test_a_cursor_never_moves_back_or_over_another_version(table: Table, passes: TablePasses) -> None:
    store = DynamoPasses(table.client, table=table.name, new_token=fresh_token)
    run(passes, Worked(), calls(20))
    found = passes.find()
    assert found is not None
    before = store.segment(found, 0)

    assert store.save(before.past("0/2", 1)) is not None
    assert store.save(before.past("0/1", 1)) is None
    assert store.save(replace(before, version=None)) is None
    assert store.segment(found, 0).cursor == "0/2"


def test_the_next_pass_begins_a_day_later_and_from_the_beginning(passes: TablePasses, clock: Clock) -> None:
    run(passes, Worked())
    began = clock.now
    clock.now += PASS_INTERVAL - SECOND
    idle = run(passes, worked := Worked())
    assert (idle.read, idle.done, idle.age, worked.jobs) == (0, SEGMENTS, clock.now - began, [])

    clock.now += SECOND
    report = run(passes, worked)

    assert (report.table_pass.number, len(worked.jobs)) == (2, SEGMENTS * PAGES)
    assert report.age == timedelta(0)


def test_a_call_without_work_reads_no_segment(
    passes: TablePasses, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(passes, Worked())
    clock.now += SECOND
    monkeypatch.delattr(DynamoPasses, "segment")

    idle = run(passes, Worked())

    assert (idle.done, idle.busy) == (SEGMENTS, False)


def test_a_pass_that_was_asked_for_begins_when_the_open_one_ends(passes: TablePasses) -> None:
    run(passes, Worked(), calls(12))
    passes.ask()

    first = run(passes, Worked())
    second = run(passes, Worked())
    third = run(passes, Worked())

    assert (first.table_pass.number, first.completed) == (1, True)
    assert (second.table_pass.number, second.completed, second.read) == (2, True, SEGMENTS * PAGES)
    assert (third.table_pass.number, third.read) == (2, 0)


def test_an_item_that_fails_is_tried_again_and_delays_no_other_segment(passes: TablePasses) -> None:
    def refuses(job: str) -> bool:
        return job != "3/1"

    first = run(passes, worked := Worked(refuses))
    assert (first.done, first.failed) == (SEGMENTS - 1, 1)
    assert len(worked.jobs) == (SEGMENTS - 1) * PAGES + 1

    second = run(passes, repaired := Worked())
    assert second.completed
    assert repaired.jobs == ["3/1", "3/2", "3/3"]


def test_an_item_that_always_fails_is_left_to_the_next_pass(passes: TablePasses) -> None:
    worked = Worked(lambda job: job != "3/1")
    reports = [run(passes, worked) for _ in range(MOST_TRIES)]

    assert [report.failed for report in reports] == [1] * (MOST_TRIES - 1) + [0]
    assert reports[-1].completed
    assert len(worked.jobs) == SEGMENTS * PAGES - 1


@pytest.mark.parametrize("fails", [False, True])
def test_runs_whose_time_ends_amid_each_page_end_the_pass(
    table: Table, clock: Clock, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    monkeypatch.setattr("tidemill.application.passes.pass_state.SEGMENTS", 1)
    jobs = [a_job(due=NOW) for _ in range(5)]
    for job in jobs:
        table.put(job)
    passes = passes_of(table, clock)
    worked: list[str] = []
    runs = 0
    while (found := passes.find()) is None or found.open:
        left = [1]

        def work_one(job: Found, left: list[int] = left) -> bool:
            if not left[0]:
                raise TimeoutError
            left[0] -= 1
            assert isinstance(job, Job)
            worked.append(job.id)
            return not fails

        run(passes, work_one)
        runs += 1
        assert runs <= len(jobs) * MOST_TRIES

    assert set(worked) == {job.id for job in jobs}
    assert len(worked) == len(jobs) * (MOST_TRIES if fails else 1)


def test_a_page_that_cannot_be_read_is_read_by_the_next_run(
    passes: TablePasses, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*_: object, **__: object) -> ScanPage:
        raise StoreUnavailableError("throttled")

    with monkeypatch.context() as outage:
        outage.setattr(pages, "page", unavailable)
        for _ in range(2 * MOST_TRIES):
            assert run(passes, Worked()).failed == SEGMENTS

    assert run(passes, worked := Worked()).completed
    assert len(worked.jobs) == SEGMENTS * PAGES


def test_an_open_pass_keeps_its_segments_when_their_number_changes(
    passes: TablePasses, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(passes, worked := Worked(), calls(12))
    monkeypatch.setattr("tidemill.application.passes.pass_state.SEGMENTS", 3)

    assert run(passes, worked).completed
    assert len(set(worked.jobs)) == SEGMENTS * PAGES
    passes.ask()
    assert run(passes, Worked()).done == 3


def test_reads_keep_to_their_rate(table: Table, clock: Clock, pages: Pages) -> None:
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        clock.now += timedelta(seconds=seconds)

    passes = TablePasses(
        store=DynamoPasses(table.client, table=table.name, new_token=fresh_token),
        scan=pages,
        pace=Pace(2, clock=clock, pause=pause),
        clock=clock,
        new_token=fresh_token,
        draw=lambda: 0.5,
    )
    end = NOW + timedelta(seconds=12)
    report = run(passes, Worked(), lambda: end + RESERVE - clock.now)

    # 2 units a second for 12 seconds. Each of the 8 threads reads one page more than it can wait for.
    assert 2 * 12 - 8 <= report.read <= 2 * 12 + 8
    assert clock.now <= end
    assert paused
    assert run(passes, Worked(), lambda: timedelta(hours=1)).completed

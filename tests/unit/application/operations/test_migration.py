"""`Migrator`: what becomes of each job, what a run saves, and where it goes on."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import chain, repeat
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.builders import MILLISECOND, NOW, SECOND, TENANT, a_job, a_job_type, types_of, with_changes
from tests.support.migrations import add_unit
from tests.support.single_job import Clock
from tidemill.application.job_filter import JobFilter
from tidemill.application.operations.migration import Migration, Migrator, Progress
from tidemill.application.passes.job_search import JobPage
from tidemill.application.passes.pace import Pace
from tidemill.application.ports import UnreadableItem
from tidemill.domain.errors import (
    InvalidPayloadError,
    MalformedDocumentError,
    StoreUnavailableError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.in_memory.single_job import Inline
from tidemill.names import LARGEST_BODY_BYTES

LIVE = Migration(type="test.job", ended=False, dry_run=False)
ENDED_STATES = {State.SUCCEEDED, State.DEAD, State.CANCELLED, State.EXPIRED}


class Table:
    """A scan of pages, which also takes the writes and has the large payloads."""

    def __init__(self, *pages: Sequence[Job | UnreadableItem], error: Exception | None = None) -> None:
        self._pages = pages
        self._error = error
        self.rewritten: list[tuple[Job, Job]] = []
        self.asked: list[tuple[JobFilter, str | None]] = []

    def page(self, wanted: JobFilter, *, after: str | None) -> JobPage:
        self.asked.append((wanted, after))
        number = sum(cursor is not None for _, cursor in self.asked)
        cursor = f"page {number}" if number + 1 < len(self._pages) else None
        return JobPage(found=self._pages[number], cursor=cursor, items=1, read_units=1)

    def cursor_after(self, job: Job) -> str:
        return f"after {job.id}"

    def rewrite(self, job: Job, stored: Job) -> None:
        if self._error:
            raise self._error
        self.rewritten.append((job, stored))


class Stored(Inline):
    """Each new payload is stored apart."""

    def __init__(self, error: Exception | None = None) -> None:
        self.deleted: list[tuple[str, str, str | None]] = []
        self.times: list[datetime | None] = []
        self._error = error

    def put_away(self, job: Job, *, now: datetime | None = None) -> Job:
        assert job.payload.location is None
        self.times.append(now)
        return with_changes(job, payload_at="new")

    def load(self, job: Job) -> str:
        if self._error:
            raise self._error
        return super().load(job)

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        self.deleted.append((tenant, job_id, location))


class Model(BaseModel, extra="forbid"):
    n: int
    unit: str


def _parse(payload: Any) -> Model:
    try:
        return Model.model_validate(payload)
    except ValueError:
        raise InvalidPayloadError([]) from None


class Migrating:
    """One run, and what it saved and reported."""

    def __init__(
        self,
        table: Table,
        *,
        payloads: Stored | None = None,
        migration: Migration = LIVE,
        change: Callable[[dict[str, Any]], dict[str, Any]] = add_unit,
        progress: Progress | None = None,
        clock: Callable[[], datetime] | None = None,
        times_left: Sequence[timedelta] = (),
        jobs_per_second: float = 1e9,
    ) -> None:
        self.payloads = payloads or Stored()
        self.saved: list[Progress] = []
        self.failed: list[tuple[str, str, str]] = []
        clock = clock or Clock()
        left = chain(times_left, repeat(timedelta(minutes=1)))
        migrator = Migrator(
            store=table,
            payloads=self.payloads,
            scan=table,
            reads=Pace(1e9, clock=clock, pause=lambda _seconds: None),
            jobs=Pace(jobs_per_second, clock=clock, pause=lambda _seconds: None),
            job_types=types_of(a_job_type(parse=_parse)),
            clock=clock,
        )
        self.progress = migrator.run(
            migration,
            change,
            progress or Progress(),
            time_left=lambda: next(left),
            save=self.saved.append,
            failed=lambda *failure: self.failed.append(failure),
        )


def _job(payload: str = '{"n":1}', **changes: Any) -> Job:
    return a_job(payload=payload, **changes)


@pytest.mark.parametrize(("ended", "state"), [(state in ENDED_STATES, state) for state in State])
def test_a_migration_is_about_the_live_jobs_of_its_type_or_about_the_ended_ones(ended: bool, state: State) -> None:
    for wants_ended in (False, True):
        wanted = Migration(type="test.job", ended=wants_ended, dry_run=False).wanted
        assert (a_job(state=state) in wanted) is (wants_ended is ended)
        assert a_job(state=state, type="other") not in wanted


def test_a_payload_is_rewritten_and_the_one_before_is_deleted() -> None:
    job = _job(payload_at="old")
    table = Table([job])

    ran = Migrating(table)

    ((read, stored),) = table.rewritten
    assert read is job
    assert stored == with_changes(job, payload='{"unit":"m","n":1}', payload_at="new")
    assert ran.payloads.times == [NOW]
    assert ran.payloads.deleted == [(TENANT, job.id, "old")]
    assert ran.progress == Progress(
        complete=True,
        rewritten=1,
        examples=({"id": job.id, "before": '{"n":1}', "after": '{"unit":"m","n":1}'},),
    )
    assert ran.progress.seen == 1
    assert (ran.saved, ran.failed) == ([], [])


def test_a_dry_run_counts_and_writes_nothing() -> None:
    job = _job()
    table = Table([job])

    ran = Migrating(table, migration=replace(LIVE, dry_run=True))

    assert (table.rewritten, ran.payloads.times, ran.payloads.deleted) == ([], [], [])
    assert (ran.progress.rewritten, len(ran.progress.examples)) == (1, 1)


def test_a_payload_in_the_new_form_stays_as_it_is() -> None:
    table = Table([_job('{"n": 1, "unit": "m"}')])

    ran = Migrating(table)

    assert (ran.progress, table.rewritten) == (Progress(complete=True, unchanged=1), [])


@pytest.mark.parametrize(("before", "after"), [("1", True), ("1", 1.0), ("1.0", 1), ("false", 0)])
def test_a_payload_that_python_takes_for_equal_and_json_does_not_is_rewritten(before: str, after: object) -> None:
    table = Table([_job(f'{{"unit":"m","n":{before}}}')])

    ran = Migrating(table, change=lambda payload: payload | {"n": after})

    assert (ran.progress.rewritten, ran.failed) == (1, [])
    assert [new.payload.text for _, new in table.rewritten] == [f'{{"unit":"m","n":{json.dumps(after)}}}']


@pytest.mark.parametrize("mark", Mark)
def test_a_document_that_only_records_that_a_node_has_no_job_stays_as_it_is(mark: Mark) -> None:
    place = FlowPlace(id="flow", node="n", mark=mark)
    job = a_job(payload="{}", state=State.CANCELLED, flow=place)
    ended = Migration(type="test.job", ended=True, dry_run=False)

    ran = Migrating(table := Table([job]), change=_fail, migration=ended)

    assert (ran.progress, ran.failed, table.rewritten) == (Progress(complete=True, unchanged=1), [], [])


def test_a_job_that_runs_is_left_alone() -> None:
    table = Table([_job(state=State.RUNNING)])

    ran = Migrating(table)

    assert (ran.progress, table.rewritten) == (Progress(complete=True, left=1), [])


@pytest.mark.parametrize(
    ("error", "deleted"),
    [(WriteRefusedError("rewrite", None), ["new"]), (TransactionConflictError("conflict"), [])],
)
def test_a_job_that_has_changed_is_left_and_an_unused_payload_is_deleted_where_that_is_sure(
    error: Exception, deleted: list[str]
) -> None:
    job = _job(payload_at="old")

    ran = Migrating(Table([job], error=error))

    assert ran.progress == Progress(complete=True, left=1)
    assert ran.payloads.deleted == [(TENANT, job.id, location) for location in deleted]
    assert ran.failed == []


def _grow(payload: dict[str, Any]) -> dict[str, Any]:
    return {"n": payload["n"] + 1, "unit": "m"}


def _toggle(payload: dict[str, Any]) -> dict[str, Any]:
    return payload | {"n": 1.0 if isinstance(payload["n"], int) else 1}


def _fail(_payload: dict[str, Any]) -> dict[str, Any]:
    raise KeyError("no unit")


def _fill(payload: dict[str, Any], *, size: int) -> dict[str, Any]:
    return payload | {"unit": "m" * (size - len('{"n":1,"unit":""}'))}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (_fail, "KeyError: 'no unit'"),
        (_grow, "NotRepeatableError: the function changes its own result again"),
        (_toggle, "NotRepeatableError: the function changes its own result again"),
        (lambda payload: {"n": payload["n"], "meters": True}, "InvalidPayloadError: "),
        (lambda _payload: ["m"], "InvalidPayloadError: "),
        (lambda payload: _fill(payload, size=LARGEST_BODY_BYTES + 1), "PayloadTooLargeError: "),
    ],
)
def test_a_payload_that_cannot_be_migrated_is_reported_and_stays(change: Any, error: str) -> None:
    job = _job()
    table = Table([job, _job('{"n":1,"unit":"m"}')])

    ran = Migrating(table, change=lambda payload: payload if "unit" in payload and change is _fail else change(payload))

    assert table.rewritten == []
    tenant, job_id, text = ran.failed[0]
    assert (tenant, job_id, text[: len(error)]) == (TENANT, job.id, error)
    assert ran.progress.failures[0] == {"tenant": TENANT, "id": job.id, "error": text}


def test_a_payload_may_be_as_large_as_a_body() -> None:
    ran = Migrating(Table([_job()]), change=lambda payload: _fill({"n": payload["n"]}, size=LARGEST_BODY_BYTES))

    assert (ran.progress.rewritten, ran.failed) == (1, [])


def test_a_payload_that_is_gone_is_a_failure_and_an_outage_ends_the_run() -> None:
    jobs = [_job()]

    assert Migrating(Table(jobs), payloads=Stored(MalformedDocumentError("it is gone"))).progress.failed == 1
    with pytest.raises(StoreUnavailableError):
        Migrating(Table(jobs), payloads=Stored(StoreUnavailableError("no answer")))
    with pytest.raises(StoreUnavailableError):
        Migrating(Table(jobs, error=StoreUnavailableError("no answer")))


def test_an_unreadable_item_is_a_failure_of_no_tenant() -> None:
    item, job = UnreadableItem("its key", ValueError("no state")), _job()

    ran = Migrating(Table([item, job]))

    assert ran.failed == [("", "its key", "no state")]
    assert ran.progress.failures == ({"tenant": "", "id": "its key", "error": "no state"},)
    assert (ran.progress.failed, ran.progress.rewritten) == (1, 1)


def test_long_texts_are_shortened_and_only_the_first_examples_and_failures_are_kept() -> None:
    long, whole = json.dumps({"n": 1, "x": "y" * 300}), json.dumps({"n": "y" * 192})
    jobs = [_job(long), _job(whole), *[_job("{}") for _ in range(6)]]

    failures = Migrating(Table(jobs), change=lambda payload: payload | {"unit": "m"}).progress
    examples = Migrating(Table([_job(f'{{"n":{n}}}') for n in range(4)])).progress

    assert (failures.failed, len(failures.failures)) == (8, 5)
    assert (examples.rewritten, len(examples.examples)) == (4, 3)
    assert [each["before"] for each in examples.examples] == ['{"n":0}', '{"n":1}', '{"n":2}']


@pytest.mark.parametrize(("length", "kept"), [(200, "e" * 200), (201, "e" * 199 + "…")])
def test_a_text_of_more_than_200_characters_is_cut(length: int, kept: str) -> None:
    ran = Migrating(Table([UnreadableItem("key", ValueError("e" * length))]))

    assert ran.progress.failures[0]["error"] == kept
    assert ran.failed[0][2] == "e" * length


def test_a_run_goes_on_at_the_cursor_and_ends_with_the_table() -> None:
    first, second = _job(), _job()
    table = Table([], [first], [second])

    ran = Migrating(table, progress=Progress(number=2, cursor="page 0", rewritten=7))

    assert [after for _, after in table.asked] == ["page 0", "page 1"]
    assert [job for job, _ in table.rewritten] == [first, second]
    assert (ran.progress.number, ran.progress.rewritten, ran.progress.cursor, ran.progress.complete) == (
        2,
        9,
        None,
        True,
    )


def test_a_run_without_time_for_the_next_job_ends_after_the_last_one() -> None:
    jobs = [_job(), _job(), _job()]
    table = Table(jobs)

    ran = Migrating(table, jobs_per_second=1, times_left=[SECOND, 2 * SECOND, 2 * SECOND])

    assert len(table.rewritten) == 2
    assert ran.progress == replace(
        Progress(rewritten=2, examples=ran.progress.examples), cursor=f"after {jobs[1].id}", complete=False
    )


def test_an_unreadable_item_does_not_count_before_the_cursor_has_moved_past_it() -> None:
    """The next run meets it again."""
    item, job = UnreadableItem("its key", ValueError("no state")), _job()

    ran = Migrating(Table([item, job]), jobs_per_second=1, times_left=[timedelta(0)])

    assert ran.progress == Progress()


def test_a_run_without_time_for_the_next_page_ends_with_its_cursor() -> None:
    table = Table([_job()], [_job()])

    ran = Migrating(table, times_left=[SECOND, -SECOND])

    assert (ran.progress.cursor, ran.progress.complete, len(table.rewritten)) == ("page 0", False, 1)


@pytest.mark.parametrize(("step", "saves"), [(5 * SECOND, 3), (5 * SECOND - MILLISECOND, 1)])
def test_a_run_saves_its_progress_every_five_seconds(step: timedelta, saves: int) -> None:
    clock, jobs = Clock(), [_job(), _job(), _job()]

    def change(payload: dict[str, Any]) -> dict[str, Any]:
        if "unit" not in payload:
            clock.now += step
        return add_unit(payload)

    ran = Migrating(Table(jobs), clock=clock, change=change)

    assert len(ran.saved) == saves
    assert ran.saved[0].cursor == f"after {jobs[0 if saves == 3 else 1].id}"
    assert ran.saved[-1].rewritten == (3 if saves == 3 else 2)

"""A migration meets runs, crashes and other migrations: nothing is lost, and no payload is orphaned."""

import dataclasses
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import a_job, claimed, with_changes
from tests.support.deployed_functions import Mill
from tests.support.migrations import add_unit
from tests.support.payload_bucket import payload_of
from tidemill import Continue, Run, composition
from tidemill.application.operations.migration import Migration, Progress
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.document import key
from tidemill.dynamodb.payloads import payload_item
from tidemill.migration.job import MigrationRequest, migrate
from tidemill.names import MIGRATION_TENANT
from tidemill.system import clock

_TYPE: Final = "test.scripted"
_MIGRATION: Final = Migration(type=_TYPE, ended=False, dry_run=False)


def _put(mill: Mill, payload: str = '{"n":1}', **changes: Any) -> Job:
    job = composition.parts().payloads.put_away(a_job(type=_TYPE, payload=payload, **changes))
    mill.table.put(job)
    return job


def _payload(job: Job) -> Any:
    found = composition.parts().store.get(job.tenant, job.id)
    assert found
    return json.loads(composition.parts().payloads.load(found))


def _run(
    progress: Progress | None = None,
    change: Callable[[dict[str, Any]], dict[str, Any]] = add_unit,
    *,
    jobs: int = 1_000,
    page_time: timedelta = timedelta(seconds=-1),
    read_units: int = 1_000,
    saved: list[Progress] | None = None,
) -> Progress:
    """A run of a migration whose time ends after so many jobs, and that has `page_time` left after their page."""
    left = iter([*[timedelta(seconds=10)] * jobs, page_time])
    return (
        composition.parts()
        .migrator(rate=1_000, read_units=read_units)
        .run(
            _MIGRATION,
            change,
            progress or Progress(),
            time_left=lambda: next(left, timedelta(seconds=-1)),
            save=(saved if saved is not None else []).append,
            failed=lambda *_: None,
        )
    )


def test_a_job_that_is_claimed_meanwhile_is_left_with_its_payload(mill: Mill) -> None:
    job = _put(mill, payload_of(10_000))
    items = mill.stored()

    def change(payload: dict[str, Any]) -> dict[str, Any]:
        found = composition.parts().store.get(job.tenant, job.id)
        assert found
        if found.state is State.QUEUED:
            claimed(composition.parts().store, job)
        return add_unit(payload)

    progress = _run(change=change)

    assert (progress.left, progress.rewritten) == (1, 0)
    assert "unit" not in _payload(job)
    assert mill.stored() == items


def test_a_new_payload_is_young_for_reconcile_though_its_job_is_old(mill: Mill) -> None:
    """Reconcile may read it before the document names it, and deletes what is old."""
    job = _put(mill, payload_of(10_000), created_at=clock.now() - timedelta(days=20))
    began = clock.now()

    assert _run().rewritten == 1

    payloads = filter(None, map(payload_item, mill.table.client.scan(TableName=mill.table.name)["Items"]))
    (payload,) = [one for one in payloads if one.job_id == job.id]
    assert payload.stored_at >= began - timedelta(milliseconds=1)


def test_a_job_that_runs_is_taken_up_in_the_next_pass(mill: Mill) -> None:
    queued, waits = _put(mill), _put(mill)
    running = claimed(composition.parts().store, queued)
    request = MigrationRequest(type=_TYPE, function="tests.support.migrations:add_unit", rate=1_000)

    first = migrate(request, _a_run())

    assert isinstance(first, Continue)
    assert (_payload(waits), _payload(queued)) == ({"n": 1, "unit": "m"}, {"n": 1})
    assert first.after == timedelta(minutes=1)
    composition.parts().store.release(running, now=clock.now(), due=clock.now())

    second = migrate(request, _a_run(resumed_from=first.checkpoint))

    assert isinstance(second, dict)
    assert (second["number"], second["rewritten"], second["unchanged"], second["left"]) == (2, 2, 1, 0)
    assert _payload(queued) == {"n": 1, "unit": "m"}


def _a_run(**changes: Any) -> Run:
    now = clock.now()
    run = Run(
        job_id="migration",
        tenant=MIGRATION_TENANT,
        attempt=1,
        max_attempts=25,
        submitted_at=now,
        deadline=now + timedelta(seconds=30),
        idempotency_key="migration",
    )
    return dataclasses.replace(run, **changes)


def test_a_run_goes_on_where_the_last_one_ended(mill: Mill) -> None:
    jobs = [_put(mill) for _ in range(7)]
    progress, runs = Progress(), 0

    while not progress.complete:
        progress = _run(Progress.of_json(json.loads(json.dumps(progress.as_json()))), jobs=3)
        runs += 1

    assert runs == 3
    assert (progress.rewritten, progress.unchanged) == (7, 0)
    assert [_payload(job)["unit"] for job in jobs] == ["m"] * 7


def test_a_run_ends_before_a_wait_that_is_longer_than_its_time(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be killed in the wait for the read units of its page, and so would each of its repeats."""
    monkeypatch.setattr("tidemill.dynamodb.passes.job_scan._ITEMS", 1)
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    _put(mill)
    _put(mill)

    progress = _run(jobs=1, page_time=timedelta(seconds=0.1), read_units=1)

    assert (progress.rewritten, progress.complete) == (1, False)
    assert all(pause < 0.1 for pause in pauses)
    assert _run(progress).rewritten == 2


def test_a_run_that_was_killed_is_repeated_without_harm(mill: Mill) -> None:
    """Its progress is lost, and each payload is migrated once."""
    jobs = [_put(mill) for _ in range(4)]
    _run(jobs=2)

    progress = _run()

    assert (progress.rewritten, progress.unchanged) == (2, 2)
    assert [_payload(job) for job in jobs] == [{"n": 1, "unit": "m"}] * 4


@pytest.mark.parametrize(("seconds", "rewritten"), [(6, [1, 2, 3]), (5, [1, 2, 3]), (4.5, [2])])
def test_the_progress_is_saved_each_five_seconds_while_the_run_lasts(
    mill: Mill, seconds: float, rewritten: list[int]
) -> None:
    for _ in range(3):
        _put(mill)
    mill.stop_clock()
    saved: list[Progress] = []

    def slow(payload: dict[str, Any]) -> dict[str, Any]:
        # Each payload is changed twice, to see that its result stays.
        mill.late += timedelta(seconds=seconds / 2)
        return add_unit(payload)

    _run(change=slow, saved=saved)

    assert [progress.rewritten for progress in saved] == rewritten


def test_the_progress_fits_into_a_checkpoint(mill: Mill) -> None:
    for _ in range(8):
        _put(mill, payload_of(9_000), tenant="a:" + "x" * 500)

    def broken(_payload: dict[str, Any]) -> dict[str, Any]:
        raise ValueError('"' * 500)

    progress = _run(change=broken)

    assert progress.failed == 8
    assert len(json.dumps(progress.as_json())) <= 8 * 1024 - 1024


def _refused(code: str) -> Callable[..., None]:
    def update_item(**_request: object) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "a test"}}, "UpdateItem")

    return update_item


@pytest.mark.parametrize(
    ("code", "expected"), [("TransactionConflictException", (1, 0, 0)), ("ValidationException", (0, 1, 0))]
)
def test_one_job_that_cannot_be_written_does_not_end_the_run(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, code: str, expected: tuple[int, int, int]
) -> None:
    """A transaction may hold it: the next pass takes it up. Each other error is one of this job."""
    _put(mill, payload_of(10_000))
    monkeypatch.setattr(mill.client, "update_item", _refused(code), raising=False)

    progress = _run()

    assert (progress.left, progress.failed, progress.rewritten) == expected
    assert progress.complete


def test_a_store_that_does_not_answer_ends_the_run(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    job = _put(mill)
    monkeypatch.setattr(mill.client, "update_item", _refused("InternalServerError"), raising=False)

    with pytest.raises(StoreUnavailableError):
        _run()
    assert _payload(job) == {"n": 1}


def test_a_missing_payload_is_a_failure_of_its_job_alone(mill: Mill) -> None:
    gone = _put(mill)
    mill.table.put(with_changes(gone, payload=None, payload_at="item/gone"))
    fine = _put(mill)

    progress = _run()

    assert (progress.failed, progress.rewritten) == (1, 1)
    assert _payload(fine) == {"n": 1, "unit": "m"}


def test_a_damaged_job_counts_once_however_many_runs_its_page_takes(mill: Mill) -> None:
    for _ in range(2):
        _put(mill)
        damaged = _put(mill)
        mill.client.update_item(
            TableName=mill.table.name,
            Key=key(damaged.tenant, damaged.id),
            UpdateExpression="SET lane = :lane",
            ExpressionAttributeValues={":lane": {"S": "urgent"}},
        )
    progress, runs = Progress(), 0

    while not progress.complete:
        progress = _run(progress, jobs=1)
        runs += 1

    assert runs > 1
    assert (progress.rewritten, progress.failed, len(progress.failures)) == (2, 2, 2)

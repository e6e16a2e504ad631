"""Batches: opened, joined and closed over several requests; counted from documents; each callback is submitted once."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.support import deployed_functions
from tests.support.builders import TENANT
from tests.support.deployed_functions import Mill, forget
from tests.support.documented_job_types import job_types_of
from tests.support.http_events import Answer, call
from tidemill import Run, Submission, composition
from tidemill.application.job_types import JobTypes
from tidemill.batch import job
from tidemill.batch.job import run_batch
from tidemill.client import Accepted, Batch, BatchRefusedError, Tidemill
from tidemill.domain.batches import batches, composite_cancels
from tidemill.domain.errors import PermanentJobError, TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.batches import batch_pages
from tidemill.dynamodb.batches.batch_pages import DynamoBatchPages
from tidemill.entrypoints import control, query, submit
from tidemill.names import BATCH_PACKAGE, BATCH_TYPE, Env

JSON = {"content-type": "application/json"}
CALLBACKS = {
    "on_success": {"type": "test.scripted", "payload": {"callback": "success"}},
    "on_failure": {"type": "test.scripted", "payload": {"callback": "failure"}},
    "on_complete": {"type": "test.scripted", "payload": {"callback": "complete"}, "lane": "default"},
}


@pytest.fixture(autouse=True)
def _batches(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{BATCH_PACKAGE}")
    # The queues of moto keep the machine's time.
    monkeypatch.setattr(batches, "_LONGEST_PAUSE", timedelta(0))
    monkeypatch.setattr(batches, "_PAUSE_OF_JOB", timedelta(0))
    monkeypatch.setattr(composite_cancels, "_LONGEST_PAUSE", timedelta(0))
    monkeypatch.setattr(composite_cancels, "_PAUSE_OF_JOB", timedelta(0))
    forget()


def opened(body: Any = CALLBACKS, *, key: str | None = None) -> Answer:
    headers = {"content-type": "application/json"} | ({"idempotency-key": key} if key else {})
    return call(submit, "POST", "/batches", body=json.dumps(body), headers=headers)


def closed(batch_id: str) -> Answer:
    return call(control, "POST", f"/batches/{batch_id}/close")


def seen(batch_id: str) -> Answer:
    return call(query, "GET", f"/batches/{batch_id}")


def redriven(batch_id: str) -> Answer:
    return call(control, "POST", f"/jobs/{batch_id}/redrive")


def an_open_batch() -> str:
    answer = opened()
    assert (answer.status, answer.headers["Location"]) == (202, f"/batches/{answer.body['id']}")
    return str(answer.body["id"])


def called(mill: Mill, batch_id: str) -> list[str]:
    """The callbacks that have been submitted, in any order."""
    jobs = (composition.parts().store.get(TENANT, item) for item in _ids(mill))
    return sorted(json.loads(job.payload.text or "{}")["callback"] for job in jobs if job and job.parent == batch_id)


def _ids(mill: Mill) -> list[str]:
    items = mill.table.client.scan(TableName=mill.table.name)["Items"]
    return [item["pk"]["S"].rpartition("#")[2] for item in items if "state" in item]


def fail_if_asked(payload: Any, _run: Run) -> None:
    if getattr(payload, "fails", False):
        raise PermanentJobError("as asked")


def test_a_batch_counts_its_jobs_and_calls_back_once_all_have_succeeded(mill: Mill) -> None:
    batch = an_open_batch()
    first = mill.accepted(batch=batch)
    mill.run()
    mill.accepted(batch=batch)
    mill.accepted()

    assert mill.get(first).body["batch"] == batch
    assert seen(batch).body["counts"] == {"queued": 1, "succeeded": 1}
    assert closed(batch).body["closed_at"]
    assert called(mill, batch) == []
    mill.run()

    found = seen(batch).body
    assert (found["state"], found["jobs"], found["counts"]) == ("succeeded", 2, {"succeeded": 2})
    assert called(mill, batch) == ["complete", "success"]
    assert (mill.job(batch).progress.done, mill.job(batch).progress.total) == (2, 2)


def test_an_empty_batch_succeeds(mill: Mill) -> None:
    batch = an_open_batch()
    closed(batch)
    mill.run()
    assert (mill.job(batch).state, called(mill, batch)) == (State.SUCCEEDED, ["complete", "success"])


def test_a_batch_with_dead_jobs_dies_and_its_redrive_redrives_them(mill: Mill) -> None:
    mill.script.handler = fail_if_asked
    batch = an_open_batch()
    mill.accepted(batch=batch)
    dead = mill.accepted({"fails": True}, batch=batch)
    closed(batch)
    mill.run()

    assert (mill.job(batch).state, mill.job(dead).state) == (State.DEAD, State.DEAD)
    assert seen(batch).body["counts"] == {"dead": 1, "succeeded": 1}
    assert called(mill, batch) == ["complete", "failure"]

    # It fails again: no callback is submitted twice.
    assert redriven(batch).status == 200
    mill.run()
    assert (len(mill.job(dead).redrives), called(mill, batch)) == (1, ["complete", "failure"])

    mill.script.handler = lambda _payload, _run: None
    assert redriven(batch).status == 200
    mill.run()
    assert (mill.job(batch).state, mill.job(dead).state) == (State.SUCCEEDED, State.SUCCEEDED)
    assert called(mill, batch) == ["complete", "failure", "success"]


def test_a_redrive_ends_though_a_dead_job_has_expired_and_is_not_deleted_yet(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployed_functions, "MOST_ROUNDS", 20)
    mill.stop_clock()
    mill.script.handler = fail_if_asked
    batch = an_open_batch()
    dead = mill.accepted({"fails": True}, batch=batch)
    mill.run()
    mill.late += timedelta(days=5)
    closed(batch)
    mill.run()
    assert mill.job(batch).state is State.DEAD

    mill.late += timedelta(days=27)
    assert redriven(batch).status == 200
    mill.run()

    assert (mill.job(batch).state, mill.job(dead).redrives) == (State.DEAD, ())


def test_a_callback_has_no_hops_and_names_its_batch(mill: Mill) -> None:
    batch = an_open_batch()
    closed(batch)
    mill.run()
    jobs = [composition.parts().store.get(TENANT, job_id) for job_id in _ids(mill)]
    callbacks = [job for job in jobs if job and job.parent == batch]
    assert len(callbacks) == 2
    assert {(job.hops, job.batch) for job in callbacks} == {(0, None)}


def test_a_repeated_submission_is_one_job_of_the_batch_also_after_the_close(mill: Mill) -> None:
    batch = an_open_batch()
    first = mill.post(batch=batch, key="7")
    assert mill.post(batch=batch, key="7").body["id"] == first.body["id"]
    closed(batch)
    late = mill.post(batch=batch, key="7")
    assert (late.status, late.headers["Idempotent-Replayed"]) == (200, "true")
    assert mill.post(key="7").body["type"] == "urn:tidemill:problem:key-reused"
    mill.run()
    assert seen(batch).body["counts"] == {"succeeded": 1}


def test_no_job_joins_a_closed_batch(mill: Mill) -> None:
    batch = an_open_batch()
    closed(batch)
    before = mill.stored()
    for _ in range(2):
        late = mill.post(batch=batch)
        assert (late.status, late.body["type"]) == (409, "urn:tidemill:problem:not-allowed-now")
        assert mill.stored() >= before
        mill.run()
        before = mill.stored()


def test_a_job_that_joins_while_the_batch_is_closed_is_refused_by_its_page(mill: Mill) -> None:
    batch = mill.job(an_open_batch())
    composition.parts().batch_members.close(batch)

    late = mill.post(batch=batch.id)

    assert (late.status, late.body["detail"]) == (409, "the batch is closed")
    assert len(_ids(mill)) == 1


def test_a_batch_that_is_closed_while_a_job_joins_closes_a_moment_later_and_uses_no_attempt(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, conflicts = an_open_batch(), [TransactionConflictError("a job joins")]
    close = DynamoBatchPages.close

    def contended(*args: Any, **named: Any) -> None:
        if conflicts:
            raise conflicts.pop()
        close(*args, **named)

    monkeypatch.setattr(DynamoBatchPages, "close", contended)
    monkeypatch.setattr(job, "_BETWEEN_CLOSES", timedelta(0))
    closed(batch)
    mill.run()

    ended = mill.job(batch)
    assert (ended.state, ended.errors, conflicts) == (State.SUCCEEDED, (), [])


def test_a_full_page_refuses_a_job(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_pages, "MOST_ON_PAGE", 1)
    monkeypatch.setattr(batch_pages, "page_number", lambda _job_id: 0)
    batch = an_open_batch()
    assert mill.post(batch=batch).status == 202
    full = mill.post(batch=batch)
    assert (full.status, full.body["detail"]) == (409, "the batch is full")


@pytest.mark.parametrize(
    ("body", "faulty"),
    [
        ({"on_success": {"type": "test.unknown"}}, ["/on_success/type"]),
        ({"on_success": {"type": "test.unknown"}, "on_failure": {"type": ""}}, ["/on_failure/type"]),
        ({"on_complete": {"type": "test.scripted", "group": "", "payload": {}}}, ["/on_complete/group"]),
        ({"on_complete": {"type": "test.scripted", "delay_seconds": 1}}, ["/on_complete/delay_seconds"]),
        (
            {"on_success": {"type": BATCH_TYPE}, "on_failure": {"type": "test.no"}},
            ["/on_success/type", "/on_failure/type"],
        ),
        ({"jobs": []}, ["/jobs"]),
        ({"batch": "no-batch"}, ["/batch"]),
    ],
)
def test_what_does_not_fit_is_refused_with_the_path_of_each_fault(mill: Mill, body: Any, faulty: list[str]) -> None:
    answer = opened(body)
    assert (answer.status, [each["pointer"].removeprefix("#") for each in answer.body["errors"]]) == (422, faulty)
    assert mill.stored() == 0


def test_a_repeated_close_changes_nothing(mill: Mill) -> None:
    batch = an_open_batch()
    first = closed(batch)
    stored = mill.job(batch)
    again = closed(batch)
    assert (first.status, again.status, again.body) == (200, 200, first.body)
    assert mill.job(batch) == stored
    mill.run()
    stored = mill.job(batch)
    again = closed(batch)
    assert (again.status, again.body["state"], mill.job(batch)) == (200, "succeeded", stored)


def test_a_close_changes_nothing_of_a_batch_that_closed_by_itself(mill: Mill) -> None:
    mill.stop_clock()
    batch = an_open_batch()
    mill.late += batches.LONGEST_OPEN
    stored = mill.job(batch)
    assert closed(batch).status == 200
    assert mill.job(batch) == stored
    late = mill.post(batch=batch)
    assert (late.status, late.body["detail"]) == (409, f"the batch {batch} is closed")


def test_a_close_comes_too_late_once_the_job_of_the_open_batch_is_cancelled(mill: Mill) -> None:
    batch = an_open_batch()
    call(control, "POST", f"/jobs/{batch}/cancel")
    assert closed(batch).status == 409


def test_a_job_is_not_a_batch(mill: Mill) -> None:
    job = mill.accepted()
    for answer in (closed(job), seen(job), seen("no-batch")):
        assert (answer.status, answer.body["type"]) == (404, "urn:tidemill:problem:no-such-batch")
    answer = mill.post(batch=job)
    assert (answer.status, answer.body["errors"][0]["pointer"]) == (422, "#/batch")
    assert len(_ids(mill)) == 1


@pytest.mark.parametrize(
    "fields", [{"unique": {"period_seconds": 60}}, {"supersedes": "other"}, {"job_type": BATCH_TYPE}, {"batch": ""}]
)
def test_a_job_that_cannot_join_is_refused(mill: Mill, fields: dict[str, Any]) -> None:
    batch = an_open_batch()
    answer = mill.post(**{"batch": batch} | fields)
    assert answer.status == 422
    assert len(_ids(mill)) == 1


def test_the_same_opening_again_is_a_replay(mill: Mill) -> None:
    first, second = opened(key="7"), opened(key="7")
    assert (first.status, second.status, second.headers["Idempotent-Replayed"]) == (202, 200, "true")
    assert first.body["id"] == second.body["id"]
    assert opened({}, key="7").body["type"] == "urn:tidemill:problem:key-reused"


def test_nested_batches_wait_for_each_other(mill: Mill) -> None:
    mill.script.handler = fail_if_asked
    outer = an_open_batch()
    inner = str(opened({**CALLBACKS, "batch": outer}).body["id"])
    mill.accepted({"fails": True}, batch=inner)
    closed(outer)
    closed(inner)
    mill.run()
    assert (mill.job(inner).state, mill.job(outer).state) == (State.DEAD, State.DEAD)
    assert (called(mill, inner), called(mill, outer)) == (["complete", "failure"], ["complete", "failure"])

    mill.script.handler = lambda _payload, _run: None
    redriven(outer)
    mill.run()
    assert (mill.job(inner).state, mill.job(outer).state) == (State.SUCCEEDED, State.SUCCEEDED)
    assert called(mill, outer) == ["complete", "failure", "success"]


def test_a_deleted_job_counts_as_failed_a_minute_after_the_close(mill: Mill) -> None:
    mill.stop_clock()
    batch = an_open_batch()
    gone = mill.accepted(batch=batch)
    mill.table.client.delete_item(TableName=mill.table.name, Key={"pk": {"S": f"{TENANT}#{gone}"}})
    closed(batch)
    for _ in range(5):
        mill.publish()
        if (event := mill.receive())["Records"]:
            mill.work(event)
    assert mill.job(batch).state is not State.DEAD
    mill.late += timedelta(minutes=2)
    mill.run()
    assert (mill.job(batch).state, called(mill, batch)) == (State.DEAD, ["complete", "failure"])
    assert seen(batch).body["counts"] == {"missing": 1}
    assert mill.job(batch).errors[-1].message == (
        "1 of 1 jobs of the batch were deleted before a look saw their end, and no redrive brings them back"
    )


def test_a_member_that_has_expired_still_counts(mill: Mill) -> None:
    batch = an_open_batch()
    member = mill.accepted(batch=batch)
    mill.run()
    document: Job = mill.job(batch)
    composition.parts().batch_members.record(document, composition.parts().batch_members.look(document), last=False)
    mill.table.client.delete_item(TableName=mill.table.name, Key={"pk": {"S": f"{TENANT}#{member}"}})
    closed(batch)
    mill.run()
    assert (mill.job(batch).state, seen(batch).body["counts"]) == (State.SUCCEEDED, {"succeeded": 1})


def test_the_import_of_the_guide_is_published_once_its_rows_are_stored(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    with job_types_of("batches.md") as known:
        types = JobTypes({name: known.get(name) for name in known.names()} | {run_batch.name: run_batch})
        monkeypatch.setattr(composition, "known_job_types", lambda: types)
        forget()
        mill.stop_clock()
        client = Tidemill.at(
            mill.table.name, tenant=TENANT, job_packages=["batches_md"], client=mill.table.client, listed=False
        )
        ending = Submission(type="import.publish", payload={"name": "7"})
        batch = client.open_batch(Batch(on_success=ending, key="import-7")).job.id
        rows = [
            Submission(type="import.row", payload={"number": number, "text": "a"}, key=f"row-{number}", batch=batch)
            for number in range(5)
        ]
        for _ in range(2):
            assert all(isinstance(answer, Accepted) for answer in client.submit_many(rows))
        assert client.close_batch(batch)
        assert not client.close_batch("another")
        assert client.close_batch(batch)
        with pytest.raises(BatchRefusedError):
            client.submit(replace(rows[0], key="late"))
        mill.run()

    assert seen(batch).body["counts"] == {"succeeded": 5}
    (published,) = (job for job_id in _ids(mill) if (job := mill.job(job_id)).parent == batch)
    assert (published.type, published.result) == ("import.publish", '{"published":"7"}')

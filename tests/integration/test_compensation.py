"""Undo through the deployed functions: once, early, late, in a group; and the page that describes it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.api_gateway import request
from tests.support.deployed_functions import Mill
from tests.support.documented_job_types import job_types_of, run_example
from tests.support.http_events import ROLE, Answer
from tidemill import Done, Submission
from tidemill.application.attempt.run import Run
from tidemill.domain.states import State
from tidemill.testing import Drive, run_job

ANOTHER = {**ROLE, "userId": "AROANOTHER:a-session"}
UNDO = Submission(type="test.noop", payload={"n": 7}, tags=["undo"])


def undo(job_id: str, **more: Any) -> Answer:
    return request("POST", f"/jobs/{job_id}/undo", **more)


def is_problem(answer: Answer, status: int, detail: str) -> None:
    assert (answer.status, detail in answer.body["detail"]) == (status, True), answer


def with_undo(undoing: Submission = UNDO) -> Callable[[Any, Run], Done]:
    return lambda _payload, _run: Done({"n": 1}, undo=undoing)


@pytest.fixture
def done(mill: Mill) -> str:
    """A job that has succeeded and recorded an undo."""
    mill.script.handler = with_undo()
    job_id = mill.accepted()
    mill.run()
    return job_id


def test_a_success_shows_what_would_undo_it(mill: Mill, done: str) -> None:
    shown = mill.get(done).body

    assert shown["undo"] == {"type": "test.noop", "lane": "default", "payload": {"n": 7}, "tags": ["undo"]}
    assert (shown["undone_by"], shown["undone_at"]) == (None, None)


def test_an_undo_costs_no_write_until_it_is_asked_for(mill: Mill) -> None:
    mill.script.handler = with_undo()
    mill.read_configuration()
    mill.accepted()
    mill.run()

    writes = {
        name: number for name, number in mill.calls.items() if name in {"dynamodb.UpdateItem", "dynamodb.PutItem"}
    }
    assert writes == {"dynamodb.PutItem": 1, "dynamodb.UpdateItem": 2}
    assert "dynamodb.TransactWriteItems" not in mill.calls


def test_the_undo_is_submitted_once_and_runs(mill: Mill, done: str) -> None:
    answer = undo(done)

    assert (answer.status, answer.body["undoes"], answer.body["payload"]) == (200, done, {"n": 7})
    mill.run()
    again = undo(done)
    assert (again.status, again.body["id"], again.body["state"]) == (200, answer.body["id"], "succeeded")
    shown = mill.get(done).body
    assert (shown["state"], shown["undone_by"]) == ("succeeded", answer.body["id"])
    assert shown["history"][-1] == {"at": shown["undone_at"], "what": "succeeded", "cause": "undone", "attempt": None}
    assert mill.stored() == 2


def test_what_has_not_succeeded_or_recorded_nothing_is_refused(mill: Mill) -> None:
    job_id = mill.accepted()
    is_problem(undo(job_id), 409, "the job is queued; only a job that has succeeded can be undone")
    mill.script.handler = lambda _payload, _run: Done()
    mill.run()
    is_problem(undo(job_id), 409, "the job has recorded no undo")
    assert mill.stored() == 1


def test_the_jobs_of_another_tenant_look_missing(done: str) -> None:
    missing = undo("0199a5c2-7f11-7c3e-8a0e-5d5f3ad0c1b2")

    is_problem(missing, 404, "You own no job with this id")
    assert undo(done, iam=ANOTHER).body == missing.body


def test_an_undo_is_gone_with_its_job(mill: Mill, done: str) -> None:
    mill.late = timedelta(days=31)

    is_problem(undo(done), 404, "finished jobs are kept for a limited time")


def test_a_repeated_call_says_that_the_undo_has_been_deleted(mill: Mill, done: str) -> None:
    undoing = undo(done).body["id"]
    mill.table.client.delete_item(TableName=mill.table.name, Key={"pk": {"S": f"{mill.job(done).tenant}#{undoing}"}})

    is_problem(undo(done), 409, f"the job was undone by job {undoing}, which has been deleted since")


def test_the_undo_of_a_job_of_a_group_runs_at_its_end(mill: Mill) -> None:
    began: list[str] = []

    def handler(_payload: Any, run: Run) -> Done:
        began.append(run.job_id)
        return Done(undo=Submission(type="test.scripted") if len(began) == 1 else None)

    mill.script.handler = handler
    first = mill.accepted(group="orders")
    mill.run()
    second = mill.accepted(group="orders")
    undoing = undo(first).body
    third = mill.accepted(group="orders")
    mill.run()

    assert (undoing["group"], undoing["state"]) == ("orders", "waiting")
    assert began == [first, second, undoing["id"], third]


def test_a_large_undo_is_stored_beside_its_job(mill: Mill) -> None:
    payload = {"n": 7, "padding": "x" * 2_000}
    mill.script.handler = with_undo(Submission(type="test.scripted", payload=payload))
    job_id = mill.accepted()
    mill.run()

    undoing = undo(job_id).body

    assert undoing["payload"] == payload
    assert mill.job(undoing["id"]).payload.location is not None


@pytest.mark.parametrize(
    ("undoing", "says"),
    [
        (Submission(type="test.unknown"), "the undo was refused: unknown job type 'test.unknown'"),
        (Submission(type="test.noop", payload={"n": float("nan")}), "the undo was refused: /payload: must be JSON"),
        (Submission(type="test.noop", payload={"n": 1}, key="k"), "/idempotency_key: an undo takes none"),
        (Submission(type="test.noop", payload={"n": 1}, group="g"), "/group: an undo takes none"),
        (Submission(type="test.noop", payload={"n": 1}, batch="b"), "/batch: an undo takes none"),
        (Submission(type="test.scripted", payload={"p": "x" * 40_000}), "the limit is 32768 bytes"),
    ],
)
def test_an_undo_that_cannot_be_submitted_ends_the_job_with_the_reason(
    mill: Mill, undoing: Submission, says: str
) -> None:
    mill.script.handler = with_undo(undoing)
    job_id = mill.accepted()
    mill.run()

    job = mill.job(job_id)
    assert (job.state, job.death, job.correction.undo) == (State.DEAD, "result cannot be stored", None)
    assert says in job.errors[-1].message


def test_an_undo_expires_as_its_submission_says(mill: Mill) -> None:
    mill.script.handler = with_undo(Submission(type="test.noop", payload={"n": 1}, max_age=timedelta(minutes=5)))
    job_id = mill.accepted()
    mill.run()
    undoing = undo(job_id).body["id"]

    mill.late = timedelta(minutes=10)
    mill.run()

    assert mill.job(undoing).state is State.EXPIRED


def test_the_job_types_of_the_page_do_and_undo_as_the_page_says() -> None:
    with job_types_of("compensation.md") as known:
        ran = run_example("compensation.md", "from functions.jobs")["ran"]
        release = known.get("seat.release")

    assert run_job(release, dict(ran.undo.payload)).result == {"released": ran.result["number"]}
    assert Drive(release, {"number": "B-1"}).run().undo is None

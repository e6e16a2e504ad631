"""`POST /jobs/{id}/cancel` and `/redrive` through their handler, and the jobs that result."""

import json
from typing import Any

import pytest

from tests.support.api_gateway import request
from tests.support.builders import RETENTION, SECOND
from tests.support.deployed_functions import Mill
from tests.support.faulty_client import Fault
from tests.support.http_events import ROLE, Answer, call
from tidemill import PermanentJobError, composition
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.states import State
from tidemill.entrypoints import query

ANOTHER = {**ROLE, "userId": "AROANOTHER:a-session"}
JSON = {"Content-Type": "application/json"}


def cancel(job_id: str, **more: Any) -> Answer:
    return request("POST", f"/jobs/{job_id}/cancel", **more)


def redrive(job_id: str, **more: Any) -> Answer:
    return request("POST", f"/jobs/{job_id}/redrive", **more)


def retry(job_id: str, **more: Any) -> Answer:
    """The alias of `redrive`."""
    return request("POST", f"/jobs/{job_id}/retry", **more)


def is_problem(answer: Answer, status: int, code: str) -> None:
    assert (answer.status, answer.body["type"]) == (status, f"urn:tidemill:problem:{code}"), answer
    assert answer.headers["Content-Type"] == "application/problem+json"


def poison(_payload: object, _run: object) -> None:
    raise PermanentJobError("cannot digest it")


@pytest.fixture
def dead(mill: Mill) -> str:
    """The id of a dead job."""
    job_id = mill.accepted({"n": 1})
    mill.script.handler = poison
    mill.run()
    assert mill.job(job_id).state is State.DEAD
    return job_id


def test_a_queued_job_is_cancelled_and_never_runs(mill: Mill) -> None:
    ran = []
    mill.script.handler = lambda _payload, run: ran.append(run.job_id)
    job_id = mill.accepted({"n": 1})

    answer = cancel(job_id)

    assert (answer.status, answer.body["state"], answer.body["payload"]) == (200, "cancelled", {"n": 1})
    assert answer.body == mill.get(job_id).body
    mill.run()
    assert ran == []


def test_a_repeated_cancel_returns_the_same_response(mill: Mill) -> None:
    job_id = mill.accepted()
    first = cancel(job_id)
    mill.late = 5 * SECOND

    assert cancel(job_id) == first


def test_a_running_job_ends_at_its_next_checkpoint_after_a_cancel(mill: Mill) -> None:
    answers = []

    def handler(_payload: object, run: Any) -> None:
        answers.append(cancel(run.job_id))
        run.checkpoint({"at": 1}, done=1, total=2)

    mill.script.handler = handler
    job_id = mill.accepted()
    mill.run()

    (asked,) = answers
    assert (asked.status, asked.body["state"]) == (200, "running")
    assert asked.body["cancel_requested_at"]
    job = mill.get(job_id).body
    assert (job["state"], job["checkpoint"], job["progress"]["done"]) == ("cancelled", {"at": 1}, 1)


def test_a_job_that_succeeded_cannot_be_cancelled(mill: Mill) -> None:
    job_id = mill.accepted()
    mill.run()

    answer = cancel(job_id)

    is_problem(answer, 409, "not-allowed-now")
    assert "succeeded" in answer.body["detail"]


def test_an_owner_sees_no_name_and_no_words_of_an_operator(mill: Mill, dead: str) -> None:
    job = mill.job(dead)
    words: Any = {"by": "arn:aws:sts::111122223333:assumed-role/ops/an-operator", "reason": "an-operator said so"}
    redriven = composition.parts().store.redrive(job, token="a redrive", now=mill.now(), **words)
    composition.parts().store.cancel(redriven, now=mill.now(), **words)

    answer = mill.get(dead)

    assert "an-operator" not in json.dumps(answer.body)
    assert (answer.body["redrives"][0]["by"], answer.body["cancelled_by"]) == ("operator", "operator")
    assert [entry["what"] for entry in answer.body["history"]][-2:] == ["queued", "cancelled"]
    assert {entry["what"] for entry in answer.body["history"]} > {"accepted", "running", "dead"}
    assert "worker" not in answer.body["history"][1]
    assert "traceback" not in answer.body["errors"][-1]


def test_a_dead_job_is_discarded_by_a_cancel(mill: Mill, dead: str) -> None:
    assert cancel(dead).body["state"] == "cancelled"
    assert mill.get(dead).body["cancelled_by"] == "owner"
    is_problem(redrive(dead), 409, "not-allowed-now")


@pytest.mark.parametrize("act", [redrive, retry])
def test_a_dead_job_is_redriven_and_runs_again(mill: Mill, dead: str, act: Any) -> None:
    answer = act(dead)

    assert (answer.status, answer.body["state"], answer.body["attempt"]) == (200, "queued", 0)
    assert [redrive["by"] for redrive in answer.body["redrives"]] == ["owner"]
    mill.script.handler = lambda payload, _run: {"n": payload.n}
    mill.run()
    assert mill.get(dead).body["result"] == {"n": 1}


@pytest.mark.parametrize("act", [redrive, retry])
def test_a_job_that_is_not_dead_cannot_be_redriven(mill: Mill, act: Any) -> None:
    job_id = mill.accepted()

    answer = act(job_id)

    is_problem(answer, 409, "not-allowed-now")
    assert answer.body["detail"] == "a job that is queued cannot be redriven"
    assert mill.job(job_id).generation == 1


@pytest.mark.parametrize("act", [cancel, redrive, retry])
def test_a_job_that_is_missing_expired_or_of_another_tenant_is_the_same_404(mill: Mill, dead: str, act: Any) -> None:
    theirs, missing = act(dead, iam=ANOTHER), act("none")
    mill.late = RETENTION + SECOND
    expired = act(dead)

    for answer in (theirs, missing, expired):
        is_problem(answer, 404, "no-such-job")
    assert theirs.body == missing.body == expired.body
    assert mill.job(dead).state is State.DEAD


@pytest.mark.parametrize("act", [cancel, redrive, retry])
@pytest.mark.parametrize("body", [None, b"{}", b" {} "])
def test_a_body_may_be_missing_or_empty(mill: Mill, dead: str, act: Any, body: bytes | None) -> None:
    assert act(dead, body=body, headers=JSON).status == 200


@pytest.mark.parametrize("act", [cancel, redrive, retry])
@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", JSON, 400, "not-json"),
        (b"\xff", JSON, 400, "not-json"),
        (b"{}", {"Content-Type": "text/plain"}, 415, "media-type"),
        (b"[]", JSON, 422, "invalid-body"),
        (b"null", JSON, 422, "invalid-body"),
        (b'{"force": true}', JSON, 422, "invalid-body"),
    ],
)
def test_any_other_body_is_refused_and_changes_nothing(  # noqa: PLR0917 - a table
    mill: Mill, dead: str, act: Any, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    is_problem(act(dead, body=body, headers=headers), status, code)
    assert mill.job(dead).state is State.DEAD


@pytest.mark.parametrize("act", [cancel, redrive, retry])
def test_a_caller_without_an_identity_is_refused(mill: Mill, dead: str, act: Any) -> None:
    is_problem(act(dead, iam={}), 403, "no-identity")
    assert mill.job(dead).state is State.DEAD


@pytest.mark.parametrize(("act", "state"), [(cancel, State.CANCELLED), (redrive, State.QUEUED), (retry, State.QUEUED)])
def test_an_unavailable_store_is_a_503(mill: Mill, dead: str, act: Any, state: State) -> None:
    mill.client.faults = [Fault.NOT_SENT]
    is_problem(act(dead), 503, "unavailable")
    assert mill.job(dead).state is State.DEAD

    assert act(dead).status == 200
    assert mill.job(dead).state is state


@pytest.mark.parametrize("path", ["/jobs/x/forget", "/jobs/x/cancel/y", "/jobs//cancel"])
def test_other_actions_on_a_job_are_not_found(mill: Mill, path: str) -> None:
    assert request("POST", path).status == 404


def test_a_job_without_its_payload_is_shown_with_null(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> str:
        raise MalformedDocumentError("the payload is gone")

    job_id = mill.accepted({"n": 1})
    monkeypatch.setattr("tidemill.dynamodb.payloads.DynamoPayloads.load", gone)

    for answer in (mill.get(job_id), cancel(job_id)):
        assert (answer.status, answer.body["id"], answer.body["payload"]) == (200, job_id, None)


def test_a_job_is_json_with_times_in_utc(mill: Mill, dead: str) -> None:
    redrive(dead)
    shown = mill.get(dead).body

    assert json.loads(json.dumps(shown)) == shown
    times = [value for name, value in shown.items() if name.endswith("_at") or name in {"due", "deadline"}]
    assert {value[-1] for value in times if value} == {"Z"}


def test_an_id_in_upper_case_names_the_same_job(mill: Mill) -> None:
    job_id = mill.accepted()
    assert mill.get(job_id.upper()).body["id"] == job_id
    assert cancel(job_id.upper()).body["state"] == "cancelled"


def test_the_answer_for_a_path_with_a_slash_at_its_end_says_so(mill: Mill) -> None:
    answer = call(query, "GET", f"/jobs/{mill.accepted()}/")
    is_problem(answer, 404, "not-found")
    assert answer.body["detail"].endswith("No path ends in a slash.")

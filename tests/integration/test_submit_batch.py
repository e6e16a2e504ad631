"""A hundred jobs in one request: an answer each, and none that fails harms another."""

import json
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import a_job_type
from tests.support.deployed_functions import Mill
from tests.support.faulty_client import Fault, KilledError
from tests.support.http_events import Answer, call, http_event
from tests.support.patience import PATIENCE_SECONDS
from tidemill import composition
from tidemill.application.job_types import JobTypes
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Submit
from tidemill.aws import clients
from tidemill.domain.job import Job
from tidemill.entrypoints import submit
from tidemill.names import LARGEST_BATCH, LARGEST_BATCH_BODY_BYTES, LARGEST_BODY_BYTES, LARGEST_EVENT_BYTES

Post = Callable[..., Answer]
JSON = {"content-type": "application/json"}
HOUR = timedelta(hours=1)


@pytest.fixture
def post(mill: Mill) -> Post:
    def post(*jobs: Any, headers: Mapping[str, str] = JSON, **rest: Any) -> Answer:
        return call(submit, "POST", "/jobs/batch", body=json.dumps({"jobs": jobs, **rest}), headers=headers)

    return post


def _job(n: int = 0, **members: Any) -> dict[str, Any]:
    return {"type": "test.scripted", "payload": {"n": n}, **members}


def _denied(mill: Mill) -> None:
    """The function may not insert by statements, as in a stage that was deployed by an older version."""

    def refuse(**_request: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "BatchExecuteStatement")

    mill.client.batch_execute_statement = refuse  # type: ignore[attr-defined]  # a proxy


def _statuses(answer: Answer) -> list[int]:
    assert answer.status == 200, answer
    return [each["status"] for each in answer.body["jobs"]]


def test_a_batch_of_a_hundred_jobs_costs_a_write_each_and_keeps_their_order(mill: Mill, post: Post) -> None:
    mill.read_configuration()
    answer = post(*(_job(n) for n in range(LARGEST_BATCH)))

    assert _statuses(answer) == [202] * LARGEST_BATCH
    assert dict(mill.calls) == {"dynamodb.PutItem": LARGEST_BATCH}
    payloads = [mill.get(each["job"]["id"]).body["payload"]["n"] for each in answer.body["jobs"]]
    assert payloads == list(range(LARGEST_BATCH))


def test_a_hundred_jobs_take_four_calls(mill: Mill, post: Post) -> None:
    sent: list[int] = []
    execute = mill.client.batch_execute_statement

    def counted(**request: Any) -> Any:
        sent.append(len(request["Statements"]))
        return execute(**request)

    mill.client.batch_execute_statement = counted  # type: ignore[attr-defined]  # a proxy

    assert _statuses(post(*(_job(n) for n in range(LARGEST_BATCH)))) == [202] * LARGEST_BATCH
    assert sent == [25] * 4
    assert mill.stored() == LARGEST_BATCH


def test_without_the_right_each_job_is_inserted_by_a_call_of_its_own(mill: Mill, post: Post) -> None:
    _denied(mill)

    assert _statuses(post(*(_job(n) for n in range(5)))) == [202] * 5
    assert mill.stored() == 5


@pytest.mark.parametrize("lost", [Fault.NOT_SENT, Fault.ANSWER_LOST, Fault.SENT_TWICE])
def test_a_job_that_a_call_of_several_leaves_open_is_accepted_and_no_replay(
    mill: Mill, post: Post, lost: Fault
) -> None:
    mill.client.faults = [None, lost]
    jobs = [_job(n, idempotency_key=f"k{n}") for n in range(4)]

    assert _statuses(post(*jobs)) == [202] * 4
    assert _statuses(post(*jobs)) == [200] * 4
    assert _statuses(post(*(_job(n + 9, idempotency_key=f"k{n}") for n in range(4)))) == [422] * 4
    assert mill.stored() == 4


@pytest.mark.parametrize("killed", [Fault.KILLED_BEFORE, Fault.KILLED_AFTER])
def test_a_process_that_dies_within_a_call_of_several_loses_and_doubles_no_job(
    mill: Mill, post: Post, killed: Fault
) -> None:
    mill.client.faults = [None, killed]
    jobs = [_job(n, idempotency_key=f"k{n}") for n in range(4)]

    with pytest.raises(KilledError):
        post(*jobs)

    written = 1 if killed is Fault.KILLED_BEFORE else 2
    assert _statuses(post(*jobs)) == [200] * written + [202] * (4 - written)
    assert mill.stored() == 4


def test_the_jobs_of_a_batch_run(mill: Mill, post: Post) -> None:
    ran: list[int] = []
    mill.script.handler = lambda payload, _run: ran.append(payload.n)

    post(*(_job(n) for n in range(5)))
    mill.run()

    assert sorted(ran) == [0, 1, 2, 3, 4]


def test_a_job_is_shown_as_elsewhere_without_its_large_members(mill: Mill, post: Post) -> None:
    (answer,) = post(_job(1, lane="bulk")).body["jobs"]

    shown = mill.get(answer["job"]["id"]).body
    assert answer["job"] == {name: shown[name] for name in answer["job"]}
    assert "payload" not in answer["job"]
    assert answer["job"]["lane"] == "bulk"


@pytest.mark.parametrize("count", [0, LARGEST_BATCH + 1])
def test_an_empty_or_too_large_batch_is_refused_as_a_whole(mill: Mill, post: Post, count: int) -> None:
    answer = post(*(_job(n) for n in range(count)))

    assert answer.status == 422
    assert [error["pointer"] for error in answer.body["errors"]] == ["#/jobs"]
    assert mill.stored() == 0


@pytest.mark.parametrize("body", ["[]", "{}", '{"jobs": 1}', '{"jobs": {}}', '{"jobs": [{}], "lane": "bulk"}'])
def test_a_malformed_batch_is_refused_as_a_whole(mill: Mill, body: str) -> None:
    assert call(submit, "POST", "/jobs/batch", body=body, headers=JSON).status == 422
    assert mill.stored() == 0


def test_a_key_for_the_whole_batch_is_refused(mill: Mill, post: Post) -> None:
    answer = post(_job(), headers=JSON | {"idempotency-key": "k"})

    assert (answer.status, answer.body["type"]) == (400, "urn:tidemill:problem:invalid-key")
    assert mill.stored() == 0


def test_a_batch_may_be_larger_than_a_job(mill: Mill) -> None:
    def sized(size_bytes: int) -> str:
        return json.dumps({"jobs": [_job()]}).ljust(size_bytes)

    assert call(submit, "POST", "/jobs/batch", body=sized(LARGEST_BATCH_BODY_BYTES), headers=JSON).status == 200
    too_large = call(submit, "POST", "/jobs/batch", body=sized(LARGEST_BATCH_BODY_BYTES + 1), headers=JSON)
    assert (too_large.status, mill.stored()) == (413, 1)


@pytest.mark.parametrize("character", ['"', "\\", "\n", "\x7f", "<", "é", "☃", "😀"])
def test_the_largest_batch_fits_into_an_event_however_its_body_is_escaped(character: str) -> None:
    size_bytes = LARGEST_BATCH_BODY_BYTES // len(character.encode())
    everything_escaped = "".join(f"\\u{unit:04x}" for unit in memoryview(character.encode("utf-16-le")).cast("H"))
    # Request line and headers may have 10,240 bytes, and occur twice.
    headers = {"x": "\x7f" * 10_240}
    event = http_event("POST", "/jobs/batch", body="", headers=headers) | {"again": headers}
    assert size_bytes * len(everything_escaped) + len(json.dumps(event)) <= LARGEST_EVENT_BYTES


def test_an_invalid_submission_is_reported_with_its_path_and_harms_no_other(mill: Mill, post: Post) -> None:
    answer = post(
        _job(0),
        _job(1, lane="critical"),
        {"payload": {}},
        "rubbish",
        _job(4, idempotency_key="white space"),
        {"type": "none"},
        {"type": "test.scripted", "payload": {"n": "x", "a": 1}, "later": True},
        {"type": "test.scripted", "payload": {"a": "x" * LARGEST_BODY_BYTES}},
        _job(8, **{"\ud800": 1}),
        _job(9),
    )

    assert _statuses(answer) == [202, 422, 422, 422, 422, 422, 422, 413, 422, 202]
    problems = [each["problem"] for each in answer.body["jobs"][1:-1]]
    assert [problem["status"] for problem in problems] == [422] * 6 + [413, 422]
    assert [[error["pointer"] for error in problem.get("errors", [])] for problem in problems] == [
        ["#/jobs/1/lane"],
        ["#/jobs/2/type"],
        ["#/jobs/3"],
        ["#/jobs/4/idempotency_key"],
        ["#/jobs/5/type"],
        ["#/jobs/6/later", "#/jobs/6/payload/n"],
        [],
        ["#/jobs/8"],
    ]
    assert mill.stored() == 2


def test_a_write_without_an_answer_harms_no_other(mill: Mill, post: Post) -> None:
    mill.client.faults = [None, Fault.NOT_SENT, None, Fault.ANSWER_LOST]
    jobs = [_job(n, idempotency_key=f"k{n}") for n in range(6)]

    answer = post(*jobs)

    assert sorted(_statuses(answer)) == [202] * 5 + [503]
    again = post(*jobs)
    assert _statuses(again) == [200] * 6
    assert mill.stored() == 6


def test_an_internal_error_harms_no_other_and_is_not_shown(
    mill: Mill, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = Submit.insert

    def broken(self: Submit, job: Job) -> Accepted:
        if job.payload.text == '{"n":1}':
            raise RuntimeError("a secret")
        return insert(self, job)

    monkeypatch.setattr(Submit, "insert", broken)
    _denied(mill)

    answer = post(_job(0), _job(1), _job(2))

    assert _statuses(answer) == [202, 500, 202]
    assert "secret" not in json.dumps(answer.body)


def test_the_same_key_twice_makes_one_job_and_the_second_is_a_replay(mill: Mill, post: Post) -> None:
    answer = post(*(_job(7, idempotency_key="k") for _ in range(20)))

    assert _statuses(answer) == [202] + [200] * 19
    assert len({each["job"]["id"] for each in answer.body["jobs"]}) == 1
    assert mill.stored() == 1


def test_the_same_key_with_another_body_is_refused_and_the_first_stands(mill: Mill, post: Post) -> None:
    answer = post(_job(1, idempotency_key="k"), _job(2, idempotency_key="k"))

    assert _statuses(answer) == [202, 422]
    assert answer.body["jobs"][1]["problem"]["type"] == "urn:tidemill:problem:key-reused"
    assert mill.get(answer.body["jobs"][0]["job"]["id"]).body["payload"] == {"n": 1}


def test_the_first_job_of_a_key_stands_although_only_the_second_can_go_with_others(mill: Mill, post: Post) -> None:
    unique = {"period_seconds": 86_400, "key": "k"}

    answer = post(
        _job(1, idempotency_key="k", group="g"),
        _job(2),
        _job(1, idempotency_key="k"),
        _job(3, unique=unique, group="g"),
        _job(4, unique=unique),
    )

    assert _statuses(answer) == [202, 202, 422, 202, 200]
    assert mill.get(answer.body["jobs"][4]["job"]["id"]).body["payload"] == {"n": 3}


@pytest.mark.parametrize("refused", [{"debounce_seconds": 5}, {"run_at": "2020-01-01T00:00:00Z"}])
def test_a_refused_job_is_not_answered_with_a_later_one_of_its_key(
    mill: Mill, post: Post, refused: Mapping[str, Any]
) -> None:
    answer = post(_job(1, idempotency_key="k", **refused), _job(2), _job(1, idempotency_key="k"))

    assert _statuses(answer) == [422, 202, 202]
    assert answer.body["jobs"][0]["problem"]["type"] == "urn:tidemill:problem:invalid-body"
    assert mill.stored() == 2


def test_a_unique_job_that_a_batch_holds_twice_is_made_by_the_first(mill: Mill, post: Post) -> None:
    unique = {"period_seconds": 86_400, "key": "k"}

    answer = post(*(_job(n, unique=unique) for n in range(1, 20)))

    assert _statuses(answer) == [202] + [200] * 18
    assert mill.get(answer.body["jobs"][18]["job"]["id"]).body["payload"] == {"n": 1}


def test_jobs_of_a_group_are_accepted_in_the_order_of_the_batch(mill: Mill, post: Post) -> None:
    answer = post(*(_job(n, group=f"g{n % 3}") for n in range(12)))

    assert _statuses(answer) == [202] * 12
    assert [each["job"]["sequence"] for each in answer.body["jobs"]] == [n // 3 + 1 for n in range(12)]


def test_a_replay_whose_start_time_is_now_past_is_answered_with_its_job(mill: Mill, post: Post) -> None:
    jobs = [_job(0, idempotency_key="k", run_at=(mill.now() + HOUR).isoformat())]
    first = post(*jobs)
    mill.late = 2 * HOUR

    again = post(*jobs, _job(1, idempotency_key="other", run_at="2020-01-01T00:00:00Z"))

    assert (_statuses(first), _statuses(again)) == ([202], [200, 422])
    assert again.body["jobs"][0]["job"] == first.body["jobs"][0]["job"]


def test_the_writes_of_a_batch_run_in_parallel(mill: Mill, post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(clients.POOL_SIZE, timeout=PATIENCE_SECONDS)
    insert = Submit.insert

    def met(self: Submit, job: Job) -> Accepted:
        together.wait()
        return insert(self, job)

    monkeypatch.setattr(Submit, "insert", met)

    assert _statuses(post(*(_job(n) for n in range(clients.POOL_SIZE)))) == [202] * clients.POOL_SIZE


def test_submissions_without_enough_time_left_are_not_started(
    mill: Mill, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = Submit.insert
    seconds = [0.0]

    def slow(self: Submit, job: Job) -> Accepted:
        seconds[0] += submit._LAST_START_SECONDS + 1
        return insert(self, job)

    monkeypatch.setattr(Submit, "insert", slow)
    _denied(mill)
    monkeypatch.setattr(
        "tidemill.application.submission.submit_batch.time", SimpleNamespace(monotonic=lambda: seconds[0])
    )
    monkeypatch.setattr(clients, "POOL_SIZE", 1)

    answer = post(_job(0), _job(1), _job(2))

    assert _statuses(answer) == [202, 503, 503]
    assert mill.stored() == 1


def test_each_job_is_counted_once_after_all_writes(mill: Mill, post: Post, capsys: pytest.CaptureFixture[str]) -> None:
    post(*(_job(idempotency_key=f"k{n % 3}") for n in range(5)))

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (metrics,) = [line for line in lines if "_aws" in line]
    assert (metrics["JobsSubmitted"], metrics["JobsReplayed"]) == (3, 2)
    assert "SubmissionsFailed" not in metrics


def test_jobs_that_are_not_accepted_are_counted(mill: Mill, post: Post, capsys: pytest.CaptureFixture[str]) -> None:
    mill.client.faults = [Fault.NOT_SENT]
    post(_job(), {"type": "unknown"}, _job(idempotency_key=""))

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (metrics,) = [line for line in lines if "_aws" in line]
    assert (metrics["BatchItemsRefused"], metrics["SubmissionsFailed"]) == (2, 1)


def test_a_submission_that_the_api_could_not_decide_is_counted(
    mill: Mill, post: Post, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(submit, "_LAST_START_SECONDS", -1.0)

    assert _statuses(post(_job(0), _job(1), {})) == [503, 503, 422]

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (metrics,) = [line for line in lines if "_aws" in line]
    assert (metrics["SubmissionsFailed"], metrics["lane"]) == (2, "default")


def test_a_payload_model_with_a_defect_does_not_harm_the_jobs_beside_it(
    mill: Mill, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(_payload: Any) -> Any:
        raise KeyError("member")

    broken = a_job_type(name="test.broken", parse=defect)
    known = composition.known_job_types()
    types = JobTypes({name: known.get(name) for name in known.names()} | {broken.name: broken})
    monkeypatch.setattr(composition, "known_job_types", lambda: types)

    answer = post({"type": "test.broken"}, {"type": "test.broken", "delay_seconds": -1}, _job())

    assert _statuses(answer) == [500, 422, 202]
    assert [each["pointer"] for each in answer.body["jobs"][1]["problem"]["errors"]] == ["#/jobs/1/delay_seconds"]

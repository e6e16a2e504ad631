"""Submissions and workers send first messages, and publish sends none to a job that has begun."""

import json
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from tests.support.deployed_functions import Mill, forget
from tidemill import Continue, Done, RetryAfter, Run, Submission
from tidemill.aws import clients
from tidemill.domain.states import State
from tidemill.names import Env, Lane


@pytest.fixture
def hinted(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Mill:
    monkeypatch.setenv(Env.FIRST_MESSAGE_LANES, Lane.DEFAULT)
    mill.read_configuration()
    return mill


def test_a_job_runs_before_the_stream_has_brought_it(hinted: Mill) -> None:
    job_id = hinted.accepted()
    assert dict(hinted.calls) == {"dynamodb.PutItem": 1, "sqs.SendMessageBatch": 1}

    hinted.work(hinted.receive())
    assert hinted.job(job_id).state is State.SUCCEEDED

    records = hinted.records()
    hinted.calls.clear()
    assert hinted.publish(records) == []
    assert dict(hinted.calls) == {"dynamodb.BatchGetItem": 1}
    assert hinted.depth(hinted.queue) == 0


def test_a_job_that_has_not_begun_gets_a_second_message_and_runs_once(hinted: Mill) -> None:
    job_id = hinted.accepted()

    assert hinted.publish() == []
    assert hinted.depth(hinted.queue) == 2
    hinted.run()

    assert (hinted.job(job_id).state, hinted.job(job_id).attempt) == (State.SUCCEEDED, 1)


def test_the_jobs_of_a_batch_are_hinted_ten_a_call(hinted: Mill) -> None:
    answer = hinted.post_batch([{"type": "test.scripted", "payload": {}} for _ in range(20)])

    assert [each["status"] for each in answer.body["jobs"]] == [202] * 20
    assert dict(hinted.calls) == {"dynamodb.PutItem": 20, "sqs.SendMessageBatch": 2}


def test_a_job_is_accepted_while_its_queue_is_out(
    hinted: Mill, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def out(**_request: object) -> None:
        raise ConnectTimeoutError(endpoint_url="queue")

    with monkeypatch.context() as outage:
        outage.setattr(clients.sqs_hints(), "send_message_batch", out)
        job_id = hinted.accepted()

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (warning,) = [line for line in lines if line["message"] == "first message not sent"]
    assert "ConnectTimeoutError" in warning["error"] or "queue" in warning["error"]
    hinted.run()
    assert hinted.job(job_id).state is State.SUCCEEDED


def test_a_repeated_submission_sends_no_message(hinted: Mill) -> None:
    hinted.post(key="once")
    hinted.calls.clear()

    assert hinted.post(key="once").status == 200

    assert "sqs.SendMessageBatch" not in hinted.calls


RUNS = 5


def in_five_runs(_payload: Any, run: Run) -> Any:
    """One that fails, and others that continue at once."""
    if run.attempt == 1 and run.hops == 0:
        raise RetryAfter(0, "busy")
    return Continue(run.hops + 1) if run.hops < RUNS - 2 else "done"


def test_the_next_runs_that_are_due_at_once_do_not_wait_for_the_stream(hinted: Mill) -> None:
    hinted.script.handler = in_five_runs
    job_id = hinted.accepted()

    for _ in range(RUNS):
        hinted.work(hinted.receive())

    job = hinted.job(job_id)
    assert (job.state, job.generation, job.hops) == (State.SUCCEEDED, RUNS, RUNS - 2)
    assert hinted.publish() == []
    assert hinted.depth(hinted.queue) == 0


def calls(mill: Mill) -> dict[str, int]:
    """Return the calls of the code, without those of the mappings."""
    of_mappings = {"sqs.ReceiveMessage", "sqs.DeleteMessageBatch", "dynamodb.DescribeTable"}
    return {name: number for name, number in mill.calls.items() if name not in of_mappings}


def test_a_first_message_costs_one_call_for_each_run_and_a_read_for_each_batch_of_records(
    hinted: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    hinted.script.handler = in_five_runs
    hinted.accepted()
    for _ in range(RUNS):
        hinted.work(hinted.receive())
    hinted.publish()
    at_once = calls(hinted)

    forget()
    monkeypatch.delenv(Env.FIRST_MESSAGE_LANES)
    hinted.read_configuration()
    hinted.accepted()
    for _ in range(RUNS):
        hinted.publish()
        hinted.work(hinted.receive())
    by_stream = calls(hinted)

    # One job has five runs. With the stream, publish sends the message of each.
    assert by_stream == {"dynamodb.PutItem": 1, "dynamodb.UpdateItem": 2 * RUNS, "sqs.SendMessageBatch": RUNS}
    assert at_once == {**by_stream, "dynamodb.BatchGetItem": 1}


def test_a_follow_up_job_does_not_wait_for_the_stream(hinted: Mill) -> None:
    hinted.script.handler = lambda _payload, _run: Done(then=[Submission(type="test.noop", payload={})])
    hinted.accepted()
    hinted.work(hinted.receive())
    hinted.calls.clear()

    hinted.work(hinted.receive())

    assert calls(hinted) == {"dynamodb.UpdateItem": 2}


def test_a_run_is_settled_while_its_queue_is_out(
    hinted: Mill, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def out(**_request: object) -> None:
        raise ConnectTimeoutError(endpoint_url="queue")

    hinted.script.handler = in_five_runs
    job_id = hinted.accepted()
    with monkeypatch.context() as outage:
        outage.setattr(clients.sqs_hints(), "send_message_batch", out)
        assert hinted.work(hinted.receive()) == []

    assert "first message not sent" in capsys.readouterr().out
    assert (hinted.job(job_id).state, hinted.job(job_id).generation) == (State.RETRYING, 2)
    hinted.run()
    assert hinted.job(job_id).state is State.SUCCEEDED

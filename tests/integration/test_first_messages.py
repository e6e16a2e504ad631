"""A submission sends the first message of its job, and publish sends none to a job that has begun."""

import json

import pytest
from botocore.exceptions import ConnectTimeoutError

from tests.support.deployed_functions import Mill
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

"""Whole lives of jobs, from HTTP through the stream and the lane to the end, and back by redrive."""

from typing import Any

import pytest

from tests.support.deployed_functions import Mill, forget
from tests.support.job_tables import client
from tidemill import composition
from tidemill.application.attempt.run import Run
from tidemill.application.control.redrive import Redriver
from tidemill.application.dispatch.dead_letter_sweep import Swept, sweep
from tidemill.application.job_filter import ANY_JOB
from tidemill.domain.attempt.return_values import Done
from tidemill.domain.dispatch.job_message import DeadLetter
from tidemill.domain.errors import PermanentJobError
from tidemill.domain.states import State
from tidemill.entrypoints import work
from tidemill.names import Env
from tidemill.sqs import messages
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue


def _always_fails(_payload: Any, run: Run) -> None:
    raise LookupError(f"no such column, attempt {run.attempt}")


def test_a_job_succeeds_and_its_owner_reads_the_result(mill: Mill) -> None:
    mill.script.handler = lambda payload, run: {"twice": 2 * payload.n, "attempt": run.attempt}
    job_id = mill.accepted({"n": 21})

    mill.run()

    answer = mill.get(job_id)
    assert answer.status == 200
    assert (answer.body["state"], answer.body["result"]) == ("succeeded", {"twice": 42, "attempt": 1})
    assert (answer.body["payload"], answer.body["due"], answer.body["errors"]) == ({"n": 21}, None, [])


def test_a_job_that_fails_twice_is_retried_and_succeeds(mill: Mill) -> None:
    def handler(_payload: Any, run: Run) -> int:
        if run.attempt < 3:
            raise ConnectionError("not yet")
        return run.attempt

    mill.script.handler = handler
    job_id = mill.accepted()

    mill.run()

    body = mill.get(job_id).body
    assert (body["state"], body["result"], mill.job(job_id).generation) == ("succeeded", 3, 3)
    assert [(error["attempt"], error["class"], error["retryable"]) for error in body["errors"]] == [
        (1, "ConnectionError", True),
        (2, "ConnectionError", True),
    ]
    assert mill.depth(mill.dead_letters) == 0


def test_a_job_that_always_fails_dies_reaches_the_dlq_and_can_be_redriven(mill: Mill) -> None:
    mill.script.handler = _always_fails
    job_id = mill.accepted()
    mill.run()

    dead = mill.job(job_id)
    assert (dead.state, dead.death, dead.attempt) == (State.DEAD, "attempts used up", 3)
    (record,) = mill.receive(mill.dead_letters)["Records"]
    dead_letter = messages.decode(record["body"])
    assert isinstance(dead_letter, DeadLetter)
    assert (dead_letter.reference.job_id, dead_letter.reference.generation) == (job_id, dead.generation)
    assert (dead_letter.type, dead_letter.death, dead_letter.error_class) == (
        "test.scripted",
        "attempts used up",
        "LookupError",
    )
    client("sqs").change_message_visibility(
        QueueUrl=mill.dead_letters, ReceiptHandle=record["receiptHandle"], VisibilityTimeout=0
    )

    mill.script.handler = lambda _payload, _run: "fixed"
    redriver = Redriver(store=composition.parts().store, clock=mill.now, new_token=lambda: "a redrive")
    assert [redriver.redrive(job, by="ada") for job in redriver.dead_jobs(ANY_JOB)] == [True]
    assert sweep(
        SqsDeadLetterQueue(client("sqs"), mill.dead_letters), store=composition.parts().store, clock=mill.now
    ) == Swept(outdated=1)
    mill.run()

    again = mill.job(job_id)
    assert (again.state, again.result, again.attempt, len(again.errors)) == (State.SUCCEEDED, '"fixed"', 1, 3)
    assert again.death is None
    assert (mill.depth(mill.queue), mill.depth(mill.dead_letters)) == (0, 0)


def test_a_dlq_message_that_the_console_moves_back_requeues_its_job(mill: Mill) -> None:
    mill.script.handler = _always_fails
    job_id = mill.accepted()
    mill.run()
    (dead_letter,) = mill.receive(mill.dead_letters)["Records"]

    mill.script.handler = lambda _payload, _run: "fixed"
    assert mill.work(mill.event(dead_letter["body"])) == []
    mill.run()

    job = mill.job(job_id)
    assert (job.state, job.redrives[0].by) == (State.SUCCEEDED, "queue redrive")


def test_a_permanent_error_kills_the_job_in_its_first_attempt(mill: Mill) -> None:
    def handler(_payload: Any, _run: Run) -> None:
        raise PermanentJobError("cannot digest this")

    mill.script.handler = handler
    job_id = mill.accepted()

    mill.run()

    body = mill.get(job_id).body
    assert (body["state"], body["death"], body["attempt"]) == ("dead", "permanent error", 1)
    assert body["errors"][0]["message"] == "cannot digest this"
    assert mill.depth(mill.dead_letters) == 1


def test_a_job_of_an_unknown_type_is_held_and_dies_in_the_end(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = mill.accepted()
    monkeypatch.setattr("tidemill.application.attempt.attempt_holds.MOST_HOLDS_OF_A_VERSION", 0)
    monkeypatch.setenv(Env.JOB_PACKAGES, "functions.demo_jobs")
    forget()

    mill.run()

    dead = mill.job(job_id)
    assert (dead.state, dead.death, dead.attempt) == (State.DEAD, "permanent error", 1)
    assert [error.error_class for error in dead.errors] == ["UnknownJobTypeError"]
    assert mill.depth(mill.dead_letters) == 1


def test_an_effect_commits_once_with_its_job_if_its_message_is_delivered_again(mill: Mill) -> None:
    effect = {"pk": {"S": "an effect"}}
    update = {
        "TableName": mill.table.name,
        "Key": effect,
        "UpdateExpression": "ADD times :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    mill.script.handler = lambda _payload, _run: Done(writes=[{"Update": update}])
    mill.accepted()
    mill.publish()
    event = mill.receive()

    for _ in range(3):
        assert mill.work(event) == []

    assert mill.table.client.get_item(TableName=mill.table.name, Key=effect)["Item"]["times"] == {"N": "1"}


def test_the_history_names_the_request_of_the_worker_and_the_version_of_its_code(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(Env.CODE_VERSION, "0123abcd")
    work.worker.cache_clear()

    job_id = mill.accepted(job_type="test.noop")
    mill.run()

    claim, end = mill.job(job_id).history
    assert claim.worker.endswith("/0123abcd")
    assert claim.worker != "/0123abcd"
    assert (end.state, end.attempt, end.worker) == (State.SUCCEEDED, 1, "")

"""A batch of a type with grouped commit through submit, publish and work: its calls, its endings, and its way back."""

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.deployed_functions import Event, Mill
from tests.support.jobs.batched import batch_script
from tests.support.patience import PATIENCE_SECONDS
from tests.support.statements import statements_over
from tidemill.application.attempt.run import Run
from tidemill.application.batch_handlers import joint_calls
from tidemill.domain.attempt.return_values import Done
from tidemill.domain.states import State
from tidemill.local.wait import wait_until

TYPE = "test.grouped"
BATCH = 10


class Statements:
    """The calls of BatchExecuteStatement, over the UpdateItem of moto."""

    def __init__(self, mill: Mill) -> None:
        self._execute = statements_over(mill.table.client)
        self.sent: list[Sequence[Mapping[str, Any]]] = []
        self.error: Exception | None = None

    def __call__(self, *, Statements: Sequence[Mapping[str, Any]]) -> Any:  # noqa: N803 - as boto3 calls it
        self.sent.append(Statements)
        if self.error:
            raise self.error
        return self._execute(Statements=Statements)


@pytest.fixture
def statements(mill: Mill) -> Statements:
    statements = Statements(mill)
    mill.client.batch_execute_statement = statements  # type: ignore[attr-defined]  # a proxy
    return statements


def _batch(mill: Mill, *payloads: Mapping[str, Any], **fields: Any) -> tuple[list[str], Event]:
    job_ids = [mill.accepted(payload, job_type=TYPE, **fields) for payload in payloads]
    mill.publish()
    event = mill.receive()
    mill.read_configuration()
    return job_ids, event


def _single_updates(mill: Mill, statements: Statements) -> int:
    """The statements are updates too, since moto has no PartiQL."""
    return mill.calls["dynamodb.UpdateItem"] - sum(map(len, statements.sent))


def test_a_batch_takes_a_call_for_its_claims_one_for_its_documents_and_one_for_its_settles(
    mill: Mill, statements: Statements
) -> None:
    mill.script.handler = lambda payload, run: [payload.n, run.attempt]
    job_ids, event = _batch(mill, *({"n": number} for number in range(BATCH)))

    assert mill.work(event) == []

    assert [len(sent) for sent in statements.sent] == [BATCH, BATCH]
    assert mill.calls["dynamodb.BatchGetItem"] == 1
    assert _single_updates(mill, statements) == 0
    jobs = [mill.job(job_id) for job_id in job_ids]
    assert [(job.state, job.result) for job in jobs] == [(State.SUCCEEDED, f"[{number},1]") for number in range(BATCH)]
    assert len({job.lease.last_owner for job in jobs}) == BATCH


def test_the_jobs_of_a_batch_that_end_otherwise_are_settled_alone(mill: Mill, statements: Statements) -> None:
    effect = {"Put": {"TableName": mill.table.name, "Item": {"pk": {"S": "an effect"}}}}

    def handler(payload: Any, _run: Run) -> Any:
        if payload.n == 0:
            raise ValueError("broken")
        return Done(writes=[effect]) if payload.n == 1 else payload.n

    mill.script.handler = handler
    job_ids, event = _batch(mill, *({"n": number} for number in range(4)))

    assert mill.work(event) == []

    states = [mill.job(job_id).state for job_id in job_ids]
    assert states == [State.RETRYING, State.SUCCEEDED, State.SUCCEEDED, State.SUCCEEDED]
    assert [len(sent) for sent in statements.sent] == [4, 2]
    assert mill.table.client.get_item(TableName=mill.table.name, Key={"pk": {"S": "an effect"}})["Item"]
    # The second attempt is claimed alone.
    mill.script.handler = lambda _payload, _run: "at last"
    mill.run()
    assert (mill.job(job_ids[0]).state, mill.job(job_ids[0]).attempt) == (State.SUCCEEDED, 2)
    assert len(statements.sent) == 2


def test_a_slow_job_of_a_batch_does_not_hold_up_the_settles_of_the_others(
    mill: Mill, statements: Statements, gate: threading.Event
) -> None:
    ended: list[str] = []

    def handler(payload: Any, _run: Run) -> None:
        if payload.n == 0:
            wait_until(
                lambda: all(mill.job(job_id).state is State.SUCCEEDED for job_id in quick),
                PATIENCE_SECONDS,
                "the others of the batch",
            )
            ended.extend(quick)

    mill.script.handler = handler
    (slow, *quick), event = _batch(mill, *({"n": number} for number in range(4)))

    assert mill.work(event) == []

    assert ended == quick
    assert mill.job(slow).state is State.SUCCEEDED


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
def test_without_the_call_each_job_is_claimed_and_settled_alone(
    mill: Mill, statements: Statements, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Denied by IAM, or throttled as a whole."""
    statements.error = ClientError({"Error": {"Code": code, "Message": "no"}}, "BatchExecuteStatement")
    job_ids, event = _batch(mill, *({"n": number} for number in range(3)))

    with caplog.at_level(logging.WARNING):
        assert mill.work(event) == []

    assert {mill.job(job_id).state for job_id in job_ids} == {State.SUCCEEDED}
    assert mill.calls["dynamodb.UpdateItem"] == 2 * len(job_ids)
    # Nothing was claimed together, so nothing is settled together.
    assert len(statements.sent) == 1
    warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["grouped commit failed"]


def test_a_message_of_an_older_version_is_claimed_alone(mill: Mill, statements: Statements) -> None:
    job_ids, event = _batch(mill, {"n": 1}, {"n": 2})
    for record in event["Records"]:
        body = json.loads(record["body"])
        assert body.pop("first")["type"] == TYPE
        record["body"] = json.dumps(body)

    assert mill.work(event) == []

    assert statements.sent == []
    assert {mill.job(job_id).state for job_id in job_ids} == {State.SUCCEEDED}


def test_the_jobs_of_a_group_are_claimed_alone(mill: Mill, statements: Statements) -> None:
    job_ids = [mill.accepted({"n": number}, job_type=TYPE, group="orders") for number in range(2)]

    mill.run()

    assert statements.sent == []
    assert {mill.job(job_id).state for job_id in job_ids} == {State.SUCCEEDED}


def test_a_batch_handler_with_grouped_commit_is_called_once_between_the_two_calls(
    mill: Mill, statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint_calls, "LONGEST_WAIT_FOR_CLAIMS_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(batch_script, "handler", lambda payloads, _runs: [payload.n for payload in payloads])
    batch_script.calls.clear()
    payloads = [{"n": number} for number in range(BATCH)]
    job_ids = [mill.accepted(payload, job_type="test.batched_grouped") for payload in payloads]
    mill.publish()
    event = mill.receive()
    mill.read_configuration()

    assert mill.work(event) == []

    assert batch_script.calls == [list(range(BATCH))]
    assert [len(sent) for sent in statements.sent] == [BATCH, BATCH]
    assert _single_updates(mill, statements) == 0
    assert [mill.job(job_id).result for job_id in job_ids] == [str(number) for number in range(BATCH)]

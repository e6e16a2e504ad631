"""Duplicate, late, early and malformed messages: which ones a batch keeps on the queue, and for how long they hide."""

import json
from typing import Any

import pytest

from tests.support.builders import SECOND
from tests.support.deployed_functions import INVOCATION, TENANT, Context, Event, Mill
from tests.support.job_tables import client
from tidemill import composition
from tidemill.application.attempt.run import Run
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.states import State
from tidemill.dynamodb.document import SCHEMA_VERSION
from tidemill.entrypoints import work
from tidemill.sqs.messages import encode


@pytest.fixture
def runs(mill: Mill) -> list[int]:
    """The attempts that the handler has started."""
    runs: list[int] = []

    def handler(_payload: Any, run: Run) -> None:
        runs.append(run.attempt)

    mill.script.handler = handler
    return runs


def _delivered(mill: Mill) -> Event:
    mill.publish()
    return mill.receive()


def _doubled(event: Event) -> Event:
    """Each message twice in one batch, as two deliveries."""
    again = [record | {"receiptHandle": f"{record['receiptHandle']} again"} for record in event["Records"]]
    return {"Records": [*event["Records"], *again]}


def test_a_duplicate_message_after_success_does_nothing(mill: Mill, runs: list[int]) -> None:
    job_id = mill.accepted()
    event = _delivered(mill)
    mill.work(event)
    before = mill.table.item(mill.job(job_id))

    assert mill.work(event) == []

    assert runs == [1]
    assert mill.table.item(mill.job(job_id)) == before


def test_a_duplicate_message_after_death_does_nothing(mill: Mill) -> None:
    mill.script.handler = lambda _payload, _run: {1, 2}
    job_id = mill.accepted()
    event = _delivered(mill)
    mill.work(event)
    before = mill.table.item(mill.job(job_id))

    assert mill.work(event) == []

    assert mill.job(job_id).state is State.DEAD
    assert mill.table.item(mill.job(job_id)) == before


def test_a_message_of_an_earlier_dispatch_does_nothing(mill: Mill) -> None:
    def fail(_payload: Any, _run: Run) -> None:
        raise ValueError("no")

    mill.script.handler = fail
    job_id = mill.accepted()
    first = _delivered(mill)
    mill.work(first)
    before = mill.table.item(mill.job(job_id))

    assert mill.work(first) == []

    assert mill.job(job_id).generation == 2
    assert mill.table.item(mill.job(job_id)) == before


def test_a_duplicate_stream_record_sends_a_message_that_does_nothing(mill: Mill, runs: list[int]) -> None:
    mill.accepted()
    records = mill.records()
    for _ in range(2):
        assert mill.publish(records) == []

    event = mill.receive()

    assert len(event["Records"]) == 2
    assert len(mill.work(event)) <= 1  # the later delivery may find the lease of the other
    assert runs == [1]


def test_a_message_that_a_batch_holds_twice_runs_its_job_once(mill: Mill, runs: list[int]) -> None:
    job_id = mill.accepted()

    mill.work(_doubled(_delivered(mill)))

    assert runs == [1]
    assert mill.job(job_id).attempt == 1


def test_a_message_of_a_leased_job_is_put_back_until_the_lease_ends(mill: Mill, runs: list[int]) -> None:
    mill.stop_clock()
    job_id = mill.accepted()
    event = _delivered(mill)
    reference = Reference(tenant=TENANT, job_id=job_id, generation=1, trace="")
    now = mill.now()
    composition.parts().store.claim(reference, token="another", now=now, lease_end=now + INVOCATION)

    kept = mill.work(event)

    assert kept == [event["Records"][0]["messageId"]]
    assert runs == []
    (hidden,) = mill.hidden
    assert hidden["ReceiptHandle"] == event["Records"][0]["receiptHandle"]
    assert 9 <= hidden["VisibilityTimeout"] <= 10

    mill.late = INVOCATION + SECOND
    assert mill.work(event) == []
    assert (runs, mill.job(job_id).state) == ([2], State.SUCCEEDED)


def test_an_early_message_is_put_back_until_its_job_is_due(mill: Mill, runs: list[int]) -> None:
    mill.stop_clock()
    mill.accepted()
    event = _delivered(mill)
    mill.late = -60 * SECOND

    assert len(mill.work(event)) == 1

    assert runs == []
    assert 60 <= mill.hidden[0]["VisibilityTimeout"] <= 61


def test_the_response_lists_only_the_messages_that_must_stay(mill: Mill, runs: list[int]) -> None:
    for _ in range(3):
        mill.accepted()
    event = _delivered(mill)
    _, leased, done = (json.loads(record["body"])["id"] for record in event["Records"])
    now = mill.now()
    for job_id in (leased, done):
        reference = Reference(tenant=TENANT, job_id=job_id, generation=1, trace="")
        job = composition.parts().store.claim(reference, token=job_id, now=now, lease_end=now + INVOCATION)
    composition.parts().store.release(job, now=now, due=now)

    assert mill.work(event) == [event["Records"][1]["messageId"]]
    assert runs == [1]


def test_a_batch_that_must_stay_as_a_whole_is_returned_and_does_not_raise(mill: Mill) -> None:
    job_ids = [mill.accepted() for _ in range(3)]
    event = _delivered(mill)
    now = mill.now()
    for job_id in job_ids:
        reference = Reference(tenant=TENANT, job_id=job_id, generation=1, trace="")
        composition.parts().store.claim(reference, token=job_id, now=now, lease_end=now + INVOCATION)

    assert sorted(mill.work(event)) == sorted(record["messageId"] for record in event["Records"])


@pytest.mark.parametrize(
    "body", ["", "hello", "{}", "[]", '{"schema":1}', '{"schema":1,"tenant":"","id":"","generation":1e999,"trace":""}']
)
def test_a_malformed_message_is_acknowledged_and_does_not_fail_the_batch(
    mill: Mill, runs: list[int], body: str
) -> None:
    mill.accepted()
    event = _delivered(mill)
    malformed = event["Records"][0] | {"body": body, "messageId": "malformed", "receiptHandle": "malformed"}

    assert mill.work({"Records": [malformed, *event["Records"]]}) == []
    assert runs == [1]


def test_a_message_of_a_newer_version_waits_for_a_worker_of_that_version(mill: Mill) -> None:
    mill.stop_clock()
    job_id = mill.accepted()
    event = mill.event(
        encode(Reference(tenant=TENANT, job_id=job_id, generation=1, trace="")).replace('schema":1', 'schema":2')
    )

    assert len(mill.work(event)) == 1

    assert 59 <= mill.hidden[0]["VisibilityTimeout"] <= 60
    assert mill.job(job_id).attempt == 0


def test_a_document_of_a_newer_version_keeps_its_attempts_for_a_worker_of_that_version(mill: Mill) -> None:
    job_id = mill.accepted()
    event = _delivered(mill)
    job = mill.job(job_id)
    mill.table.put(job, schema={"N": str(SCHEMA_VERSION + 1)})
    before = mill.table.item(job)

    assert len(mill.work(event)) == 1

    assert mill.table.item(job) == before


def test_a_message_of_a_deleted_job_is_acknowledged(mill: Mill) -> None:
    event = mill.event(encode(Reference(tenant=TENANT, job_id="deleted", generation=1, trace="")))

    assert mill.work(event) == []


def test_a_message_that_cannot_be_hidden_stays_and_the_batch_succeeds(mill: Mill, runs: list[int]) -> None:
    leased = mill.accepted()
    mill.accepted()
    event = _delivered(mill)
    reference = Reference(tenant=TENANT, job_id=leased, generation=1, trace="")
    now = mill.now()
    composition.parts().store.claim(reference, token="another", now=now, lease_end=now + INVOCATION)
    client("sqs").delete_queue(QueueUrl=mill.queue)

    answer = work.handle(event, Context())

    (kept,) = answer["batchItemFailures"]
    assert [json.loads(r["body"])["id"] for r in event["Records"] if r["messageId"] == kept["itemIdentifier"]] == [
        leased
    ]
    assert runs == [1]

"""Messages from before a restore, and messages from after it that reach functions from before."""

from datetime import timedelta

import pytest

from tests.support.builders import a_job, letter_for
from tests.support.deployed_functions import Mill, forget
from tests.support.job_tables import client
from tidemill.domain.states import State
from tidemill.names import Env
from tidemill.sqs import messages
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue


def _deploy(mill: Mill, monkeypatch: pytest.MonkeyPatch, *, epoch: int) -> None:
    monkeypatch.setenv(Env.EPOCH, str(epoch))
    forget()
    mill.read_configuration()


def _table_calls(mill: Mill) -> int:
    return sum(number for call, number in mill.calls.items() if call.startswith("dynamodb"))


def test_a_message_from_before_the_restore_is_acknowledged_without_a_look_at_its_job(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = mill.accepted()
    mill.publish()
    event = mill.receive()
    _deploy(mill, monkeypatch, epoch=1)

    assert mill.work(event) == []

    assert (_table_calls(mill), mill.hidden) == (0, [])
    assert mill.job(job_id).state is State.QUEUED


def test_a_worker_from_before_the_restore_puts_a_message_from_after_it_back(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    _deploy(mill, monkeypatch, epoch=1)
    job_id = mill.accepted()
    mill.publish()
    event = mill.receive()
    _deploy(mill, monkeypatch, epoch=0)

    assert len(mill.work(event)) == 1

    assert _table_calls(mill) == 0
    assert 59 <= mill.hidden[0]["VisibilityTimeout"] <= 60
    assert mill.job(job_id).state is State.QUEUED


def test_publisher_and_worker_of_one_epoch_run_a_job_at_the_same_cost(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    def table_calls_of_one_job() -> int:
        mill.calls.clear()
        job_id = mill.accepted()
        mill.run()
        assert mill.job(job_id).state is State.SUCCEEDED
        return _table_calls(mill)

    mill.read_configuration()
    before = table_calls_of_one_job()
    _deploy(mill, monkeypatch, epoch=3)

    assert table_calls_of_one_job() == before


def test_the_sweep_deletes_dead_letter_messages_from_before_and_keeps_those_from_after(mill: Mill) -> None:
    letter = letter_for(a_job())
    for epoch in (0, 1, 2):
        body = messages.encode(letter, epoch=epoch)
        client("sqs").send_message(QueueUrl=mill.dead_letters, MessageBody=body)
    box = SqsDeadLetterQueue(client("sqs"), mill.dead_letters, epoch=1)

    before, present, after = box.receive(hidden_for=timedelta(minutes=2))

    assert (before.body, before.newer) == (None, False)
    assert (present.body, present.newer) == (letter, False)
    assert (after.body, after.newer) == (None, True)


def test_records_of_another_table_are_not_published_and_stay_in_their_stream(mill: Mill) -> None:
    mill.accepted()
    records = mill.records()
    own = f"arn:aws:dynamodb:eu-west-1:123456789012:table/{mill.table.name}/stream/2026"

    former = [{**record, "eventSourceARN": own.replace("/stream", "-before/stream")} for record in records]
    assert mill.publish(former) == [record["dynamodb"]["SequenceNumber"] for record in records]
    assert mill.depth(mill.queue) == 0

    assert mill.publish([{**record, "eventSourceARN": own} for record in records]) == []
    assert mill.depth(mill.queue) == 1

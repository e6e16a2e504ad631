"""Publish through its function: from the stream to the lanes. Only failed records are retried."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from tests.support.deployed_functions import Mill
from tests.support.job_tables import client
from tidemill import composition
from tidemill.application.dispatch.owed import PATIENCE
from tidemill.aws import clients
from tidemill.sqs import messages


def _sequences(records: list[dict[str, Any]]) -> list[str]:
    return [record["dynamodb"]["SequenceNumber"] for record in records]


@pytest.fixture
def send(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace `SendMessageBatch` by a function that gets the real call."""
    sqs = client("sqs")
    real = sqs.send_message_batch

    class Sqs:
        def __getattr__(self, name: str) -> Any:
            return getattr(sqs, name)

    def replace(call: Any) -> None:
        queues: Any = Sqs()
        queues.send_message_batch = lambda **request: call(real, **request)
        monkeypatch.setattr(clients, "sqs", lambda: queues)
        vars(composition.parts()).pop("lanes", None)

    return replace


def test_more_messages_than_one_call_accepts_are_sent_in_several(mill: Mill) -> None:
    job_ids = {mill.accepted() for _ in range(23)}

    assert mill.publish() == []

    assert mill.calls["sqs.SendMessageBatch"] == 3
    seen = [record["body"] for _ in range(3) for record in mill.receive()["Records"]]
    assert {messages.decode(body).job_id for body in seen} == job_ids  # type: ignore[union-attr]  # no dead-letter messages


def test_a_message_that_sqs_refused_is_sent_by_wake_and_the_others_once(mill: Mill, send: Any) -> None:
    def refuse_the_second(real: Any, *, QueueUrl: str, Entries: Any) -> Any:  # noqa: N803 - as boto3 has it
        if len(Entries) == 1:
            return real(QueueUrl=QueueUrl, Entries=Entries)
        answer = real(QueueUrl=QueueUrl, Entries=[Entries[0], *Entries[2:]])
        return answer | {"Failed": [{"Id": Entries[1]["Id"], "SenderFault": False, "Code": "InternalError"}]}

    for _ in range(3):
        mill.accepted()
    records = mill.records()
    send(refuse_the_second)

    assert mill.publish(records) == []
    assert mill.depth(mill.queue) == 2

    mill.wake()
    assert mill.publish() == []
    assert mill.depth(mill.queue) == 3
    mill.late += timedelta(minutes=1)
    mill.wake()
    mill.wake()
    assert mill.publish() == []
    assert mill.depth(mill.queue) == 3


def test_a_message_that_sqs_blames_blocks_no_shard_even_if_it_is_alone(mill: Mill, send: Any) -> None:
    faults = [True]

    def blame_the_first(real: Any, *, QueueUrl: str, Entries: Any) -> Any:  # noqa: N803 - as boto3 has it
        if not faults:
            return real(QueueUrl=QueueUrl, Entries=Entries)
        faults.pop()
        return {"Failed": [{"Id": Entries[0]["Id"], "SenderFault": True, "Code": "InvalidMessageContents"}]}

    mill.accepted()
    records = mill.records()
    send(blame_the_first)
    assert mill.publish(records) == []
    assert mill.depth(mill.queue) == 0

    mill.wake()
    assert mill.publish() == []
    assert mill.depth(mill.queue) == 1


def test_the_stream_retries_records_whose_queue_does_not_respond(mill: Mill, send: Any) -> None:
    def silent(_real: Any, **_request: Any) -> Any:
        raise ConnectTimeoutError(endpoint_url="https://sqs.invalid")

    for _ in range(2):
        mill.accepted()
    records = mill.records()
    send(silent)

    assert mill.publish(records) == _sequences(records)


def test_the_messages_of_a_denied_queue_are_owed_and_sent_once_it_permits_them(mill: Mill, send: Any) -> None:
    denials = [ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "SendMessageBatch")]

    def denied_at_first(real: Any, **request: Any) -> Any:
        if denials:
            raise denials.pop()
        return real(**request)

    mill.accepted()
    send(denied_at_first)
    assert mill.publish() == []
    assert mill.depth(mill.queue) == 0

    mill.wake()
    assert mill.publish() == []
    assert mill.depth(mill.queue) == 1


@pytest.mark.parametrize(
    "image",
    [{}, {"pk": {"S": "malformed"}, "state": {"S": "queued"}}, {"schema": {"N": "99"}}],
    ids=["empty", "malformed", "newer version"],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_unreadable_record_blocks_no_others_and_its_job_is_dispatched_by_wake(
    mill: Mill, image: dict[str, Any], place: int
) -> None:
    ids = [mill.accepted() for _ in range(3)]
    records = mill.records()
    records[place]["dynamodb"]["NewImage"] = image

    assert mill.publish(records) == []
    assert mill.depth(mill.queue) == 2

    mill.wake()
    (again,) = mill.records()
    assert again["dynamodb"]["Keys"]["pk"]["S"].endswith(ids[place])
    assert mill.publish([again]) == []
    assert mill.depth(mill.queue) == 3


def test_a_job_of_a_lane_that_is_not_deployed_blocks_no_others(mill: Mill, caplog: pytest.LogCaptureFixture) -> None:
    mill.accepted()
    assert mill.post_text('{"type":"test.noop","lane":"bulk"}').status == 202
    mill.accepted()

    assert mill.publish() == []
    errors = [getattr(record, "error", "") for record in caplog.records]
    assert any("is not deployed; deployed lanes: default" in error for error in errors)
    assert mill.depth(mill.queue) == 2
    # It is still not deployed: its job stays owed, and is reported in the end.
    mill.wake()
    assert mill.publish() == []
    mill.late += PATIENCE
    mill.wake()
    assert "owed work overdue" in [record.message for record in caplog.records]


def test_records_that_owe_no_message_are_skipped(mill: Mill) -> None:
    mill.accepted()
    (record,) = mill.records()
    images = record["dynamodb"]
    old = {name: value for name, value in images.items() if name != "NewImage"}
    removal = record | {"dynamodb": old | {"SequenceNumber": "1", "OldImage": images["NewImage"]}}
    no_change = record | {"dynamodb": images | {"OldImage": images["NewImage"]}}

    assert mill.publish([removal, no_change]) == []
    assert mill.calls["sqs.SendMessageBatch"] == 0


def test_each_tenant_has_its_own_message_group(mill: Mill, send: Any) -> None:
    groups: list[str] = []

    def look(real: Any, **request: Any) -> Any:
        groups.extend(entry["MessageGroupId"] for entry in request["Entries"])
        return real(**request)

    send(look)
    mill.accepted()
    mill.accepted()
    mill.post_text('{"type":"test.noop"}', iam={"accountId": "111122223333", "userId": "AROAOTHER:somebody"})
    mill.publish()

    assert groups[0] == groups[1] != groups[2]
    assert all(group.isalnum() and len(group) == 32 for group in groups)

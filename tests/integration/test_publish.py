"""The stream to the lanes: what was not sent is named, and nothing else comes again."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from tests.support.deployed_functions import Mill
from tests.support.job_tables import client
from tidemill import composition
from tidemill.application.publish import PATIENCE
from tidemill.aws import clients
from tidemill.domain.errors import MalformedDocumentError
from tidemill.sqs import messages


def _sequences(records: list[dict[str, Any]]) -> list[str]:
    return [record["dynamodb"]["SequenceNumber"] for record in records]


@pytest.fixture
def send(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put something else in the place of `SendMessageBatch`, which it is given."""
    sqs = client("sqs")
    real = sqs.send_message_batch

    class Sqs:
        def __getattr__(self, name: str) -> Any:
            return getattr(sqs, name)

    def replace(call: Any) -> None:
        queues: Any = Sqs()
        queues.send_message_batch = lambda **request: call(real, **request)
        monkeypatch.setattr(clients, "sqs", lambda: queues)
        composition.lanes.cache_clear()

    return replace


def test_more_messages_than_one_call_takes_are_sent_in_several_calls(mill: Mill) -> None:
    job_ids = {mill.accepted() for _ in range(23)}

    assert mill.publish() == []

    assert mill.calls["sqs.SendMessageBatch"] == 3
    seen = [record["body"] for _ in range(3) for record in mill.receive()["Records"]]
    assert {messages.decode(body).job_id for body in seen} == job_ids  # type: ignore[union-attr]  # no dead letters


def test_an_entry_that_sqs_did_not_take_is_reported_by_its_sequence(mill: Mill, send: Any) -> None:
    def refuse_the_second(real: Any, *, QueueUrl: str, Entries: Any) -> Any:  # noqa: N803 - as boto3 has it
        answer = real(QueueUrl=QueueUrl, Entries=[Entries[0], *Entries[2:]])
        return answer | {"Failed": [{"Id": Entries[1]["Id"], "SenderFault": False, "Code": "InternalError"}]}

    for _ in range(3):
        mill.accepted()
    records = mill.records()
    send(refuse_the_second)

    assert mill.publish(records) == [_sequences(records)[1]]
    assert mill.depth(mill.queue) == 2


def test_the_stream_retries_the_messages_of_a_queue_that_does_not_answer(mill: Mill, send: Any) -> None:
    def silent(_real: Any, **_request: Any) -> Any:
        raise ConnectTimeoutError(endpoint_url="https://sqs.invalid")

    for _ in range(2):
        mill.accepted()
    records = mill.records()
    send(silent)

    assert mill.publish(records) == _sequences(records)


def test_a_denied_call_raises(mill: Mill, send: Any) -> None:
    def denied(_real: Any, **_request: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "SendMessageBatch")

    mill.accepted()
    send(denied)

    with pytest.raises(ClientError):
        mill.publish()


@pytest.mark.parametrize(
    "image",
    [{"pk": {"S": "rubbish"}, "state": {"S": "queued"}}, {"schema": {"N": "99"}}],
    ids=["rubbish", "a newer version's"],
)
def test_an_unreadable_record_is_reported_after_the_records_before_it_are_published(
    mill: Mill, image: dict[str, Any]
) -> None:
    for _ in range(3):
        mill.accepted()
    records = mill.records()
    records[1]["dynamodb"]["NewImage"] = image

    assert mill.publish(records) == [_sequences(records)[1]]
    # Those behind it come again with it, and would be sent again with each of its tries.
    assert mill.depth(mill.queue) == 1


def test_an_unreadable_first_record_fails_its_batch_so_that_lambda_halves_it(mill: Mill) -> None:
    for _ in range(3):
        mill.accepted()
    records = mill.records()
    records[0]["dynamodb"]["NewImage"] = {}

    with pytest.raises(MalformedDocumentError):
        mill.publish(records)
    assert mill.depth(mill.queue) == 0


def test_an_unreadable_record_alone_is_reported_so_that_the_mapping_gives_it_up(mill: Mill) -> None:
    mill.accepted()
    records = mill.records()
    records[0]["dynamodb"]["NewImage"] = {}

    assert mill.publish(records) == _sequences(records)


def test_a_record_that_stays_unreadable_is_passed_over_and_delays_no_other(mill: Mill) -> None:
    for _ in range(3):
        mill.accepted()
    records = mill.records()
    records[0]["dynamodb"]["NewImage"] = {}
    mill.late = PATIENCE

    assert mill.publish(records) == []

    assert mill.depth(mill.queue) == 2


def test_a_job_of_a_lane_that_is_not_deployed_delays_no_other_for_long(
    mill: Mill, caplog: pytest.LogCaptureFixture
) -> None:
    mill.accepted()
    assert mill.post_text('{"type":"test.noop","lane":"bulk"}').status == 202
    mill.accepted()
    records = mill.records()

    assert mill.publish(records) == [_sequences(records)[1]]
    assert "is not deployed; deployed lanes: default" in getattr(caplog.records[-1], "error", "")
    mill.late = PATIENCE
    assert mill.publish(records[1:]) == []
    assert mill.depth(mill.queue) == 2


def test_records_that_need_no_message_are_skipped(mill: Mill) -> None:
    mill.accepted()
    (record,) = mill.records()
    images = record["dynamodb"]
    told = {name: value for name, value in images.items() if name != "NewImage"}
    removal = record | {"dynamodb": told | {"SequenceNumber": "1", "OldImage": images["NewImage"]}}
    no_change = record | {"dynamodb": images | {"OldImage": images["NewImage"]}}

    assert mill.publish([removal, no_change]) == []
    assert mill.calls["sqs.SendMessageBatch"] == 0


def test_every_tenant_has_a_share_of_the_lane(mill: Mill, send: Any) -> None:
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

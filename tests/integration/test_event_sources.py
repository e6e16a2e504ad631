"""Sources through the deployed function: each record is one event, and a bad one holds up no other."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from pydantic import BaseModel, field_validator

from tests.support.deployed_functions import Context, Mill, forget
from tests.support.faulty_client import Fault
from tests.support.job_tables import client
from tests.support.source_records import bus_event, change, message, s3_event, sns_message
from tidemill import (
    EventBridgeRecord,
    JobType,
    Run,
    S3Record,
    SnsRecord,
    TableRecord,
    composition,
    consumes,
    event_source,
    event_type,
    job_type,
)
from tidemill.application.event_types import EventSource, EventType
from tidemill.application.job_types import JobTypes
from tidemill.aws import clients
from tidemill.domain.events.source_records import ChangeKind
from tidemill.domain.job import Job
from tidemill.dynamodb.document import decode
from tidemill.entrypoints import source as source_function
from tidemill.fan_out.job import fan_out
from tidemill.names import EVENT_TYPE, Env
from tidemill.sqs.source_queue import LARGEST_MESSAGE_BYTES

_TENANT: Final = "shop"


class Fact(BaseModel):
    what: str
    at: int = 0


happened = event_type("fact.happened", data=Fact)


@consumes("fact.happened")
@job_type("fact.note", payload=Fact)
def note(_fact: Fact, _run: Run) -> None:
    """Nothing to do."""


@event_source("bus", publishes="fact.happened")
def of_bus(record: EventBridgeRecord) -> Fact | None:
    return None if record.detail.get("ignored") else Fact(what=record.detail["what"])


@event_source("uploads", publishes="fact.happened")
def of_s3(record: S3Record) -> dict[str, Any]:
    return {"what": f"{record.bucket} {record.key} {record.version} {record.size}"}


@event_source("topic", publishes="fact.happened")
def of_sns(record: SnsRecord) -> Fact:
    return Fact.model_validate(record.json())


@event_source("items", publishes="fact.happened")
def of_table(record: TableRecord) -> dict[str, Any]:
    image = record.new if record.change is not ChangeKind.REMOVE else record.old
    assert image
    return {"what": image["what"], "at": image.get("at", 0)}


Deliver = Callable[..., list[str]]


@pytest.fixture
def deliver(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Deliver:
    """Call the function of a source, as Lambda does. Returns what must come again."""
    sqs = client("sqs")
    monkeypatch.setenv(Env.SOURCE_TENANT, _TENANT)
    monkeypatch.setenv(Env.SOURCE_QUEUE, sqs.create_queue(QueueName="source")["QueueUrl"])
    monkeypatch.setenv(Env.SOURCE_DEAD_LETTERS, mill.dead_letters)
    monkeypatch.setattr(clients, "sqs", lambda: sqs)
    deploy(monkeypatch, of_bus, of_s3, of_sns, of_table)

    def deliver(name: str, *records: Mapping[str, Any]) -> list[str]:
        monkeypatch.setenv(Env.SOURCE, name)
        answer = source_function.handle({"Records": list(records)}, Context())
        assert set(answer) == {"batchItemFailures"}
        return [each["itemIdentifier"] for each in answer["batchItemFailures"]]

    return deliver


def deploy(
    monkeypatch: pytest.MonkeyPatch, *sources: EventSource, consumer: JobType = note, event: EventType = happened
) -> None:
    forget()
    known = JobTypes(
        {one.name: one for one in (consumer, fan_out)},
        events={(event.name, 1): event},
        sources={one.name: one for one in sources},
    )
    monkeypatch.setattr(composition, "known_job_types", lambda: known)


def events(mill: Mill) -> list[Job]:
    found = [decode(item) for item in mill.table.client.scan(TableName=mill.table.name)["Items"] if "state" in item]
    return [job for job in found if job.type == EVENT_TYPE]


def published(mill: Mill) -> list[str]:
    return sorted(json.loads(composition.parts().payloads.load(job))["data"]["what"] for job in events(mill))


def waiting(url: str) -> list[Any]:
    answer = client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
    return [json.loads(each["Body"]) for each in answer.get("Messages", [])]


def test_each_kind_of_record_becomes_an_event_of_the_tenant(deliver: Deliver, mill: Mill) -> None:
    assert deliver("bus", message(bus_event("paid"))) == []
    assert deliver("uploads", message(s3_event("a+b%2Fc.txt", versionId="v1"))) == []
    assert deliver("topic", message(sns_message("sent"))) == []
    assert deliver("items", change("new", "1")) == []

    assert published(mill) == ["new", "paid", "sent", "uploads a b/c.txt v1 7"]
    assert {job.tenant for job in events(mill)} == {_TENANT}


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("bus", message(bus_event())),
        ("uploads", message(s3_event("a"))),
        ("topic", message(sns_message())),
        ("items", change("new", "1")),
    ],
)
def test_a_record_that_comes_twice_is_one_event(
    deliver: Deliver, mill: Mill, name: str, record: Mapping[str, Any]
) -> None:
    """Each of the services promises at least one delivery, and not one at most."""
    assert deliver(name, record, record) == []
    again = {**record, "messageId": "another"} if "messageId" in record else record
    assert deliver(name, again) == []

    assert len(events(mill)) == 1


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("bus", bus_event(event_id="e1"), bus_event(event_id="e2")),
        ("bus", bus_event(), {**bus_event(), "source": "com.example.other"}),
        ("uploads", s3_event("a", sequencer="01"), s3_event("a", sequencer="02")),
        ("uploads", s3_event("a"), s3_event("b")),
        ("uploads", s3_event("a", versionId="v1"), s3_event("a", versionId="v2")),
        ("topic", sns_message(message_id="s1"), sns_message(message_id="s2")),
    ],
)
def test_two_records_are_two_events(deliver: Deliver, mill: Mill, name: str, first: Any, second: Any) -> None:
    assert deliver(name, message(first), message(second, "m2")) == []

    assert len(events(mill)) == 2


def test_a_notification_may_hold_several_records(deliver: Deliver, mill: Mill) -> None:
    assert deliver("uploads", message(s3_event("a", "b"))) == []

    assert len(events(mill)) == 2


def test_a_bad_record_of_a_notification_holds_up_no_other_of_it(
    deliver: Deliver, mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    @event_source("uploads", publishes="fact.happened")
    def raises_for_some(record: S3Record) -> dict[str, Any]:
        return {"what": {"b": "b", "c": "c"}[record.key]}

    deploy(monkeypatch, raises_for_some)

    assert deliver("uploads", message(s3_event("a", "b", "c"))) == ["m1"]

    assert published(mill) == ["b", "c"]


def test_an_object_key_of_any_length_has_an_event(deliver: Deliver, mill: Mill) -> None:
    assert deliver("uploads", message(s3_event("x" * 1024)), message(s3_event("x" * 1023 + "y"), "m2")) == []

    assert len(events(mill)) == 2


def test_the_test_message_of_s3_is_left_out(deliver: Deliver, mill: Mill) -> None:
    assert deliver("uploads", message({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "uploads"})) == []

    assert events(mill) == []


def test_a_record_for_which_the_function_returns_none_is_left_out(deliver: Deliver, mill: Mill) -> None:
    assert deliver("bus", message(bus_event(ignored=True))) == []

    assert events(mill) == []


def test_a_bad_message_comes_again_and_the_others_are_published(
    deliver: Deliver, mill: Mill, capsys: pytest.CaptureFixture[str]
) -> None:
    raises, refused, broken = bus_event(), bus_event(), message("no JSON", "m4")
    del raises["detail"]["what"]
    refused["detail"]["what"] = 5
    raw = message({"what": "a message without its envelope"}, "m5")

    bodies = [message(raises, "m1"), message(bus_event("good", "e9"), "m2"), message(refused, "m3"), broken, raw]
    again = deliver("bus", *bodies)

    assert again == ["m1", "m3", "m4", "m5"]
    assert published(mill) == ["good"]
    lines = [line for line in capsys.readouterr().out.splitlines() if "record of a source not published" in line]
    assert "KeyError: 'what'" in lines[0]
    assert "/data/what" in lines[1] or "what" in lines[1]
    assert all('"source":"bus"' in line for line in lines)


def test_a_bad_change_is_passed_on_and_the_shard_goes_on(deliver: Deliver, mill: Mill) -> None:
    bad = change("bad", "2")
    del bad["dynamodb"]["NewImage"]["what"]

    assert deliver("items", change("a", "1"), bad, change("c", "3")) == []

    assert published(mill) == ["a", "c"]
    (passed_on,) = waiting(str(_queue()))
    assert passed_on == bad
    assert deliver("items", message(passed_on)) == ["m1"], "it fails there until the code is fixed"


def test_a_record_for_which_the_model_of_the_event_raises_holds_up_no_other(
    deliver: Deliver, mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pydantic passes on every error of a validator but `ValueError` and `AssertionError`."""

    class Checked(BaseModel):
        what: str

        @field_validator("what")
        @classmethod
        def known(cls, what: str) -> str:
            return {"good": what}[what]

    deploy(monkeypatch, of_bus, of_table, event=event_type("fact.happened", data=Checked))

    assert deliver("bus", message(bus_event("bad", "e1"), "m1"), message(bus_event("good", "e2"), "m2")) == ["m1"]
    assert deliver("items", change("bad", "1"), change("good", "2")) == []

    assert published(mill) == ["good", "good"]
    assert waiting(_queue()) == [change("bad", "1")]


def test_a_change_that_was_passed_on_is_published_by_fixed_code(
    deliver: Deliver, mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    @event_source("items", publishes="fact.happened")
    def fixed(record: TableRecord) -> dict[str, Any]:
        return {"what": (record.new or {}).get("what", "nothing")}

    bad = change("bad", "2")
    del bad["dynamodb"]["NewImage"]["what"]
    deliver("items", bad)
    deploy(monkeypatch, fixed)

    assert deliver("items", message(waiting(_queue())[0])) == []

    assert published(mill) == ["nothing"]


def test_a_bad_change_that_no_message_can_hold_is_set_aside_without_its_images(deliver: Deliver, mill: Mill) -> None:
    huge = change("x" * 400_000, "1", before="y" * 700_000)
    assert len(json.dumps(huge)) > LARGEST_MESSAGE_BYTES
    del huge["dynamodb"]["NewImage"]["what"]
    huge["dynamodb"]["NewImage"]["other"] = {"S": "x" * 400_000}

    assert deliver("items", huge) == []

    (aside,) = waiting(mill.dead_letters)
    assert aside["dynamodb"] == {
        name: value for name, value in huge["dynamodb"].items() if name not in {"OldImage", "NewImage"}
    }
    assert waiting(_queue()) == []


def test_a_change_without_its_images_that_was_moved_back_is_refused(
    deliver: Deliver, mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    @event_source("items", publishes="fact.happened")
    def fixed(record: TableRecord) -> dict[str, Any]:
        return {"what": "written" if record.new else "gone"}

    huge = change("x" * 400_000, "1", before="y" * 700_000)
    del huge["dynamodb"]["NewImage"]["what"]
    huge["dynamodb"]["NewImage"]["other"] = {"S": "x" * 400_000}
    deliver("items", huge)
    deploy(monkeypatch, fixed)

    assert deliver("items", message(waiting(mill.dead_letters)[0])) == ["m1"]

    assert published(mill) == []


def test_an_outage_brings_the_stream_again_from_there(deliver: Deliver, mill: Mill) -> None:
    deliver("items", change("warm", "0"))
    mill.client.faults = [None, Fault.NOT_SENT]

    assert deliver("items", change("a", "1"), change("b", "2"), change("c", "3")) == ["2"]

    assert published(mill) == ["a", "warm"]
    assert deliver("items", change("b", "2"), change("c", "3")) == []
    assert published(mill) == ["a", "b", "c", "warm"]


def test_an_outage_brings_a_message_again(deliver: Deliver, mill: Mill) -> None:
    mill.client.faults = [Fault.ANSWER_LOST]

    assert deliver("topic", message(sns_message())) == ["m1"]
    assert deliver("topic", message(sns_message())) == []

    assert len(events(mill)) == 1


def test_a_write_that_changes_nothing_is_left_out(deliver: Deliver, mill: Mill) -> None:
    assert deliver("items", change("same", "1", before="same"), change("other", "2", before="same")) == []

    assert published(mill) == ["other"]


@pytest.mark.parametrize(
    ("old", "new"), [({"BOOL": True}, {"N": "1"}), ({"N": "0.12345678901234567890"}, {"N": "0.12345678901234567891"})]
)
def test_a_change_that_python_cannot_see_is_published(deliver: Deliver, mill: Mill, old: Any, new: Any) -> None:
    record = change("same", "1", before="same")
    for image, other in (("OldImage", old), ("NewImage", new)):
        record["dynamodb"][image]["other"] = other

    assert deliver("items", record) == []

    assert published(mill) == ["same"]


def test_a_message_that_is_nested_too_deeply_holds_up_no_other(deliver: Deliver, mill: Mill) -> None:
    """EventBridge takes an event of 256 KB at any depth."""
    deep = message(json.dumps(bus_event(deep=0)).replace('"deep": 0', f'"deep": {"[" * 100_000}{"]" * 100_000}'), "m1")

    assert deliver("bus", deep, message(bus_event("good"), "m2")) == ["m1"]

    assert published(mill) == ["good"]


def test_a_changed_function_publishes_no_record_twice_and_each_such_record_is_reported(
    deliver: Deliver, mill: Mill, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @event_source("topic", publishes="fact.happened")
    def changed(record: SnsRecord) -> Fact:
        return Fact(what=f"changed {record.id}")

    deliver("topic", message(sns_message("sent")))
    deploy(monkeypatch, changed)
    capsys.readouterr()

    assert deliver("topic", message(sns_message("sent")), message(sns_message("", "s2"), "m2")) == []
    assert published(mill) == ["changed s2", "sent"]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (said,) = [line for line in lines if line.get("message") == "record of a source was published with other data"]
    assert (said["level"], said["source"], said["record"]) == ("WARNING", "topic", "m1")
    assert sum(line.get("RecordsChanged", 0) for line in lines) == 1


def test_code_without_the_source_takes_nothing(deliver: Deliver, mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(monkeypatch)

    with pytest.raises(Exception, match="no event_source 'topic'"):
        deliver("topic", message(sns_message()))

    assert events(mill) == []


def _queue() -> str:
    return str(client("sqs").get_queue_url(QueueName="source")["QueueUrl"])

"""What names a record in its source, and which of two changes of an object is the later one."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW
from tidemill.domain.events.source_records import (
    RECORD_OF,
    ChangeKind,
    EventBridgeRecord,
    S3Record,
    SnsRecord,
    SourceKind,
    SourceRecord,
    TableRecord,
)
from tidemill.domain.records import replace

AN_EVENT = EventBridgeRecord(
    id="e", source="app", detail_type="Placed", at=NOW, account="1", region="eu", resources=(), detail={}
)
AN_OBJECT = S3Record(
    name="ObjectCreated:Put",
    bucket="b",
    key="k",
    at=NOW,
    size=1,
    etag="t",
    version="v",
    sequencer="0A",
)
UNVERSIONED = replace(AN_OBJECT, version=None, sequencer=None)
A_MESSAGE = SnsRecord(id="m", topic="arn:topic", at=NOW, subject=None, message='{"n": [1]}')
A_CHANGE = TableRecord(
    id="c", table="orders", change=ChangeKind.MODIFY, at=NOW, sequence="1", keys={"pk": "a"}, old=None, new={"n": 1}
)


@pytest.mark.parametrize(
    ("record", "identity"),
    [
        (AN_EVENT, '["1", "eu", "app", "e"]'),
        (AN_OBJECT, '["b", "k", "v", "0A", "ObjectCreated:Put"]'),
        (
            replace(AN_OBJECT, version=None, sequencer=None),
            f'["b", "k", null, "{NOW.isoformat()}", "ObjectCreated:Put"]',
        ),
        (A_MESSAGE, '["arn:topic", "m"]'),
        (A_CHANGE, '["orders", "c"]'),
    ],
)
def test_the_identity_of_a_record_stays_as_it_was(record: SourceRecord, identity: str) -> None:
    """The key of an event is made from it, so another text would make a second event of each record."""
    assert record.identity == identity


@pytest.mark.parametrize(
    ("record", "changes"),
    [
        (AN_EVENT, {"detail": {"a": 1}, "at": NOW + timedelta(days=1), "detail_type": "Other"}),
        (AN_OBJECT, {"at": NOW + timedelta(days=1), "size": 2, "etag": "u"}),
        (A_MESSAGE, {"subject": "s", "message": "other", "at": NOW + timedelta(days=1)}),
        (A_CHANGE, {"change": ChangeKind.REMOVE, "sequence": "2", "expired": True}),
    ],
)
def test_what_a_record_says_does_not_change_its_identity(record: Any, changes: dict[str, Any]) -> None:
    assert replace(record, **changes).identity == record.identity


@pytest.mark.parametrize(
    ("own", "other", "later"),
    [
        ("0B", "0A", True),
        ("0A", "0B", False),
        ("0A", "0A", False),
        # The shorter one is padded with zeros at its end.
        ("0A1", "0A", True),
        ("0A", "0A1", False),
        ("0A0", "0A", False),
        ("1", "0FF", True),
        (None, "0", False),
        ("1", "", True),
    ],
)
def test_the_larger_sequencer_is_the_later_change(own: str | None, other: str, *, later: bool) -> None:
    assert replace(AN_OBJECT, sequencer=own).later_than(other) is later


@pytest.mark.parametrize(
    ("own", "other", "later"),
    [
        ("1683700000000000001135967", "820400000000000001192334", True),
        ("820400000000000001192334", "1683700000000000001135967", False),
        ("820400000000000001192334", "820400000000000001192333", True),
        ("820400000000000001192334", "820400000000000001192334", False),
    ],
)
def test_the_larger_sequence_number_is_the_later_change_though_its_text_may_be_less(
    own: str, other: str, *, later: bool
) -> None:
    assert replace(A_CHANGE, sequence=own).later_than(other) is later


def test_a_message_may_be_json() -> None:
    assert A_MESSAGE.json() == {"n": [1]}
    with pytest.raises(ValueError, match="Expecting value"):
        replace(A_MESSAGE, message="text").json()


def test_each_kind_of_source_has_its_record() -> None:
    records = [RECORD_OF[kind] for kind in (SourceKind.EVENTBRIDGE, SourceKind.S3, SourceKind.SNS, SourceKind.TABLE)]

    assert records == [EventBridgeRecord, S3Record, SnsRecord, TableRecord]
    assert (A_MESSAGE.attributes, A_CHANGE.expired) == ({}, False)

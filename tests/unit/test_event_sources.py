"""The declaration of sources, their checks at a synthesis, and the plain values of a table's records."""

from typing import Any

import pytest
from pydantic import BaseModel, Field

from tidemill import S3Record, SnsRecord, TableRecord, event_source, event_type
from tidemill.application.event_types import EventSource
from tidemill.application.job_types import JobTypes
from tidemill.domain.errors import DeclarationError, JobFileError
from tidemill.domain.events.source_records import SourceKind
from tidemill.sources.readers import table
from tidemill.system.event_checks import require_sources


class Uploaded(BaseModel):
    key: str
    size: int = 0


class Typed(BaseModel):
    key: int
    size: int = 0


class Other(BaseModel):
    subject: str


class Aliased(BaseModel):
    name: str = Field(default="", alias="key")


uploaded = event_type("file.uploaded", data=Uploaded)


def a_source(returned: Any, record: Any = S3Record, **options: Any) -> EventSource:
    def function(record: Any) -> Any: ...

    function.__annotations__ = {"record": record, "return": returned}
    return event_source("uploads", **{"publishes": "file.uploaded", **options})(function)


def checked(source: EventSource) -> None:
    require_sources(JobTypes({}, events={("file.uploaded", 1): uploaded}, sources={source.name: source}))


@pytest.mark.parametrize("returned", [Uploaded, Uploaded | None, dict[str, Any], None, Any, Aliased, Uploaded | Typed])
def test_data_that_fits_is_accepted_and_data_of_no_model_is_checked_when_it_is_published(returned: Any) -> None:
    checked(a_source(returned))


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (a_source(Typed), "'key' is of type integer, and it takes string"),
        (a_source(Other), "requires 'key'"),
        (a_source(Uploaded, version=2), "'file.uploaded' version 2, which does not exist"),
        (a_source(Uploaded, publishes="file.lost"), "'file.lost' version 1, which does not exist"),
    ],
)
def test_a_source_whose_events_would_be_refused_is_refused_with_its_place(source: EventSource, fault: str) -> None:
    with pytest.raises(JobFileError, match=r"test_event_sources\.py, line \d+: ") as refused:
        checked(source)

    assert fault in str(refused.value)


def test_the_kind_follows_from_the_record() -> None:
    assert a_source(Uploaded, SnsRecord).kind is SourceKind.SNS
    assert a_source(Uploaded, TableRecord).kind is SourceKind.TABLE


@pytest.mark.parametrize("name", ["", "Upper", "a b", "x" * 33, "1st", 7])
def test_an_invalid_name_is_refused(name: Any) -> None:
    with pytest.raises(DeclarationError, match="source name"):
        event_source(name, publishes="file.uploaded")


@pytest.mark.parametrize("record", [str, int, Any])
def test_a_record_of_no_source_is_refused(record: Any) -> None:
    with pytest.raises(DeclarationError, match="S3Record"):
        a_source(Uploaded, record)


def test_a_later_sequencer_is_known_though_it_is_shorter() -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html."""
    found: Any = {"name": "", "bucket": "", "key": "", "at": None, "size": None, "etag": None, "version": None}
    assert S3Record(**found, sequencer="0055AED6DCD90281E6").later_than("0055AED6DCD90281E5FF")
    assert not S3Record(**found, sequencer="0055").later_than("0055AE")


def test_the_images_of_a_change_are_plain_python() -> None:
    attributes = {
        "text": {"S": "x"},
        "whole": {"N": "7"},
        "part": {"N": "1.5"},
        "yes": {"BOOL": True},
        "none": {"NULL": True},
        "bytes": {"B": "AA=="},
        "texts": {"SS": ["b", "a"]},
        "numbers": {"NS": ["10", "9"]},
        "list": {"L": [{"N": "1"}, {"M": {"deep": {"S": "y"}}}]},
    }
    body = {
        "eventID": "e",
        "eventName": "REMOVE",
        "eventSourceARN": "arn:aws:dynamodb:eu-central-1:1:table/Items/stream/now",
        "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
        "dynamodb": {
            "ApproximateCreationDateTime": 1.5,
            "Keys": {"pk": {"S": "1"}},
            "OldImage": attributes,
            "SequenceNumber": "1",
        },
    }

    (record,) = table.read(body)

    assert (record.table, record.keys, record.new, record.expired) == ("Items", {"pk": "1"}, None, True)
    assert record.old == {
        "text": "x",
        "whole": 7,
        "part": 1.5,
        "yes": True,
        "none": None,
        "bytes": "AA==",
        "texts": ["a", "b"],
        "numbers": [9, 10],
        "list": [1, {"deep": "y"}],
    }

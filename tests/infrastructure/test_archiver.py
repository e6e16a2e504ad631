"""The archive: a second reader of the stream with its own failure queue and alarms, and only where the stage asks."""

import json

import pytest

from tests.infrastructure.conftest import Synthesise, Synthesised
from tidemill.cdk.events.stream_settings import ARCHIVE_PATTERN
from tidemill.cdk.synth_errors import SettingError
from tidemill.names import Env


@pytest.fixture
def archived(synthesise: Synthesise) -> Synthesised:
    return synthesise(stage="dev", archive="my-archive")


def test_without_the_setting_the_stream_has_one_reader(dev: Synthesised) -> None:
    assert "rchive" not in json.dumps(dev.pipeline["Resources"])


def test_the_archiver_reads_the_stream_of_the_publisher_and_sets_aside_what_fails(archived: Synthesised) -> None:
    readers = {
        id_: mapping
        for id_, mapping in archived.of_type("AWS::Lambda::EventSourceMapping")
        if "StreamArn" in json.dumps(mapping["EventSourceArn"])
    }
    assert len(readers) == 2
    (mapping,) = [mapping for id_, mapping in readers.items() if id_.startswith("Archiver")]
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert "ArchiverFailures" in json.dumps(mapping["DestinationConfig"]["OnFailure"])
    assert [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]] == [ARCHIVE_PATTERN]


def test_the_archiver_may_only_put_files_of_jobs(archived: Synthesised) -> None:
    (function,) = [
        each
        for id_, each in archived.of_type("AWS::Lambda::Function")
        if each["Environment"]["Variables"].get(Env.ARCHIVE_BUCKET) == "my-archive"
    ]
    role = function["Role"]["Fn::GetAtt"][0]
    (policy,) = [each for _, each in archived.of_type("AWS::IAM::Policy") if {"Ref": role} in each["Roles"]]
    rights = [
        statement for statement in policy["PolicyDocument"]["Statement"] if "s3:" in json.dumps(statement["Action"])
    ]
    assert [statement["Action"] for statement in rights] == ["s3:PutObject"]
    assert "my-archive/jobs/*" in json.dumps(rights[0]["Resource"])


def test_a_repair_of_the_stream_reaches_the_archiver_as_it_does_the_publisher(archived: Synthesised) -> None:
    """`tidemill repair` makes a mapping of a new stream for each reader, and Lambda refuses it without the rights."""
    readable = {
        id_.partition("FunctionRole")[0]: statement["Resource"]
        for id_, policy in archived.of_type("AWS::IAM::Policy")
        for statement in policy["PolicyDocument"]["Statement"]
        if "dynamodb:GetRecords" in statement["Action"]
    }
    assert readable.keys() == {"Publisher", "Archiver"}
    assert readable["Archiver"] == readable["Publisher"]


def test_two_alarms_watch_the_archiver(archived: Synthesised) -> None:
    ids = [id_ for id_, _ in archived.of_type("AWS::CloudWatch::Alarm")]
    assert [name for name in ("LateArchive", "UnarchivedRecords") if any(name in id_ for id_ in ids)] == [
        "LateArchive",
        "UnarchivedRecords",
    ]


def test_an_invalid_name_of_a_bucket_is_refused(synthesise: Synthesise) -> None:
    with pytest.raises(SettingError, match="archive"):
        synthesise(stage="dev", archive="s3://my-archive")

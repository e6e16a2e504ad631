"""The archive: one file for each end of a job, written once, and columns for Athena."""

import gzip
import json
import re
from typing import Any

import pytest

from stacks.composition import ROOT
from tests.support.builders import NOW, SECOND, a_job, with_changes
from tests.support.deployed_functions import Context, Mill
from tests.support.job_tables import REGION, client
from tidemill.application.job_view import record
from tidemill.aws import clients
from tidemill.cdk.events.stream_settings import ARCHIVE_PATTERN
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.document import encode, key
from tidemill.dynamodb.operations.archive_files import archive_key
from tidemill.entrypoints import archive
from tidemill.names import CANARY_TYPE, TERMINAL_STATES, Env


@pytest.fixture
def bucket(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of S3 with the bucket `archive`. The composition root is empty again after `mill`."""
    monkeypatch.setattr(mill, "late", SECOND)
    s3: Any = client("s3")
    s3.create_bucket(Bucket="archive", CreateBucketConfiguration={"LocationConstraint": REGION})
    monkeypatch.setenv(Env.ARCHIVE_BUCKET, "archive")
    monkeypatch.setattr(clients, "s3", lambda: s3)
    return s3


def ended(**changes: Any) -> Job:
    return a_job(state=State.SUCCEEDED, due=None, finished_at=NOW, result='{"a":1}', **changes)


def change(before: Job | None, after: Job | None, sequence: str = "1") -> dict[str, Any]:
    job = after or before
    assert job
    images = {name: encode(image) for name, image in (("OldImage", before), ("NewImage", after)) if image}
    return {"dynamodb": {"SequenceNumber": sequence, "Keys": key(job.tenant, job.id), **images}}


def handle(*records: dict[str, Any]) -> list[str]:
    answer = archive.handle({"Records": list(records)}, Context())
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def files(s3: Any) -> dict[str, Any]:
    """The lines by key."""
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket="archive").get("Contents", [])]
    bodies = {name: s3.get_object(Bucket="archive", Key=name)["Body"].read() for name in keys}
    return {name: json.loads(gzip.decompress(body)) for name, body in bodies.items()}


def test_a_job_that_ends_has_one_file_without_its_contents(bucket: Any) -> None:
    job = ended()
    running = with_changes(job, state=State.RUNNING, owner="token", finished_at=None)

    assert handle(change(running, job)) == []

    assert files(bucket) == {archive_key(job): record(job)}
    assert archive_key(job).startswith(f"jobs/date={NOW:%Y-%m-%d}/")
    assert "result" not in record(job)
    body = bucket.get_object(Bucket="archive", Key=archive_key(job))["Body"].read()
    assert body[4:8] == bytes(4), "it names no time of compression: RFC 1952"


def test_a_canary_has_no_file(bucket: Any) -> None:
    assert handle(change(None, ended(type=CANARY_TYPE))) == []
    assert files(bucket) == {}


def test_a_record_that_comes_twice_writes_one_version_of_one_file(bucket: Any) -> None:
    bucket.put_bucket_versioning(Bucket="archive", VersioningConfiguration={"Status": "Enabled"})
    job = ended()
    for _ in range(2):
        # One after the other: moto does not close the race of two conditional writes.
        assert handle(change(None, job)) == []
    assert len(bucket.list_object_versions(Bucket="archive")["Versions"]) == 1


def test_each_end_of_a_job_has_a_file_of_its_own(bucket: Any) -> None:
    dead = replace(ended(), state=State.DEAD)
    cancelled = replace(dead, state=State.CANCELLED)
    again = replace(dead, generation=dead.generation + 2, finished_at=NOW + SECOND)

    handle(change(None, dead), change(dead, cancelled), change(None, again))

    assert len(files(bucket)) == 3


def test_the_ends_before_and_after_a_restore_have_a_file_each(bucket: Any) -> None:
    before, after = ended(), ended()
    after = replace(after, finished_at=NOW + 60 * SECOND)
    stream_arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/jobs-before/stream/2026"

    assert handle({**change(None, before), "eventSourceARN": stream_arn}) == []
    assert handle(change(None, after)) == []

    assert files(bucket).keys() == {archive_key(before), archive_key(after)}
    assert len(files(bucket)) == 2


def test_the_key_of_a_file_has_the_time_of_the_end_or_else_that_of_the_submission() -> None:
    """Only another version writes an ended job without its time. Its record must not come again for ever."""
    job = replace(ended(id="a", tenant="b"), finished_at=NOW + SECOND)

    for known, at in ((job, job.finished_at), (replace(job, finished_at=None), job.created_at)):
        assert at
        at_ms = at.timestamp() * 1000
        assert archive_key(known) == f"jobs/date={at:%Y-%m-%d}/Yg/a/{at_ms:.0f}-{job.generation}-succeeded.json.gz"


def test_other_writes_to_an_ended_job_and_its_deletion_write_nothing(bucket: Any) -> None:
    job = ended()
    migrated = with_changes(job, payload='{"v":2}')
    assert handle(change(job, migrated), change(job, None), change(None, a_job())) == []
    assert files(bucket) == {}


def test_a_record_that_cannot_be_written_comes_again_and_holds_up_no_other(
    bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ended(), ended(tenant="a:two")
    put = bucket.put_object

    def refusing(**request: Any) -> Any:
        return put(**request | ({"Bucket": "missing"} if request["Key"] == archive_key(first) else {}))

    monkeypatch.setattr(bucket, "put_object", refusing)
    broken = change(None, ended(), "3")
    del broken["dynamodb"]["NewImage"]["type"]

    assert handle(change(None, first, "1"), change(None, second, "2"), broken) == ["1", "3"]
    assert list(files(bucket)) == [archive_key(second)]


def test_the_reader_gets_only_documents_of_ended_jobs() -> None:
    assert {"dynamodb": {"NewImage": {"state": {"S": list(TERMINAL_STATES)}}}} == ARCHIVE_PATTERN


def test_the_columns_of_athena_are_the_fields_of_a_line() -> None:
    page = (ROOT / "docs" / "guides" / "archive.md").read_text(encoding="utf-8")
    statement = page.partition("CREATE EXTERNAL TABLE")[2].partition("PARTITIONED BY")[0]
    assert re.findall(r"^  `(\w+)` ", statement, re.MULTILINE) == list(record(ended()))

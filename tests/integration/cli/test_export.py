"""`export`: the jobs that it selects, their lines, and the target, which appears whole or not at all."""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import a_job, brought_to, with_changes
from tests.support.documented_fields import documented_fields
from tests.support.job_tables import REGION, client
from tests.support.payload_bucket import payload_of
from tidemill.application.job_view import CONTENTS, operator_view
from tidemill.aws import clients
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.document import key
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.names import JOB_KEY

_ARN: Final = "arn:aws:sts::123456789012:user/moto"


@pytest.fixture
def bucket(cloud: Cloud, environment: pytest.MonkeyPatch) -> Any:
    """A client of S3 with the bucket `files`."""
    s3: Any = client("s3")
    s3.create_bucket(Bucket="files", CreateBucketConfiguration={"LocationConstraint": REGION})
    for name in ("s3", "s3_uploads"):
        environment.setattr(clients, name, lambda: s3)
    return s3


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Path]:
    """A name in a folder in which an export must leave nothing else."""
    yield tmp_path / "jobs.jsonl"
    assert set(tmp_path.iterdir()) <= {tmp_path / "jobs.jsonl"}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("audit", "--json").stdout.splitlines()]


def test_each_matching_job_is_one_line_without_its_contents(cloud: Cloud, target: Path) -> None:
    dead, other = cloud.dead_job(type="mail"), cloud.dead_job(type="other")
    live = brought_to(cloud.store, State.RUNNING, type="mail")

    result = run("export", "--type", "mail", "--to", str(target))

    assert (result.exit_code, result.stdout) == (0, f"Exported 2 jobs to {target}.\n")
    found = {line["id"]: line for line in lines(target)}
    assert found.keys() == {dead.id, live.id} != {other.id}
    stored = cloud.store.get(dead.tenant, dead.id)
    assert stored
    whole = operator_view(stored, payload=stored.payload.text)
    assert found[dead.id] == {name: value for name, value in whole.items() if name not in CONTENTS}


def test_states_tenant_and_limit_select_too(cloud: Cloud, target: Path) -> None:
    for tenant in ("a:one", "a:two"):
        for _ in range(2):
            cloud.store.insert_if_absent(a_job(tenant=tenant))
    cloud.dead_job(tenant="a:two")
    arguments = ["--tenant", "a:two", "--state", "queued", "--limit", "1", "--rate", "1", "--to", str(target)]

    assert run("export", *arguments).exit_code == 0
    assert [(line["tenant"], line["state"]) for line in lines(target)] == [("a:two", "queued")]


def test_payloads_results_and_checkpoints_come_on_request_from_wherever_they_are(
    cloud: Cloud, target: Path, bucket: Any
) -> None:
    payloads = DynamoPayloads(
        clients.dynamodb(), table=cloud.table.name, bucket=lambda: Bucket(bucket, "files"), new_token=lambda: "token"
    )
    sizes = [100, 10_000, 100_000]
    jobs = [payloads.put_away(a_job(payload=payload_of(size))) for size in sizes]
    lost = with_changes(payloads.put_away(a_job(payload=payload_of(10_000))), payload_at="item/lost")
    done = a_job(state=State.SUCCEEDED, due=None, result='{"sum":7}', checkpoint='{"row":9}')
    for job in [*jobs, lost, done]:
        cloud.table.put(job)

    result = run("export", "--payloads", "--to", str(target))

    assert (result.exit_code, result.stdout) == (1, f"Exported 5 jobs to {target}.\n")
    assert f"Error: {target} lacks the payloads of 1 job\n" in result.stderr
    assert (entries()[0]["outcome"], entries()[0]["counts"]["without_payload"]) == ("failed", 1)
    found = {line["id"]: line for line in lines(target)}
    assert [found[job.id]["payload"] for job in jobs] == [json.loads(payload_of(size)) for size in sizes]
    assert found[lost.id]["payload"] is None
    assert (found[done.id]["result"], found[done.id]["checkpoint"]) == ({"sum": 7}, {"row": 9})


def test_the_page_documents_each_field(cloud: Cloud, target: Path) -> None:
    cloud.table.put(a_job())
    run("export", "--payloads", "--to", str(target))
    (line,) = lines(target)
    assert documented_fields("docs/reference/exported-jobs.md") == set(line)


def test_an_export_leaves_an_audit_entry(cloud: Cloud, target: Path) -> None:
    cloud.dead_job()
    arguments = ["--state", "dead", "--limit", "5", "--to", str(target), "--reason", "ticket 12", "--json"]

    counts = {"exported": 1, "unreadable": 0, "without_payload": 0}
    assert json.loads(run("export", *arguments).stdout) == {"to": str(target), **counts}

    (entry,) = entries()
    assert (entry["command"], entry["by"], entry["reason"]) == ("export", _ARN, "ticket 12")
    assert entry["options"] == {"states": ["dead"], "limit": 5, "to": str(target)}
    assert (entry["outcome"], entry["counts"]) == ("done", counts)
    other = target.with_name("jobs.jsonl")
    other.unlink()
    run("export", "--payloads", "--to", str(other))
    assert entries()[0]["options"] == {"to": str(other), "payloads": True}


def _broken_after(first: int, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise at the record of a job, after this many."""
    made: list[Job] = []

    def record(job: Job) -> dict[str, Any]:
        made.append(job)
        if len(made) > first:
            raise error
        return {"id": job.id}

    monkeypatch.setattr("tidemill.cli.operations.export.record", record)


@pytest.mark.parametrize(("error", "outcome"), [(KeyboardInterrupt(), "interrupted"), (OSError("full"), "failed")])
def test_an_export_that_ends_early_leaves_no_file(
    cloud: Cloud, target: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, outcome: str
) -> None:
    for _ in range(3):
        cloud.dead_job()
    _broken_after(2, error, monkeypatch)

    assert run("export", "--to", str(target)).exit_code != 0
    assert not target.exists()
    assert (entries()[0]["outcome"], entries()[0]["counts"]["exported"]) == (outcome, 0)


def test_an_export_that_ends_early_uploads_nothing(cloud: Cloud, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.dead_job()
    _broken_after(0, KeyboardInterrupt(), monkeypatch)

    assert run("export", "--to", "s3://files/jobs.jsonl").exit_code == 130
    assert "Contents" not in bucket.list_objects_v2(Bucket="files")


def test_an_existing_file_is_not_replaced(cloud: Cloud, target: Path) -> None:
    cloud.dead_job()
    target.write_text("mine", encoding="ascii")

    result = run("export", "--to", str(target))

    assert (result.exit_code, target.read_text(encoding="ascii")) == (1, "mine")
    assert f"Error: {target} exists" in result.stderr


def test_a_file_that_appears_meanwhile_is_not_replaced(
    cloud: Cloud, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.dead_job()

    def record(job: Job) -> dict[str, Any]:
        target.write_text("mine", encoding="ascii")
        return {"id": job.id}

    monkeypatch.setattr("tidemill.cli.operations.export.record", record)

    assert run("export", "--to", str(target)).exit_code == 1
    assert target.read_text(encoding="ascii") == "mine"


def test_only_its_owner_may_read_the_file(cloud: Cloud, target: Path) -> None:
    cloud.dead_job()
    run("export", "--to", str(target))
    assert target.stat().st_mode & 0o777 == 0o600


def _object(s3: Any) -> bytes:
    body: bytes = s3.get_object(Bucket="files", Key="a/jobs.jsonl")["Body"].read()
    return body


def test_an_object_of_a_bucket_is_written_once(cloud: Cloud, bucket: Any) -> None:
    job = cloud.dead_job()
    export = partial(run, "export", "--to", "s3://files/a/jobs.jsonl")

    assert export().exit_code == 0
    assert json.loads(_object(bucket))["id"] == job.id

    cloud.dead_job()
    result = export()
    assert result.exit_code == 1
    assert "Error: s3://files/a/jobs.jsonl exists" in result.stderr
    assert _object(bucket).count(b"\n") == 1


def _refused_before_the_scan(monkeypatch: pytest.MonkeyPatch, target: str) -> str:
    """What the command says."""
    monkeypatch.setattr("tidemill.cli.operations.export.record", lambda _: pytest.fail("it read a job"))

    result = run("export", "--to", target)

    assert result.exit_code == 1
    assert (entries()[0]["outcome"], entries()[0]["counts"]["exported"]) == ("failed", 0)
    return result.stderr


def test_an_object_that_exists_is_refused_before_the_scan(
    cloud: Cloud, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.dead_job()
    bucket.put_object(Bucket="files", Key="a/jobs.jsonl", Body=b"mine")

    assert "a/jobs.jsonl exists" in _refused_before_the_scan(monkeypatch, "s3://files/a/jobs.jsonl")


@pytest.mark.usefixtures("bucket")
def test_a_bucket_that_does_not_exist_is_refused_before_the_scan(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.dead_job()

    said = _refused_before_the_scan(monkeypatch, "s3://no-such-bucket/jobs.jsonl")

    assert "Error: the bucket no-such-bucket does not exist" in said
    assert "What to do: Correct --to" in said


def test_a_bucket_that_may_not_be_read_is_refused_before_the_scan(
    cloud: Cloud, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.dead_job()

    def denied(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}, "GetObject")

    monkeypatch.setattr(bucket, "get_object", denied)

    said = _refused_before_the_scan(monkeypatch, "s3://files/jobs.jsonl")

    assert "What to do: Choose another target with --to, or ask for s3:GetObject" in said


def test_an_object_that_appears_meanwhile_is_not_replaced(
    cloud: Cloud, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.dead_job()

    def record(job: Job) -> dict[str, Any]:
        bucket.put_object(Bucket="files", Key="a/jobs.jsonl", Body=b"mine")
        return {"id": job.id}

    monkeypatch.setattr("tidemill.cli.operations.export.record", record)

    assert "a/jobs.jsonl exists" in run("export", "--to", "s3://files/a/jobs.jsonl").stderr
    assert _object(bucket) == b"mine"
    assert (entries()[0]["outcome"], entries()[0]["counts"]["exported"]) == ("failed", 0)


def test_an_upload_whose_answer_was_lost_succeeds(cloud: Cloud, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK repeats the request, and S3 refuses the second one."""
    cloud.dead_job()
    put = bucket.put_object

    def twice(**request: Any) -> Any:
        put(**request)
        return put(**request)

    monkeypatch.setattr(bucket, "put_object", twice)

    assert run("export", "--to", "s3://files/a/jobs.jsonl").exit_code == 0
    assert _object(bucket).count(b"\n") == 1


@pytest.mark.usefixtures("cloud")
def test_a_folder_without_hard_links_is_refused_before_the_scan(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError("not permitted")

    monkeypatch.setattr(os, "link", refused)

    result = run("export", "--to", str(target))

    assert result.exit_code == 1
    assert "has no hard links" in result.stderr
    assert list(target.parent.iterdir()) == []


def test_an_unreadable_document_is_reported_and_counted(cloud: Cloud, target: Path) -> None:
    cloud.dead_job()
    broken = a_job()
    cloud.table.put(broken)
    cloud.table.client.update_item(
        TableName=cloud.table.name,
        Key=key(broken.tenant, broken.id),
        UpdateExpression="REMOVE #type",
        ExpressionAttributeNames={"#type": "type"},
    )

    result = run("export", "--to", str(target))

    assert (result.exit_code, len(lines(target))) == (1, 1)
    assert f"Skipped {key(broken.tenant, broken.id)[JOB_KEY]['S']}" in result.stderr
    assert f"Error: {target} lacks 1 job that could not be read\n" in result.stderr
    assert result.stdout == f"Exported 1 job to {target}.\n"
    assert (entries()[0]["outcome"], entries()[0]["counts"]["unreadable"]) == ("failed", 1)


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        (None, "--to"),
        ("", "name a file"),
        ("-", "name a file"),
        ("no/such/jobs.jsonl", "the folder no/such does not exist: create it"),
        ("S3://files/jobs.jsonl", "in lower case"),
        ("s3://files", "use s3://BUCKET/KEY"),
        ("s3:///key", "use s3://BUCKET/KEY"),
        ("s3://files/a/", "use s3://BUCKET/KEY"),
    ],
)
def test_an_invalid_target_is_wrong_usage(cloud: Cloud, target: str | None, advice: str) -> None:
    before = cloud.contents()
    result = run("export", *([] if target is None else ["--to", target]))
    assert (result.exit_code, cloud.contents()) == (2, before)
    # Click wraps the text.
    assert advice in " ".join(result.stderr.split())

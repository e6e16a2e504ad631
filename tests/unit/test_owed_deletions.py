"""Functions, programs and the command line owe the deletion of a file that fails. Publish and wake do without that."""

import json
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import TENANT
from tests.support.deployed_functions import forget
from tests.support.job_tables import Table
from tidemill import composition
from tidemill.application.dispatch.payload_reaction import PayloadReaction
from tidemill.application.ports import Payloads
from tidemill.aws import clients
from tidemill.cli.installation import Installation
from tidemill.client import Submission, Tidemill
from tidemill.names import JOB_KEY, OWED_PREFIX, Env


class BusyBucket:
    """Stores files, and deletes none."""

    def put_object(self, **_request: Any) -> Mapping[str, Any]:
        return {}

    def delete_object(self, **_request: Any) -> None:
        answer: Any = {"Error": {"Code": "SlowDown"}, "ResponseMetadata": {"HTTPStatusCode": 503}}
        raise ClientError(answer, "DeleteObject")


@pytest.fixture(autouse=True)
def _deployed(monkeypatch: pytest.MonkeyPatch, table: Table) -> Iterator[None]:
    monkeypatch.setenv(Env.JOBS_TABLE, table.name)
    monkeypatch.setenv(Env.FILES_BUCKET, "files")
    monkeypatch.setenv(Env.STAGE, "test")
    monkeypatch.setattr(clients, "dynamodb", lambda: table.client)
    monkeypatch.setattr(clients, "s3", BusyBucket)
    forget()
    yield
    forget()


def _of_functions(_table: Table) -> Payloads:
    return composition.parts().payloads


def _of_the_command_line(table: Table) -> Payloads:
    installation = Installation()
    # The deployment counts as found in CloudFormation.
    vars(installation)["deployment"] = SimpleNamespace(jobs_table=table.name, files_bucket="files")
    return installation.payloads


def _owed(table: Table) -> list[list[str]]:
    keys = [item[JOB_KEY]["S"] for item in table.client.scan(TableName=table.name)["Items"]]
    return [json.loads(key.removeprefix(OWED_PREFIX)) for key in keys if key.startswith(OWED_PREFIX)]


@pytest.mark.parametrize("payloads", [_of_functions, _of_the_command_line])
def test_the_deletion_of_a_file_that_fails_is_owed(table: Table, payloads: Callable[[Table], Payloads]) -> None:
    payloads(table).delete(TENANT, "job", "file/1")
    assert _owed(table) == [["delete payload", TENANT, "job", "file/1"]]


def test_a_program_owes_the_payload_of_a_repeated_submission(table: Table) -> None:
    tidemill = Tidemill.at(
        table.name,
        tenant=TENANT,
        job_packages=["tests.support.jobs"],
        client=table.client,
        files=(BusyBucket(), "files"),
    )
    large = Submission(type="test.scripted", payload={"text": "x" * 70_000}, key="twice")

    first, again = tidemill.submit(large), tidemill.submit(large)

    assert (first.replayed, again.replayed) == (False, True)
    ((kind, tenant, job_id, location),) = _owed(table)
    assert (kind, tenant, job_id) == ("delete payload", TENANT, first.job.id)
    assert location.startswith("file/")
    assert location != first.job.payload.location


def test_publish_and_the_runner_of_owed_work_see_to_a_failed_deletion_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The runner would owe its own work once more, and never put it off."""
    monkeypatch.setenv(Env.STAGE, "test")
    for variable, value in {Env.RETENTION_DAYS: "30", Env.LISTING: "", Env.INDEX_SHARDS: "4", Env.LANES: "{}"}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")

    alone = composition.parts().payloads_alone

    [reaction] = [each for each in composition.parts().publisher._reactions if isinstance(each, PayloadReaction)]
    assert reaction._payloads is composition.parts().owed_runner._payloads is alone

"""Submitting from Python: the checks of the HTTP API, many at once, and in a transaction of the caller."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.support.builders import TENANT
from tests.support.deployed_functions import forget
from tests.support.document_blocks import python_blocks
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import REGION, Table
from tests.support.job_tables import client as aws
from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.attempt.run import Run
from tidemill.application.submission.job_ids import keyed_job_id
from tidemill.application.submission.submit import Submit
from tidemill.aws import clients
from tidemill.client import Accepted, Lane, NoBucketError, Submission, TenantError, Tidemill, Unique, job_id_of
from tidemill.domain.errors import (
    InvalidPayloadError,
    KeyReusedError,
    MissingResourceError,
    StoreUnavailableError,
    TransactionConflictError,
    UnknownJobTypeError,
)
from tidemill.domain.job import Job
from tidemill.domain.submission.trace_context import traceparent_of
from tidemill.dynamodb.document import decode
from tidemill.dynamodb.payloads import LARGEST_ITEM_BYTES, Bucket, DynamoPayloads
from tidemill.names import LISTING_KEY, Env

HOUR = timedelta(hours=1)
DOCS = Path(__file__).parents[2] / "docs"
PYTHON_PAGE = DOCS / "guides" / "from-python.md"
JOB_TYPES_PAGE = DOCS / "reference" / "job-types.md"
TESTING_PAGE = DOCS / "start" / "test-a-job-type.md"


@pytest.fixture
def tidemill(client: FaultyClient, table: Table) -> Tidemill:
    return Tidemill.at(table.name, tenant=TENANT, job_packages=["tests.support.jobs"], client=client)  # type: ignore[arg-type]  # a proxy


def _noop(n: int = 0, **asked: Any) -> Submission:
    return Submission(type="test.noop", payload={"n": n}, **asked)


def _stored(table: Table) -> list[Job]:
    items = table.client.scan(TableName=table.name)["Items"]
    return [decode(item) for item in items if "state" in item]


def _count(table: Table) -> int:
    return table.client.scan(TableName=table.name)["Count"]


def test_a_submission_makes_a_job_of_the_tenant(tidemill: Tidemill, table: Table) -> None:
    accepted = tidemill.submit(_noop(7, lane=Lane.BULK, delay=HOUR))

    assert [accepted.job] == _stored(table)
    assert (accepted.replayed, accepted.job.tenant, accepted.job.lane) == (False, TENANT, Lane.BULK)
    assert LISTING_KEY in (table.item(accepted.job) or {})


def test_the_trace_of_a_job_is_the_callers_or_a_fresh_token(tidemill: Tidemill) -> None:
    traces = [tidemill.submit(_noop(), trace=trace).job.trace for trace in ("request-1", None, None)]

    assert traces[0] == "request-1"
    assert len(set(traces)) == 3


def test_a_job_belongs_to_the_trace_that_its_caller_names(tidemill: Tidemill) -> None:
    context, other = (f"00-{'4' * 32}-{digit * 16}-01" for digit in "12")

    named = [
        tidemill.submit(_noop(), traceparent=context),
        tidemill.submit(_noop(), trace="request", traceparent=context),
        tidemill.submit(_noop(), trace=f"{other}/request", traceparent=context),
        *tidemill.submit_many([_noop(), _noop()], traceparent=context),
    ]
    tidemill.submit(_noop(), traceparent="nonsense")

    assert [traceparent_of(each.job.trace) for each in named if isinstance(each, Accepted)] == [context] * 5
    assert named[1].job.trace == named[2].job.trace == f"{context}/request"  # type: ignore[union-attr]
    assert traceparent_of(tidemill.submit(_noop(), trace=f"{other}/request").job.trace) == other
    assert traceparent_of(tidemill.submit(_noop(), traceparent="nonsense").job.trace) is None


def test_a_key_is_the_same_from_python_as_over_http(tidemill: Tidemill) -> None:
    first = tidemill.submit(_noop(key="k"))

    assert first.job.id == keyed_job_id(TENANT, "k")
    assert tidemill.submit(_noop(key="k")) == Accepted(job=first.job, replayed=True)
    with pytest.raises(KeyReusedError):
        tidemill.submit(_noop(1, key="k"))


def test_an_invalid_submission_is_refused_as_over_http_and_writes_nothing(tidemill: Tidemill, table: Table) -> None:
    with pytest.raises(UnknownJobTypeError):
        tidemill.submit(Submission(type="none"))
    with pytest.raises(InvalidPayloadError) as refused:
        tidemill.submit(Submission(type="test.noop", payload={"n": "x"}, lane=Lane.CRITICAL, group=""))

    assert [fault.path for fault in refused.value.faults] == ["/lane", "/group", "/payload/n"]
    assert _count(table) == 0


def test_a_lost_answer_raises_and_a_repeat_is_a_replay(tidemill: Tidemill, client: FaultyClient) -> None:
    client.faults = [Fault.ANSWER_LOST]
    with pytest.raises(StoreUnavailableError):
        tidemill.submit(_noop(key="k"))

    assert tidemill.submit(_noop(key="k")).replayed


def test_many_submissions_have_one_answer_each_in_their_order(
    tidemill: Tidemill, client: FaultyClient, table: Table
) -> None:
    client.faults = [Fault.NOT_SENT]

    answers = tidemill.submit_many(
        [_noop(0, group="g"), Submission(type="none"), _noop(2, group="g"), _noop(3, key="k"), _noop(3, key="k")]
    )

    kinds = [type(answer) for answer in answers]
    assert kinds.count(Accepted) == 3
    assert isinstance(answers[1], UnknownJobTypeError)
    assert sum(isinstance(answer, StoreUnavailableError | TransactionConflictError) for answer in answers) == 1
    assert tidemill.submit_many([]) == []
    assert len(_stored(table)) == sum(isinstance(answer, Accepted) and not answer.replayed for answer in answers)


def test_many_are_written_in_parallel_up_to_the_connections_of_the_client(
    tidemill: Tidemill, client: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(clients.POOL_SIZE, timeout=PATIENCE_SECONDS)
    insert = Submit.insert

    def met(self: Submit, job: Job) -> Accepted:
        together.wait()
        return insert(self, job)

    monkeypatch.setattr(Submit, "insert", met)

    answers = tidemill.submit_many(_noop(n) for n in range(2 * clients.POOL_SIZE))

    assert all(isinstance(answer, Accepted) for answer in answers)


@pytest.fixture
def users(table: Table) -> str:
    """The caller's own table."""
    table.client.create_table(
        TableName="users",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    return "users"


def _row(users: str, user: str = "7") -> Any:
    item = {"id": {"S": user}}
    return {"Put": {"TableName": users, "Item": item, "ConditionExpression": "attribute_not_exists(id)"}}


@pytest.mark.parametrize("size_bytes", [10, 10_000])
def test_a_job_and_the_callers_write_commit_together(
    tidemill: Tidemill, table: Table, users: str, size_bytes: int
) -> None:
    entry: Any = tidemill.submission_item(Submission(type="test.noop", payload={"text": "x" * size_bytes}))
    assert _stored(table) == []

    # The client of an ordinary program validates its parameters.
    boto3.client("dynamodb", region_name=REGION).transact_write_items(TransactItems=[_row(users), entry])

    (job,) = _stored(table)
    assert (job.id, job.tenant) == (job_id_of(entry), TENANT)
    payloads = DynamoPayloads(table.client, table=table.name, bucket=lambda: Bucket(None, ""), new_token=str)
    assert len(payloads.load(job)) == size_bytes + len('{"text":""}')


def test_a_job_does_not_commit_when_the_callers_write_is_refused(tidemill: Tidemill, table: Table, users: str) -> None:
    table.client.put_item(TableName=users, Item={"id": {"S": "7"}})
    entry: Any = tidemill.submission_item(_noop())

    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        table.client.transact_write_items(TransactItems=[_row(users), entry])

    assert _count(table) == 0


def test_an_existing_job_cancels_the_transaction_and_is_in_the_reason(
    tidemill: Tidemill, table: Table, users: str
) -> None:
    first = tidemill.submit(_noop(key="k")).job
    entry: Any = tidemill.submission_item(_noop(key="k"))

    with pytest.raises(ClientError) as cancelled:
        table.client.transact_write_items(TransactItems=[_row(users), entry])

    response: Any = cancelled.value.response
    assert decode(response["CancellationReasons"][1]["Item"]) == first
    assert table.client.scan(TableName=users)["Count"] == 0


@pytest.mark.parametrize(
    ("asked", "path"),
    [({"group": "g"}, "/group"), ({"delay": -HOUR}, "/delay_seconds"), ({"unique": Unique(period=-HOUR)}, "/unique/")],
    ids=str,
)
def test_an_invalid_item_is_refused_and_stores_no_payload(
    tidemill: Tidemill, table: Table, asked: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        tidemill.submission_item(Submission(type="test.noop", payload={"text": "x" * 10_000}, **asked))

    assert refused.value.faults[0].path.startswith(path)
    assert _count(table) == 0


def test_a_payload_that_must_be_a_file_needs_the_bucket(tidemill: Tidemill, table: Table) -> None:
    large = Submission(type="test.noop", payload={"text": "x" * LARGEST_ITEM_BYTES})
    with pytest.raises(NoBucketError, match="files="):
        tidemill.submission_item(large)

    s3 = aws("s3")
    s3.create_bucket(Bucket="files", CreateBucketConfiguration={"LocationConstraint": REGION})
    packages = ["tests.support.jobs"]
    with_files = Tidemill.at(
        table.name, tenant=TENANT, job_packages=packages, client=table.client, files=(s3, "files"), listed=False
    )
    job = with_files.submit(large).job

    assert s3.list_objects_v2(Bucket="files")["KeyCount"] == 1
    assert LISTING_KEY not in (table.item(job) or {})


def test_a_wrong_table_or_bucket_is_reported_as_such(table: Table) -> None:
    def submit(size: int, name: str) -> None:
        nowhere = Tidemill.at(
            name, tenant=TENANT, job_packages=["tests.support.jobs"], client=table.client, files=(aws("s3"), "nowhere")
        )
        nowhere.submit(Submission(type="test.noop", payload={"text": "x" * size}))

    with pytest.raises(MissingResourceError, match="the outputs JobsTable and FilesBucket of the stack"):
        submit(1, "nothing")
    with pytest.raises(MissingResourceError, match="NoSuchBucket"):
        submit(LARGEST_ITEM_BYTES, table.name)
    assert _count(table) == 0


@pytest.mark.parametrize("tenant", ["", "!group#x", "two words", "x" * 513])
def test_an_invalid_tenant_is_refused(client: FaultyClient, tenant: str) -> None:
    with pytest.raises(TenantError, match="visible ASCII"):
        Tidemill.at("table", tenant=tenant, job_packages=["tests.support.jobs"], client=client)  # type: ignore[arg-type]


@pytest.fixture
def environment(table: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment of a function."""
    settings = {
        Env.JOBS_TABLE: table.name,
        Env.JOB_PACKAGES: "tests.support.jobs",
        Env.RETENTION_DAYS: "30",
        Env.LISTING: "",
        Env.INDEX_SHARDS: "4",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(clients, "dynamodb", lambda: table.client)
    forget()
    yield
    forget()


@pytest.mark.usefixtures("environment")
def test_a_function_of_the_app_reads_its_environment(table: Table, users: str) -> None:
    tidemill = Tidemill.here(tenant=TENANT)
    entry: Any = tidemill.submission_item(_noop(1))

    job = tidemill.submit(_noop()).job
    table.client.transact_write_items(TransactItems=[_row(users), entry])

    assert sorted(each.id for each in _stored(table)) == sorted([job.id, job_id_of(entry)])
    assert all(LISTING_KEY not in (table.item(each) or {}) for each in _stored(table))


WITHOUT_POWERTOOLS = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "aws_lambda_powertools":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
import tidemill, tidemill.testing
from tests.support.job_tables import table_on_moto
from tidemill.client import Submission, Tidemill

with table_on_moto() as table:
    import os
    os.environ["TIDEMILL_JOBS_TABLE"] = table.name
    at = Tidemill.at(table.name, tenant="billing", job_packages=["tests.support.jobs"], client=table.client)
    for client in (at, Tidemill.here(tenant="billing")):
        assert table.item(client.submit(Submission(type="test.noop")).job)
"""


def test_a_program_submits_without_powertools() -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": REGION,
        Env.JOB_PACKAGES: "tests.support.jobs",
        Env.RETENTION_DAYS: "30",
        Env.LISTING: "",
        Env.INDEX_SHARDS: "4",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_POWERTOOLS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_page_lists_all_that_a_run_has() -> None:
    (table,) = re.findall(
        r"\| of a run \| what it is \|\n\|---\|---\|\n(.+?)\n\n", JOB_TYPES_PAGE.read_text(), re.DOTALL
    )
    # These are the worker's, and not for handlers.
    has = {name for name in dir(Run) if not name.startswith("_")} - {
        "save",
        "read_flags",
        "read_strain",
        "observe",
        "take_step",
    }
    assert set(re.findall(r"^\| `run\.(\w+)", table, re.MULTILINE)) == has


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], list[str]]]:
    """The examples of a page after its first one, a file of job types that goes into a package."""
    package = tmp_path / "page_jobs"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    def of(page: Path) -> list[str]:
        job_types, *rest = (block.replace("functions.jobs", "page_jobs") for block in python_blocks(page))
        (package / "mail_welcome.py").write_text(job_types)
        return rest

    yield of
    for name in [name for name in sys.modules if name.startswith("page_jobs")]:
        del sys.modules[name]


def test_the_examples_of_the_page_about_python_run(
    examples: Callable[[Path], list[str]], table: Table, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"REGION": REGION, "DEFAULT_REGION": REGION}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    names: dict[str, Any] = {}
    for example in examples(PYTHON_PAGE):
        exec(compile(example.replace("the-jobs-table", table.name), PYTHON_PAGE.name, "exec"), names)

    assert len(_stored(table)) == 12
    assert table.client.scan(TableName=users)["Count"] == 1


def test_the_examples_of_the_page_about_tests_pass(examples: Callable[[Path], list[str]]) -> None:
    names: dict[str, Any] = {}
    for example in examples(TESTING_PAGE):
        exec(compile(example, TESTING_PAGE.name, "exec"), names)
    tests = [name for name in names if name.startswith("test_")]
    for name in tests:
        names[name]()

    assert len(tests) == 3

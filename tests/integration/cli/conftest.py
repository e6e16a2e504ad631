"""Runs the command line in process: moto for DynamoDB, SQS and CloudWatch, a loopback server for the rest."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import boto3
import pytest
from click.testing import CliRunner, Result
from moto import mock_aws

from tests.integration.cli.called_functions import CalledFunctions
from tests.integration.cli.loopback import Loopback, Stack, from_the_functions, loopback
from tests.support.builders import brought_to, letter_for
from tests.support.deployed_functions import Mill
from tests.support.fake_app_config import FakeAppConfig
from tests.support.job_tables import REGION, Table, client, create_table
from tidemill import composition
from tidemill.aws import clients
from tidemill.cli.main import tidemill
from tidemill.domain.dispatch.job_message import DeadLetter, Reference
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.http.cursors import Cursors
from tidemill.sqs import messages

_TERMINAL = {"COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Fake credentials, and none of the developer's settings."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "TIDEMILL_")) or name in _TERMINAL]:
        monkeypatch.delenv(name)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    clients.cloudformation.cache_clear()
    yield monkeypatch
    clients.cloudformation.cache_clear()


@pytest.fixture
def terminal(environment: pytest.MonkeyPatch) -> None:
    """Output goes to a terminal with 80 columns."""
    for name, value in {"TTY_COMPATIBLE": "1", "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "80"}.items():
        environment.setenv(name, value)


@pytest.fixture
def server(environment: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A loopback server for CloudFormation and the HTTP API only."""
    with loopback() as serving:
        environment.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", serving.url)
        serving.stacks = [pipeline("jobs", "{}"), shortener()]
        yield serving


@pytest.fixture
def app_config(server: Loopback, environment: pytest.MonkeyPatch) -> FakeAppConfig:
    """The source of the configuration of each stack from now on."""
    aws = FakeAppConfig()
    place = json.dumps({"application": "app1", "environment": "env1", "profile": "pro1", "strategy": "str1"})
    server.stacks = [replace(stack, outputs={**stack.outputs, "AppConfig": place}) for stack in server.stacks]
    environment.setattr(clients, "app_config", lambda: aws)
    environment.setattr(clients, "app_config_data", lambda: aws)
    return aws


@pytest.fixture
def behind(server: Loopback, mill: Mill, environment: pytest.MonkeyPatch) -> Mill:
    """The functions, behind the API that the command line calls."""
    server.respond = from_the_functions
    server.stacks[0] = pipeline(mill.table.name, "{}")
    environment.setattr(composition.FunctionParts, "cursors", lambda *_, **__: Cursors(b"key"))
    return mill


@pytest.fixture
def interactive(environment: pytest.MonkeyPatch) -> None:
    """Confirmation can be typed, as if stdin were a terminal."""
    environment.setattr("tidemill.cli.confirm.stdin_is_terminal", lambda: True)


def pipeline(table: str, lanes: str, *, name: str = "dev-Pipeline") -> Stack:
    outputs = {
        "ApiId": "a1b2",
        "ApiUrl": "https://a1b2.invalid",
        "JobsTable": table,
        "FilesBucket": "files",
        "Lanes": lanes,
        "Schedules": "{}",
        "Functions": "{}",
        "RetentionDays": "30",
        "AuditRetentionDays": "365",
        "Epoch": "0",
        "AlarmTopic": "arn:pages",
    }
    return Stack(name, outputs)


def shortener() -> Stack:
    return Stack("dev-Shortener", {"ShortenerApiId": "c3d4", "ApiUrl": "https://c3d4.invalid"})


def run(*arguments: str, typed: str | bytes | None = None) -> Result:
    """Raise every exception except an exit: it is a bug of the command line."""
    result = CliRunner().invoke(tidemill, arguments, input=typed)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def submit_dead_job(mill: Mill) -> str:
    """Submit a job whose handler fails, and run it until it is dead. Returns its id."""

    def broken(*_: object) -> None:
        raise ValueError("no such thing")

    mill.script.handler = broken
    job_id = mill.accepted()
    mill.run()
    assert mill.job(job_id).state is State.DEAD
    return job_id


@dataclass(frozen=True)
class Cloud:
    """One deployed Tidemill with one lane. Its functions do not run."""

    server: Loopback
    table: Table
    store: DynamoJobStore
    queue: str
    dead_letters: str
    resources: CalledFunctions

    def listed(self) -> "Cloud":
        """The same table. Jobs that are inserted from now on are in the listing index."""
        store = DynamoJobStore(
            clients.dynamodb(), table=self.table.name, retention=timedelta(days=30), indexes=Indexes(listed=True)
        )
        return replace(self, store=store)

    def dead_job(self, *, dead_letter: bool = True, **changes: Any) -> Job:
        job = brought_to(self.store, State.DEAD, **changes)
        if dead_letter:
            self.write(letter_for(job))
        return job

    def write(self, dead_letter: DeadLetter | Reference | str) -> None:
        """Send a message, valid or malformed, to the dead-letter queue."""
        body = dead_letter if isinstance(dead_letter, str) else messages.encode(dead_letter)
        clients.sqs().send_message(QueueUrl=self.dead_letters, MessageBody=body)

    def state(self, job: Job) -> State:
        found = self.store.get(job.tenant, job.id)
        assert found is not None
        return found.state

    def bodies(self) -> list[str]:
        """The bodies of all visible DLQ messages, which stay visible."""
        seen: dict[str, str] = {}
        for _ in range(10):
            found = clients.sqs().receive_message(
                QueueUrl=self.dead_letters, MaxNumberOfMessages=10, VisibilityTimeout=0
            )
            seen |= {message["MessageId"]: message["Body"] for message in found.get("Messages", [])}
        return sorted(seen.values())

    def contents(self) -> tuple[list[str], Mapping[Any, str], list[str]]:
        """Everything that a command can change."""
        items = clients.dynamodb().scan(TableName=self.table.name)["Items"]
        names: list[Any] = ["All"]
        attributes = clients.sqs().get_queue_attributes(QueueUrl=self.dead_letters, AttributeNames=names)["Attributes"]
        return sorted(json.dumps(item, sort_keys=True) for item in items), attributes, self.bodies()


@pytest.fixture
def cloud(server: Loopback, environment: pytest.MonkeyPatch) -> Iterator[Cloud]:
    with mock_aws():
        for service in ("cloudwatch", "dynamodb", "logs", "sqs", "sts"):
            environment.setattr(clients, service, partial(client, service))
        table = create_table(clients.dynamodb())
        sqs = clients.sqs()
        urls = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("queue", "dead_letters")}
        server.stacks = [pipeline(table.name, json.dumps({"default": urls})), shortener()]
        store = DynamoJobStore(clients.dynamodb(), table=table.name, retention=timedelta(days=30))
        resources = CalledFunctions()
        environment.setattr(clients, "lambda_", lambda: resources)
        environment.setattr(clients, "scheduler", lambda: resources)
        yield Cloud(server, table, store, urls["queue"], urls["dead_letters"], resources)

"""The shortener on moto: the handlers of its functions, its tables, and a worker for its jobs."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from functions.redirect import handler as redirect
from functions.shorten import handler as shorten
from functions.stats import handler as stats
from shortener import client_address
from shortener import composition as shortener
from shortener import names as shortener_names
from shortener.names import CLICK_KEY, CLICK_SORT_KEY, LINK_KEY
from tests.support import job_tables
from tests.support.builders import reference_to
from tests.support.deployed_functions import forget as forget_engine
from tests.support.faulty_client import FaultyClient
from tidemill import composition
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Report
from tidemill.aws import clients
from tidemill.aws.clients import Item
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb.document import SCHEMA_ATTRIBUTE, decode
from tidemill.entrypoints import work
from tidemill.names import Env, Lane
from tidemill.powertools.idempotency import run_once
from tidemill.system import clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

OWNER: Final = "AROAOWNER"
SOURCE: Final = "203.0.113.9"
REMAINING: Final = timedelta(seconds=30)
SECRET: Final = "the key of the hash"
BUCKET: Final = "files"

_requests = count(1)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a function."""

    status: int
    headers: Mapping[str, str]
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(slots=True)
class World:
    """Calls the functions of the shortener, runs its jobs, and reads its tables and files."""

    client: FaultyClient
    dynamodb: "DynamoDBClient"
    jobs_table: str
    links_table: str
    clicks_table: str

    def post_link(self, body: Any, *, user: str | None = OWNER, key: str | None = None) -> Answer:
        headers = {"content-type": "application/json"} | ({} if key is None else {"idempotency-key": key})
        return self.call(shorten, "POST", "/links", body=json.dumps(body), user=user, headers=headers)

    def visit(self, code: str, **headers: str) -> Answer:
        """Follow a link. The names of `headers` have underscores for hyphens."""
        return self.call(
            redirect, "GET", f"/{code}", headers={name.replace("_", "-"): value for name, value in headers.items()}
        )

    def disable(self, code: str, *, user: str | None = OWNER) -> Answer:
        return self.call(shorten, "DELETE", f"/links/{code}", user=user)

    def stats(self, code: str, *, user: str | None = OWNER) -> Answer:
        return self.call(stats, "GET", f"/links/{code}/stats", user=user)

    def call(
        self,
        function: ModuleType,
        method: str,
        path: str,
        *,
        body: str | None = None,
        user: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        authorizer = {"iam": {"accountId": "111122223333", "userId": f"{user}:session"}} if user else None
        event = {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": quote(path),
            "rawQueryString": "",
            "headers": dict(headers or {}),
            "body": body,
            "isBase64Encoded": False,
            "requestContext": {
                "requestId": f"request-{next(_requests)}",
                "stage": "$default",
                "authorizer": authorizer,
                "http": {"method": method, "path": path, "sourceIp": SOURCE, "protocol": "HTTP/1.1"},
            },
        }
        answer = function.handle(event, None)
        return Answer(answer["statusCode"], answer["headers"], answer["body"] or "")

    def submit(self, job_type: str, *, user: str = OWNER, **payload: Any) -> Job:
        submission = Submission(type=job_type, payload=payload)
        return composition.parts().submit(submission, tenant=f"111122223333:{user}", trace="trace").job

    def job(self, job: Job) -> Job:
        """The stored job."""
        found = composition.parts().store.get(job.tenant, job.id)
        assert found is not None
        return found

    def files(self) -> dict[str, bytes]:
        """The contents of the bucket, by key."""
        s3 = clients.s3()
        keys = [file["Key"] for file in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]
        return {key: s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}

    def jobs(self) -> list[Job]:
        """All job documents. The table also holds payloads."""
        return [decode(item) for item in self.items(self.jobs_table) if SCHEMA_ATTRIBUTE in item]

    def clicks(self) -> list[Item]:
        """The records of clicks, without the counters."""
        return [item for item in self.items(self.clicks_table) if item[CLICK_SORT_KEY]["S"].startswith("click#")]

    def items(self, table: str) -> list[Item]:
        return [dict(item) for item in self.dynamodb.scan(TableName=table)["Items"]]

    def attempt(self, job: Job) -> Attempt:
        settings = work.worker().settings
        tools = replace(settings.context, clock=clock.now, steady_clock=None, pause=lambda _seconds: None)
        return Attempt(reference_to(job), tools, deadline=clock.now() + REMAINING)

    def run(self, job: Job) -> Report:
        """Run one attempt, as a worker does for one message of the job."""
        attempt = self.attempt(job)
        # The attempt records an error of the handler, and raises it again.
        with suppress(Exception):
            run_once(attempt, remaining=REMAINING)
        assert attempt.report is not None
        return attempt.report

    def run_all(self) -> list[Report]:
        return [self.run(job) for job in self.jobs() if not job.state.terminal]


def refusing(code: str) -> Callable[..., Any]:
    """A stand-in for a call of AWS that answers with the error `code`."""

    def call(**_request: Any) -> Any:
        raise ClientError({"Error": {"Code": code, "Message": code}}, "Operation")

    return call


def no_country_of(network: str | None) -> str:
    """A stand-in for `country_of` that fails. Its file shows in tracebacks, so its name holds no canary."""
    raise ValueError(f"no country of {network}")


def set_now(monkeypatch: pytest.MonkeyPatch, now: Callable[[], datetime]) -> None:
    """Set the current time of the engine and of the example."""
    monkeypatch.setattr(clock, "now", now)
    monkeypatch.setattr("shortener.clock.now", now)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with mock_aws():
        dynamodb, secrets = job_tables.client("dynamodb"), job_tables.client("secretsmanager")
        jobs = job_tables.create_table(dynamodb).name
        links, clicks = f"links-for-{jobs}", f"clicks-for-{jobs}"
        _create_table(dynamodb, links, [LINK_KEY])
        _create_table(dynamodb, clicks, [CLICK_KEY, CLICK_SORT_KEY])
        s3 = job_tables.client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": job_tables.REGION})
        secret = secrets.create_secret(Name=f"key-for-{jobs}", SecretString=SECRET)
        environment = {
            Env.STAGE: "test",
            Env.JOBS_TABLE: jobs,
            Env.RETENTION_DAYS: "30",
            Env.LISTING: "",
            Env.INDEX_SHARDS: "4",
            Env.JOB_PACKAGES: "functions.jobs",
            Env.JOB_TIMEOUT_SECONDS: "30",
            Env.LANES: json.dumps({Lane.BULK: {"queue": "lane", "dead_letters": "letters"}}),
            Env.FILES_BUCKET: BUCKET,
            shortener_names.Env.EXPORTS_BUCKET: BUCKET,
            shortener_names.Env.LINKS_TABLE: links,
            shortener_names.Env.CLICKS_TABLE: clicks,
            shortener_names.Env.ADDRESS_KEY_SECRET: secret["ARN"],
            shortener_names.Env.TRUSTED_PROXY_HOPS: "1",
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv(shortener_names.Env.GEOIP_DATABASE, raising=False)
        faulty = FaultyClient(dynamodb)
        monkeypatch.setattr(clients, "dynamodb", lambda: faulty)
        monkeypatch.setattr(clients, "secrets", lambda: secrets)
        monkeypatch.setattr(clients, "s3", lambda: s3)
        monkeypatch.setattr(clients, "sqs", lambda: job_tables.client("sqs"))
        forget()
        yield World(faulty, dynamodb, jobs, links, clicks)
        forget()


def _create_table(dynamodb: "DynamoDBClient", name: str, keys: list[str]) -> None:
    """Create a table with the keys that `stacks.applications.shortener.tables` declares."""
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        KeySchema=[{"AttributeName": key, "KeyType": "HASH" if key == keys[0] else "RANGE"} for key in keys],
    )


def forget() -> None:
    forget_engine()
    for built in vars(shortener).values():
        if hasattr(built, "cache_clear"):
            built.cache_clear()
    redirect._visitors.cache_clear()
    client_address._key.forget()

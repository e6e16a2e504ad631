"""The composition root, its clients and settings: nothing at import, and a missing setting is named."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from tests.support.deployed_functions import forget
from tidemill import composition
from tidemill.aws import clients
from tidemill.aws.clients import translated
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError
from tidemill.entrypoints import work
from tidemill.names import Env, Lane
from tidemill.settings import SettingError

ROOT = Path(__file__).parents[2]
ENTRYPOINTS = [f"tidemill.entrypoints.{path.stem}" for path in (ROOT / "shared/tidemill/entrypoints").glob("[a-z]*.py")]
HANDLERS = [
    *sorted(ENTRYPOINTS),
    *sorted(f"functions.{path.parent.name}.handler" for path in (ROOT / "functions").glob("*/handler.py")),
]
SETTINGS: dict[Env, str] = {
    Env.STAGE: "test",
    Env.JOBS_TABLE: "jobs",
    Env.LANES: json.dumps(
        {Lane.DEFAULT: {"queue": "https://queue.invalid", "dead_letters": "https://letters.invalid"}}
    ),
    Env.JOB_PACKAGES: "functions.demo_jobs",
    Env.JOB_TIMEOUT_SECONDS: "1.5",
    Env.RETENTION_DAYS: "30",
    Env.LISTING: "true",
    Env.INDEX_SHARDS: "4",
    Env.FILES_BUCKET: "files",
}


def store() -> object:
    return composition.parts().store


def submit() -> object:
    return composition.parts().submit


def lanes() -> object:
    return composition.parts().lanes


STORING = {Env.JOBS_TABLE, Env.RETENTION_DAYS, Env.LISTING, Env.INDEX_SHARDS}
BUILT: dict[Callable[[], Any], set[Env]] = {
    store: STORING,
    composition.known_job_types: {Env.JOB_PACKAGES},
    submit: STORING | {Env.JOB_PACKAGES},
    lanes: {Env.LANES},
    work.worker: set(SETTINGS) - {Env.FILES_BUCKET, Env.STAGE},
}


@pytest.fixture(autouse=True)
def _deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    for service in ("dynamodb", "sqs"):
        monkeypatch.setattr(clients, service, MagicMock)
    forget()
    yield
    forget()


def test_every_handler_imports_with_an_empty_environment() -> None:
    assert {"tidemill.entrypoints.submit", "tidemill.entrypoints.work", "tidemill.entrypoints.publish"} <= set(HANDLERS)

    imports = "; ".join(f"import {handler}" for handler in HANDLERS)
    subprocess.run([sys.executable, "-c", imports], cwd=ROOT, env={}, check=True, capture_output=True)


@pytest.mark.parametrize("function", ["publish", "submit", "tick", "wake", "work"])
def test_a_cold_start_imports_no_models_of_events(function: str) -> None:
    """Powertools imports them if pydantic was imported before its batch utility."""
    models = "aws_lambda_powertools.utilities.parser"
    code = f"import sys, tidemill.entrypoints.{function}; sys.exit('{models}' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={"PYTHONPATH": str(ROOT / "shared")}, check=True)


@pytest.mark.parametrize("function", ["publish", "query", "submit"])
def test_only_a_worker_imports_the_worker(function: str) -> None:
    code = f"import sys, tidemill.entrypoints.{function}; sys.exit('tidemill.worker' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={"PYTHONPATH": str(ROOT / "shared")}, check=True)


@pytest.mark.parametrize("build", BUILT, ids=lambda build: build.__name__)
def test_what_is_built_is_built_once(build: Callable[[], Any]) -> None:
    assert build() is build()


@pytest.mark.parametrize(
    ("build", "missing"),
    [(build, name) for build, names in BUILT.items() for name in sorted(names)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_missing_setting_is_named(build: Callable[[], Any], missing: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(missing)

    with pytest.raises(SettingError, match=missing):
        build()


def test_a_worker_knows_its_own_lane_alone() -> None:
    worker = work.worker()

    assert (worker.settings.lane, worker.messages.queue_url) == (Lane.DEFAULT, "https://queue.invalid")
    assert worker.new_telemetry().stage == "test"
    assert worker.settings.job_timeout.total_seconds() == 1.5


def test_types_have_metrics_of_their_own_up_to_the_number_of_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert work.worker().measured_types is None
    forget()
    monkeypatch.setenv(Env.METRICS_BY_TYPE, "2")

    assert work.worker().measured_types == set(composition.known_job_types().names()[:2])


def _answer(code: str, status: int = 400) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "PutItem")


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (_answer("ThrottlingException"), StoreUnavailableError),
        (_answer("ProvisionedThroughputExceededException"), StoreUnavailableError),
        (_answer("RequestThrottled", 403), StoreUnavailableError),
        (_answer("WhateverItIs", 500), StoreUnavailableError),
        (_answer("WhateverItIs", 503), StoreUnavailableError),
        (_answer("TransactionConflictException"), TransactionConflictError),
        (_answer("AccessDeniedException"), ClientError),
        (_answer("ValidationException"), ClientError),
        (ClientError({}, "PutItem"), ClientError),
        (EndpointConnectionError(endpoint_url="https://x.invalid"), StoreUnavailableError),
        (NoCredentialsError(), StoreUnavailableError),
        (ValueError("a bug"), ValueError),
    ],
    ids=repr,
)
def test_temporary_errors_are_distinguished_from_permanent_ones(raised: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught, translated():
        raise raised

    assert type(caught.value) is expected
    assert caught.value is raised or caught.value.__cause__ is raised


@pytest.mark.parametrize("name", ["dynamodb", "sqs", "secrets"])
def test_a_client_that_hangs_fails_well_within_an_invocation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")

    client = getattr(clients, name).__wrapped__()

    config = client.meta.config
    assert (config.connect_timeout, config.read_timeout, config.retries["total_max_attempts"]) == (1, 2, 3)
    assert config.max_pool_connections >= 10

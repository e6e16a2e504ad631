"""Fixtures that several folders share, the marks of tests, and the distribution of tests over processes."""

import gc
import logging
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from tests.support import faster_botocore, faster_moto
from tests.support.builders import RETENTION
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table, table_on_moto
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.local import emulator, instance
from tidemill.local.lifecycle import App, deployed
from tidemill.telemetry import handler_output
from tidemill.telemetry.engine_log import EngineLog
from tidemill.telemetry.line_output import LineOutput
from tidemill.telemetry.outcome_log import logger

# An example takes longer than 200 ms on a busy machine.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
faster_botocore.install()
faster_moto.install()
# By default, the youngest objects are collected after each 700 new ones, which takes an eighth of the processor time of
# the tests on moto.
gc.set_threshold(20_000, 20, 50)

TESTS: Final = Path(__file__).parent
#: The mark of a test that uses the fixture.
MARKS: Final[Mapping[str, pytest.MarkDecorator]] = {
    "app": pytest.mark.e2e,
    "emulated": pytest.mark.emulator,
}
#: The tests below each of these paths share what takes long to make: a deployed app, the templates and the asset, all
#: generated mutants, or a flood in the simulator. The first that fits counts: some deploy an app of their own, and the
#: tests of alarms evaluate one template of their own for minutes, beside the others.
IN_ONE_PROCESS: Final = (
    "tests/e2e/test_restore.py",
    "tests/e2e/test_second_deployment.py",
    "tests/e2e/test_without_the_example.py",
    "tests/e2e/test_event_sources.py",
    "tests/e2e/",
    "tests/infrastructure/alarms/",
    "tests/infrastructure/",
    "tests/simulation/test_generated_mutants.py",
    "tests/simulation/test_hot_batch.py",
    "tests/simulation/test_hot_debounce.py",
    "tests/simulation/test_hot_group.py",
)


class ByPath(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives every free process the next test, or all tests below a path of `IN_ONE_PROCESS`.

    In place of the groups of pytest-xdist 3.8, which do nothing with pytest 9.2: they rename tests by an attribute that
    pytest no longer reads.
    """

    def _split_scope(self, nodeid: str) -> str:
        return next((path for path in IN_ONE_PROCESS if nodeid.startswith(path)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByPath:
    return ByPath(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", metavar="SEED", help="run the tests in an order that the seed chooses")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test before pytest selects by marks, and see that every name is there once."""
    names = Counter[str]()
    for item in items:
        # schemathesis gives the tests of all operations the same name.
        if operation := getattr(item, "operation_label", None):
            item._id = item.id.parse(f"{item.nodeid}[{operation}]")
        names[item.nodeid] += 1
        if item.path.is_relative_to(TESTS / "e2e"):
            item.add_marker(pytest.mark.e2e)
        for fixture in MARKS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS[fixture])
    if repeated := [name for name, count in names.items() if count > 1]:
        raise pytest.UsageError(f"pytest-xdist runs one test for each name, and these have several: {repeated}")
    if (seed := config.getoption("--shuffle")) is not None:
        Random(seed).shuffle(items)


@pytest.fixture(scope="session")
def app() -> Iterator[App]:
    """The app, which the real CDK command line deploys for the first test that needs it. It ends with the session."""
    with deployed() as app:
        yield app


@pytest.fixture(scope="session")
def emulated() -> Iterator[str]:
    """The endpoint of an empty embedded AWS, one for each process."""
    with instance.owned() as folder, emulator.tied(folder) as running:
        yield running.endpoint


@pytest.fixture(scope="session", autouse=True)
def _logger() -> None:
    """A logger keeps the stream of its creation. Let ours follow standard output, as each test has its own."""
    logger().output = LineOutput(_StandardOutput())  # type: ignore[arg-type]  # all that it uses


@pytest.fixture(autouse=True)
def _handler_output() -> Iterator[None]:
    """A worker that a test builds in its own process takes what handlers log and print. Give it back."""
    yield
    handler_output.remove()


class _StandardOutput:
    def write(self, text: str) -> None:
        sys.stdout.write(text)

    def flush(self) -> None:
        sys.stdout.flush()


@pytest.fixture
def table() -> Iterator[Table]:
    with table_on_moto() as table:
        yield table


@pytest.fixture
def client(table: Table) -> FaultyClient:
    return FaultyClient(table.client)


@pytest.fixture
def store(client: FaultyClient, table: Table) -> DynamoJobStore:
    return DynamoJobStore(client, table=table.name, retention=RETENTION)  # type: ignore[arg-type]  # a proxy


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """Also the lines of the engine, which reach no handler of the root."""
    emit = EngineLog.emit

    def captured(log: EngineLog, record: logging.LogRecord) -> None:
        caplog.handler.handle(record)
        emit(log, record)

    monkeypatch.setattr(EngineLog, "emit", captured)
    return caplog

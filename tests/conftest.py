"""Fixtures that several folders share, and the marks and groups of tests that follow from their fixtures."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.support import faster_moto
from tests.support.builders import RETENTION
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table, table_on_moto
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.local import emulator, instance
from tidemill.local.lifecycle import App, deployed
from tidemill.telemetry.outcome_log import logger

faster_moto.install()

#: The mark of a test that uses the fixture.
MARKS: Final[Mapping[str, pytest.MarkDecorator]] = {
    "app": pytest.mark.e2e,
    "emulated": pytest.mark.emulator,
}
END_TO_END: Final = Path(__file__).parent / "e2e"
#: The group of a test that uses the fixture. The tests of one group run in one process, so that they share one result
#: of the fixture: a deployed app, a build of the asset, templates. Every process may start an emulator of its own.
GROUPS: Final[Mapping[str, str]] = {
    "app": "deployed app",
    "built": "synth",
    "synthesise": "synth",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark and group each test, before pytest-xdist reads the groups and pytest selects by marks."""
    for item in items:
        if item.path.is_relative_to(END_TO_END):
            item.add_marker(pytest.mark.e2e)
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in MARKS:
                item.add_marker(MARKS[fixture])
            if fixture in GROUPS:
                item.add_marker(pytest.mark.xdist_group(GROUPS[fixture]))


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
    """Make the logger while standard output is the session's: it keeps the stream, and a test may close its own."""
    logger()


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

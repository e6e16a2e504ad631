"""What several folders share: a job store on a table of its own, and, once a session, an emulator and the app."""

from collections.abc import Iterator

import pytest

from tests.support.builders import RETENTION
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table, table_on_moto
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.local import emulator, instance
from tidemill.local.lifecycle import App, deployed
from tidemill.telemetry.outcome_log import logger


@pytest.fixture(scope="session")
def app() -> Iterator[App]:
    """Deployed with the real CDK command line when the first test asks for it, and stopped with the session."""
    with deployed() as app:
        yield app


@pytest.fixture(scope="session")
def emulated() -> Iterator[str]:
    """The endpoint of an embedded AWS with nothing on it."""
    with instance.owned() as folder, emulator.tied(folder) as running:
        yield running.endpoint


@pytest.fixture(scope="session", autouse=True)
def _logger() -> None:
    """Made while standard output is the session's: a logger keeps what it finds, and a test may take its own away."""
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

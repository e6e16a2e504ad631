"""The backends of the suite: each is a context that yields a fresh table for one test."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import pytest

from tests.support.builders import fresh_token
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table, client, create_table, table_on_moto
from tests.support.payload_bucket import PayloadBucket
from tests.support.single_job import Clock
from tidemill.application.waiting.release import Releaser
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads

#: They test the engine with a table. The requests that it sends are those of the other files, which run on both.
ON_MOTO_ALONE: Final = frozenset(
    (
        "test_adaptive_limits",
        "test_breaker_faults",
        "test_breaker_probes",
        "test_breakers",
        "test_conflicts",
        "test_crashes",
        "test_release",
        "test_release_faults",
    )
)
EMULATOR: Final = pytest.param("emulator", marks=pytest.mark.emulator)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store_backend" in metafunc.fixturenames:
        alone = metafunc.module.__name__.rpartition(".")[2] in ON_MOTO_ALONE
        metafunc.parametrize("store_backend", ["moto"] if alone else ["moto", EMULATOR], indirect=True)


@pytest.fixture
def store_backend(request: pytest.FixtureRequest) -> AbstractContextManager[Table]:
    if request.param == "moto":
        return table_on_moto()
    return nullcontext(create_table(client("dynamodb", request.getfixturevalue("emulated"))))


@pytest.fixture
def table(store_backend: AbstractContextManager[Table]) -> Iterator[Table]:
    with store_backend as table:
        yield table


@pytest.fixture
def payload_bucket(table: Table) -> PayloadBucket:
    return PayloadBucket(table)


@pytest.fixture
def payloads(client: FaultyClient, table: Table, payload_bucket: PayloadBucket) -> DynamoPayloads:
    return DynamoPayloads(
        client,  # type: ignore[arg-type]  # a proxy
        table=table.name,
        bucket=lambda: Bucket(payload_bucket.client, payload_bucket.name),
        new_token=fresh_token,
    )


@pytest.fixture
def limits(client: FaultyClient, table: Table) -> DynamoLimits:
    return DynamoLimits(client, table=table.name)  # type: ignore[arg-type]  # a proxy


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def releaser(store: DynamoJobStore, limits: DynamoLimits, clock: Clock) -> Releaser:
    return Releaser(store=store, limits=limits, clock=clock)

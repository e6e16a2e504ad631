"""What the suite runs against: each backend is a context that yields a table of the test's own."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest

from local import emulator, instance
from tests.support.tables import Table, client, create_table, table_on_moto


@pytest.fixture(scope="session")
def emulated() -> Iterator[str]:
    """The endpoint of an embedded AWS with nothing on it."""
    with instance.owned() as folder, emulator.tied(folder) as running:
        yield running.endpoint


@pytest.fixture(params=["moto", pytest.param("emulator", marks=pytest.mark.emulator)])
def store_backend(request: pytest.FixtureRequest) -> AbstractContextManager[Table]:
    if request.param == "moto":
        return table_on_moto()
    return nullcontext(create_table(client("dynamodb", request.getfixturevalue("emulated"))))


@pytest.fixture
def table(store_backend: AbstractContextManager[Table]) -> Iterator[Table]:
    with store_backend as table:
        yield table

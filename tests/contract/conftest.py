"""The backends of the suite: each is a context that yields a fresh table for one test."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest

from tests.support.job_tables import Table, client, create_table, table_on_moto


@pytest.fixture(params=["moto", pytest.param("emulator", marks=pytest.mark.emulator)])
def store_backend(request: pytest.FixtureRequest) -> AbstractContextManager[Table]:
    if request.param == "moto":
        return table_on_moto()
    return nullcontext(create_table(client("dynamodb", request.getfixturevalue("emulated"))))


@pytest.fixture
def table(store_backend: AbstractContextManager[Table]) -> Iterator[Table]:
    with store_backend as table:
        yield table

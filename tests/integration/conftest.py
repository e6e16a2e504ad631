"""The functions between moto's DynamoDB and SQS."""

from collections.abc import Iterator

import pytest

from tests.support.deployed_functions import Mill, mill_on
from tests.support.job_tables import Table


@pytest.fixture
def mill(table: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mill]:
    with mill_on(table, monkeypatch) as mill:
        yield mill

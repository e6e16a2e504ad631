"""The functions between moto's DynamoDB and SQS."""

from collections.abc import Iterator

import pytest

from tests.support.mill import Mill, mill_on
from tests.support.tables import Table


@pytest.fixture
def mill(table: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mill]:
    with mill_on(table, monkeypatch) as mill:
        yield mill

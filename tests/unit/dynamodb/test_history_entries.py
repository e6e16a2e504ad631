"""The size of a document, by which its history is cut."""

from typing import Any

import pytest

from tidemill.dynamodb.history_entries import size_bytes


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "aé"}, 3),
        ({"N": "12345"}, 4),
        ({"N": "1200"}, 2),
        ({"BOOL": True}, 1),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"N": "1"}]}, 3 + (1 + 2) + (1 + 2)),
        ({"M": {"by": {"S": "ada"}}}, 3 + (1 + 2 + 3)),
    ],
)
def test_a_value_has_the_size_of_the_documentation(value: dict[str, Any], size: int) -> None:
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    assert size_bytes({"name": value}) == len("name") + size

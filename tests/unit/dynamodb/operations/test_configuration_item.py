"""The history of the runtime configuration is read in whole, in calls as DynamoDB takes them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, Change, RuntimeConfiguration
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.names import CONFIGURATION_KEY

#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
MOST_KEYS = 100


class Client:
    """A configuration of some version, and the changes that led to it. Of a batch, it reads at most `reads` keys."""

    def __init__(self, version: int, *, reads: int = MOST_KEYS) -> None:
        self.items: dict[str, dict[str, Any]] = {}
        self.reads = reads
        self.asked: list[list[str]] = []
        self.consistent: list[bool] = []
        if version:
            self.items[CONFIGURATION_KEY] = {"version": {"N": str(version)}, "document": {"S": json.dumps({"a": 1})}}
        for number in range(1, version + 1):
            name = f"{CONFIGURATION_KEY}#{number}"
            item = {"name": "flags.a", "by": "ada", "reason": "why", "value": str(number)}
            at = round((NOW + number * SECOND).timestamp() * 1000)
            self.items[name] = {key: {"S": value} for key, value in item.items()} | {"at": {"N": str(at)}}
            self.items[name]["pk"] = {"S": name}

    def get_item(self, **request: Any) -> Mapping[str, Any]:
        self.consistent.append(request["ConsistentRead"])
        item = self.items.get(request["Key"]["pk"]["S"])
        return {"Item": item} if item else {}

    def batch_get_item(self, **request: Any) -> Mapping[str, Any]:
        asked = request["RequestItems"]["jobs"]
        assert 1 <= len(asked["Keys"]) <= MOST_KEYS
        self.consistent.append(asked["ConsistentRead"])
        keys = [key["pk"]["S"] for key in asked["Keys"]]
        self.asked.append(keys)
        found = [self.items[key] for key in reversed(keys[: self.reads]) if key in self.items]
        left = asked["Keys"][self.reads :]
        return {"Responses": {"jobs": found}, "UnprocessedKeys": {"jobs": {"Keys": left}} if left else {}}


def store_of(client: Any) -> DynamoConfiguration:
    return DynamoConfiguration(client, table="jobs")


@pytest.mark.parametrize(
    ("version", "reads", "calls"),
    [
        (0, MOST_KEYS, []),
        (1, MOST_KEYS, [1]),
        (99, MOST_KEYS, [99]),
        (100, MOST_KEYS, [100]),
        (101, MOST_KEYS, [100, 1]),
        (230, MOST_KEYS, [100, 100, 30]),
        (3, 2, [3, 1]),
    ],
)
def test_the_history_has_every_change_the_newest_first(version: int, reads: int, calls: list[int]) -> None:
    client = Client(version, reads=reads)

    changes = list(store_of(client).history())

    assert [change.version for change in changes] == [*range(version, 0, -1)]
    assert [len(keys) for keys in client.asked] == calls
    assert all(client.consistent), "a change of a moment ago is in the history"
    assert {key for keys in client.asked for key in keys} <= client.items.keys(), "no key of a change that never was"


def test_a_change_is_read_with_all_its_parts() -> None:
    (change,) = store_of(Client(1)).history()

    assert change == Change(version=1, name="flags.a", at=NOW + SECOND, by="ada", reason="why", value=1)


def test_a_change_that_was_deleted_is_left_out() -> None:
    client = Client(3)
    del client.items[f"{CONFIGURATION_KEY}#2"]

    assert [change.version for change in store_of(client).history()] == [3, 1]


@pytest.mark.parametrize("version", [0, 5])
def test_only_what_acts_on_the_configuration_pays_for_a_consistent_read(version: int) -> None:
    client = Client(version)
    found = NOTHING_SET if version == 0 else RuntimeConfiguration(version=version, document={"a": 1})
    store = store_of(client)

    assert [store.read(), store.acting(), store.read(consistent=True)] == [found] * 3
    assert client.consistent == [False, True, True]

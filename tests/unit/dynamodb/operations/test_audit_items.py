"""The audit log lists every command once, the newest first, and asks no more of a call than DynamoDB takes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, RETENTION, SECOND
from tidemill.application.operations.audit import AuditEntry, Outcome
from tidemill.dynamodb.operations.audit_items import DynamoAuditLog

#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
MOST_KEYS = 100


class Client:
    """The items of the log, and their index. A batch returns at most `reads` items, in another order."""

    def __init__(self, *, reads: int = MOST_KEYS) -> None:
        self.reads = reads
        self.items: dict[str, dict[str, Any]] = {}
        self.calls: list[int] = []

    def put_item(self, **request: Any) -> None:
        self.items[request["Item"]["pk"]["S"]] = request["Item"]

    def update_item(self, **request: Any) -> None:
        values = request["ExpressionAttributeValues"]
        self.items[request["Key"]["pk"]["S"]] |= {name.removeprefix(":"): value for name, value in values.items()}

    def get_paginator(self, _name: str) -> "Client":
        return self

    def paginate(self, **request: Any) -> Iterator[Mapping[str, Any]]:
        values = request["ExpressionAttributeValues"]
        first, last = (int(values[name]["N"]) for name in (":since", ":last"))
        found = [item for item in self.items.values() if first <= int(item["attention_at"]["N"]) <= last]
        found.sort(key=lambda item: int(item["attention_at"]["N"]), reverse=not request["ScanIndexForward"])
        size = request["PaginationConfig"]["PageSize"]
        for start in range(0, len(found), size):
            yield {"Items": [{"pk": item["pk"]} for item in found[start : start + size]]}

    def batch_get_item(self, **request: Any) -> Mapping[str, Any]:
        asked = request["RequestItems"]["jobs"]
        keys = asked["Keys"]
        assert 1 <= len(keys) <= MOST_KEYS
        assert asked["ConsistentRead"], "the index lags: the end of a command may be a moment old"
        self.calls.append(len(keys))
        now, later = keys[: self.reads], keys[self.reads :]
        items = [self.items[key["pk"]["S"]] for key in reversed(now)]
        return {"Responses": {"jobs": items}, "UnprocessedKeys": {"jobs": {"Keys": later}} if later else {}}


def log_of(client: Any) -> DynamoAuditLog:
    return DynamoAuditLog(client, table="jobs", retention=RETENTION)


def entry(name: str, began_at: datetime) -> AuditEntry:
    return AuditEntry(id=name, command="redrive", began_at=began_at, by="ada", reason="fixed", options={"all": True})


def names(entries: Iterator[AuditEntry]) -> Sequence[str]:
    return [each.id for each in entries]


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ({}, "dcba"),
        ({"since": NOW}, "dcb"),
        ({"since": NOW + MILLISECOND}, "d"),
        ({"before": NOW}, "a"),
        ({"before": NOW + MILLISECOND}, "cba"),
        ({"since": NOW, "before": NOW + SECOND}, "cb"),
        ({"since": NOW, "before": NOW + SECOND + MILLISECOND}, "dcb"),
    ],
    ids=str,
)
def test_commands_are_listed_from_one_time_to_before_another(bounds: dict[str, datetime], found: str) -> None:
    """If two began at the same time, the later name comes first."""
    log = log_of(Client())
    for name, at in (("a", NOW - SECOND), ("b", NOW), ("c", NOW), ("d", NOW + SECOND)):
        log.begin(entry(name, at))

    assert names(log.entries(**bounds)) == [*found]


@pytest.mark.parametrize(("reads", "calls"), [(MOST_KEYS, [100, 100, 30]), (60, [100, 40, 100, 40, 30])])
def test_a_long_log_is_read_in_batches_and_what_a_busy_table_left_is_read_again(reads: int, calls: list[int]) -> None:
    client = Client(reads=reads)
    log = log_of(client)
    for number in range(230):
        log.begin(entry(f"{number:03}", NOW + number * SECOND))

    assert names(log.entries()) == [f"{number:03}" for number in reversed(range(230))]
    assert client.calls == calls


def test_a_command_is_read_as_it_was_written() -> None:
    client = Client()
    log = log_of(client)
    log.begin(entry("a", NOW))
    (begun,) = log.entries()
    log.end(begun, at=NOW + SECOND, outcome=Outcome.FAILED, counts={"redriven": 3})
    (ended,) = log.entries()

    assert begun == entry("a", NOW)
    assert (ended.ended_at, ended.outcome, ended.counts) == (NOW + SECOND, Outcome.FAILED, {"redriven": 3})
    (item,) = client.items.values()
    kept = timedelta(seconds=int(item["expires_at"]["N"]) - NOW.timestamp())
    assert RETENTION <= kept < RETENTION + SECOND

"""Counts the calls of a DynamoDB client on moto, with the units that DynamoDB would charge for them and the bytes read.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
"""

import json
import math
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from tests.support.job_tables import Table
from tidemill.aws.clients import Item
from tidemill.dynamodb.history_entries import size_bytes
from tidemill.names import ATTENTION_KEY, ATTENTION_SORT_KEY, JOB_KEY, LISTING_KEY

_WRITE_UNIT: Final = 1024
_READ_UNIT: Final = 4096
_SINGLE_WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
#: The attributes that an index entry consists of, besides the key of the table.
_INDEXES: Final = ((ATTENTION_KEY, ATTENTION_SORT_KEY), (LISTING_KEY,))


class CapacityMeter:
    """What was used since the last `clear`. Of one thread or of several that write different items."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._own = threading.local()
        self._lock = threading.Lock()
        self.calls: Counter[str] = Counter()
        self.write_units = 0
        self.index_write_units = 0
        self.read_units = 0.0
        self.bytes_read = 0

    def clear(self) -> None:
        with self._lock:
            self.calls.clear()
            self.write_units = self.index_write_units = self.bytes_read = 0
            self.read_units = 0.0

    def before(self, event_name: str, params: Mapping[str, Any], **_rest: Any) -> None:
        if self._of_test(event_name):
            return
        self._own.request = request = json.loads(params["body"])
        self._own.images = {key: self._look(key) for key in _keys(_operation(event_name), request)}

    def after(self, event_name: str, http_response: Any, parsed: Mapping[str, Any], **_rest: Any) -> None:
        if self._of_test(event_name):
            return
        operation = _operation(event_name)
        images = [(before, self._look(key)) for key, before in self._own.images.items()]
        with self._lock:
            self.calls[operation] += 1
            self.bytes_read += len(http_response.content)
            factor = 2 if operation == "TransactWriteItems" else 1
            self.write_units += sum(factor * _units(_WRITE_UNIT, max(map(_size, pair))) for pair in images)
            self.index_write_units += sum(_index_units(*pair) for pair in images)
            self.read_units += _read_units(operation, self._own.request, parsed)

    def _of_test(self, event_name: str) -> bool:
        """The looks of this meter, and the reads of the stream's name with which a test passes the stream on."""
        return getattr(self._own, "looking", False) or _operation(event_name) == "DescribeTable"

    def _look(self, key: str) -> Item:
        self._own.looking = True
        try:
            found = self._table.client.get_item(TableName=self._table.name, Key={JOB_KEY: {"S": key}})
        finally:
            self._own.looking = False
        return found.get("Item", {})


@contextmanager
def metered(table: Table) -> Iterator[CapacityMeter]:
    meter = CapacityMeter(table)
    events = table.client.meta.events
    events.register("before-call.dynamodb", meter.before)
    events.register("after-call.dynamodb", meter.after)
    try:
        yield meter
    finally:
        events.unregister("before-call.dynamodb", meter.before)
        events.unregister("after-call.dynamodb", meter.after)


def _operation(event_name: str) -> str:
    return event_name.rpartition(".")[2]


def _keys(operation: str, request: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of the items that the request writes or whose condition it checks."""
    if operation in _SINGLE_WRITES:
        yield _key(request)
    if operation == "TransactWriteItems":
        for entry in request["TransactItems"]:
            ((_, part),) = entry.items()
            yield _key(part)


def _key(part: Mapping[str, Any]) -> str:
    return str((part.get("Key") or part["Item"])[JOB_KEY]["S"])


def _read_units(operation: str, request: Mapping[str, Any], answer: Mapping[str, Any]) -> float:
    """Half of it where the read may be eventually consistent. An empty answer costs as much as the smallest."""
    if operation == "GetItem":
        return _share(request) * _units(_READ_UNIT, _size(answer.get("Item", {})))
    if operation in {"Query", "Scan"}:
        return _share(request) * _units(_READ_UNIT, sum(map(_size, answer.get("Items", []))))
    if operation == "BatchGetItem":
        ((table, asked),) = request["RequestItems"].items()
        found = answer.get("Responses", {}).get(table, [])
        missing = len(asked["Keys"]) - len(found)
        return _share(asked) * (sum(_units(_READ_UNIT, _size(item)) for item in found) + missing)
    return 0


def _share(request: Mapping[str, Any]) -> float:
    return 1 if request.get("ConsistentRead") else 0.5


def _size(item: Item) -> int:
    return size_bytes(item) if item else 0


def _units(unit_bytes: int, size: int) -> int:
    return max(1, math.ceil(size / unit_bytes))


def _index_units(before: Item, after: Item) -> int:
    """A changed key deletes one entry and puts another."""
    units = 0
    for names in _INDEXES:
        old, new = ([item.get(name) for name in names] if names[0] in item else None for item in (before, after))
        if old != new:
            units += 2 if old and new else 1
    return units

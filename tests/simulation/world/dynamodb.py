"""The simulated DynamoDB. Each operation is atomic in time, except a transaction, which holds its items for a while.

It evaluates the condition, update, filter and key condition expressions exactly as sent.
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/Welcome.html
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from tests.simulation.world.dynamodb_table import Index, Item, Key, Schema, Table, place_of
from tests.simulation.world.errors import ServiceError, invalid
from tests.simulation.world.expressions import Scope, condition
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.task_scheduler import Scheduler
from tests.simulation.world.update_expressions import update

Request = Mapping[str, Any]
Answer = dict[str, Any]

_MOST_BATCH_KEYS: Final = 100
_MOST_BATCH_WRITES: Final = 25
#: Longest time for which an eventually consistent read may return the item before a change.
_LAG_MS: Final = 1000
#: An eventually consistent read costs half a unit for each 4 KB.
_BYTES_PER_UNIT: Final = 8192
_LEAST_UNITS: Final = 0.5
_EQUALITY: Final = re.compile(r"([#\w]+) = (:\w+)")


class DynamoDB:
    """All tables of one world."""

    def __init__(self, scheduler: Scheduler, faults: Faults) -> None:
        self.scheduler = scheduler
        self.faults = faults
        self.tables: dict[str, Table] = {}
        #: Most items in a page. The real limit is 1 MB.
        self.page_items = 1000
        #: Called with the request and the response of each scan.
        self.scan_watchers: list[Callable[[Request, Answer], None]] = []

    def add(self, table: Table) -> None:
        self.tables[table.name] = table

    def table(self, name: str) -> Table:
        # The name may be an ARN.
        try:
            return self.tables[name.rsplit("/", 1)[-1]]
        except KeyError:
            raise ServiceError("ResourceNotFoundException", f"Requested resource not found: {name}") from None

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_ms

    def put_item(self, request: Request) -> Answer:
        table = self.table(request["TableName"])
        key = table.key(request["Item"])
        before = self._item_if_condition_holds(table, key, request)
        table.put(key, table.checked(dict(request["Item"])), now_ms=self.now_ms)
        return _returned(request, before, None)

    def update_item(self, request: Request) -> Answer:
        table = self.table(request["TableName"])
        key = table.key(request["Key"])
        before = self._item_if_condition_holds(table, key, request)
        after = updated(table, before, request)
        table.put(key, table.checked(after), now_ms=self.now_ms)
        return _returned(request, before, after)

    def delete_item(self, request: Request) -> Answer:
        table = self.table(request["TableName"])
        key = table.key(request["Key"])
        before = self._item_if_condition_holds(table, key, request)
        table.put(key, None, now_ms=self.now_ms)
        return _returned(request, before, None)

    def get_item(self, request: Request) -> Answer:
        table = self.table(request["TableName"])
        item = self._read(table, table.key(request["Key"]), consistent=request.get("ConsistentRead", False))
        return {} if item is None else {"Item": dict(item)}

    def batch_get_item(self, request: Request) -> Answer:
        asked = request["RequestItems"]
        if not 0 < sum(len(each["Keys"]) for each in asked.values()) <= _MOST_BATCH_KEYS:
            raise invalid("Too many items requested for the BatchGetItem call")
        responses: dict[str, list[Item]] = {}
        unprocessed: dict[str, Any] = {}
        for name, each in asked.items():
            table = self.table(name)
            keys = [table.key(given) for given in each["Keys"]]
            if len(set(keys)) < len(keys):
                raise invalid("Provided list of item keys contains duplicates")
            read = len(keys)
            if self.faults.occurs(Fault.PARTIAL_BATCH):
                read = self.scheduler.random.randrange(len(keys))
                unprocessed[name] = {**each, "Keys": each["Keys"][read:]}
            found = [self._read(table, key, consistent=each.get("ConsistentRead", False)) for key in keys[:read]]
            items: list[Item] = [dict(item) for item in found if item is not None]
            # In no particular order.
            self.scheduler.random.shuffle(items)
            responses[name] = items
        return {"Responses": responses, "UnprocessedKeys": unprocessed}

    def batch_write_item(self, request: Request) -> Answer:
        writes = [(name, write) for name, writes in request["RequestItems"].items() for write in writes]
        if not 0 < len(writes) <= _MOST_BATCH_WRITES:
            raise invalid("Too many items in the BatchWriteItem request")
        unprocessed: dict[str, list[Any]] = {}
        for name, write in writes:
            if self.faults.occurs(Fault.PARTIAL_BATCH):
                unprocessed.setdefault(name, []).append(write)
            elif "PutRequest" in write:
                self.put_item({"TableName": name, **write["PutRequest"]})
            else:
                self.delete_item({"TableName": name, **write["DeleteRequest"]})
        return {"UnprocessedItems": unprocessed}

    def query(self, request: Request) -> Answer:
        table = self.table(request["TableName"])
        tested = condition(request["KeyConditionExpression"])
        _require_used(request, tested.placeholders)
        rows = (row for row in self._in_order(table, request) if tested.holds(_scope(row[1], request)))
        # One more than a page, which says that it is not the last.
        return self._page(table, request, list(islice(rows, self._page_size(request) + 1)))

    def _in_order(self, table: Table, request: Request) -> Iterator[tuple[Key, Item]]:
        """The rows that a query may match, from its start on."""
        schema, rows = self._source(table, request)
        backward = not request.get("ScanIndexForward", True)
        start = request.get("ExclusiveStartKey")
        after = place_of(schema, table.key(start), start) if start else None
        partition = _partition_of(request, schema)
        if "IndexName" in request and partition is not None:
            return table.indexes[request["IndexName"]].rows(partition, after=after, backward=backward)
        places = sorted((place_of(schema, key, item) for key, item in rows.items()), reverse=backward)
        if after:
            places = [place for place in places if (place < after if backward else place > after)]
        return ((key, rows[key]) for _, key in places)

    def scan(self, request: Request) -> Answer:
        table = self.table(request["TableName"])
        _, rows = self._source(table, request)
        segment, segments = request.get("Segment", 0), request.get("TotalSegments", 1)
        keys = [key for key in sorted(rows) if sum(key[0].encode()) % segments == segment]
        if start := request.get("ExclusiveStartKey"):
            keys = [key for key in keys if key > table.key(start)]
        consistent = request.get("ConsistentRead", False) or rows is not table.items
        read = [(key, rows[key] if consistent else self._read(table, key, consistent=False)) for key in keys]
        answer = self._page(table, request, [(key, item) for key, item in read if item is not None])
        for watch in self.scan_watchers:
            watch(request, answer)
        return answer

    def describe_table(self, request: Request) -> Answer:
        table = self.table(request["TableName"])
        return {"Table": {"TableName": table.name, "ItemCount": len(table.items), "TableStatus": "ACTIVE"}}

    def _source(self, table: Table, request: Request) -> tuple[Schema, Mapping[Key, Item]]:
        if "IndexName" not in request:
            return table.schema, table.items
        if request.get("ConsistentRead"):
            raise invalid("Consistent reads are not supported on global secondary indexes")
        index: Index | None = table.indexes.get(request["IndexName"])
        if index is None:
            raise invalid(f"The table does not have the specified index: {request['IndexName']}")
        index.catch_up(self.now_ms)
        return index.schema, index.shown

    def _page_size(self, request: Request) -> int:
        return min(int(request.get("Limit", self.page_items)), self.page_items)

    def _page(self, table: Table, request: Request, rows: Sequence[tuple[Key, Item]]) -> Answer:
        """One page. It is cut before the filter applies, so it may be empty without being the last."""
        limit = self._page_size(request)
        page, more = rows[:limit], len(rows) > limit
        items = [item for _, item in page]
        if filtered := request.get("FilterExpression"):
            tested = condition(filtered)
            _require_used(request, tested.placeholders | _placeholders(request, "KeyConditionExpression"))
            items = [item for item in items if tested.holds(_scope(item, request))]
        answer: Answer = {"Count": len(items), "ScannedCount": len(page)}
        if request.get("ReturnConsumedCapacity") == "TOTAL":
            units = sum(len(str(item)) for _, item in page) / _BYTES_PER_UNIT
            answer["ConsumedCapacity"] = {"TableName": table.name, "CapacityUnits": max(units, _LEAST_UNITS)}
        if request.get("Select") != "COUNT":
            answer["Items"] = [dict(item) for item in items]
        if more:
            schema = table.indexes[request["IndexName"]].schema.names if "IndexName" in request else ()
            last = page[-1][1]
            answer["LastEvaluatedKey"] = {name: last[name] for name in {*table.schema.names, *schema}}
        return answer

    def _read(self, table: Table, key: Key, *, consistent: bool) -> Item | None:
        item = table.items.get(key)
        if not consistent and key in table.earlier:
            changed_ms, before = table.earlier[key]
            if self.now_ms - changed_ms < _LAG_MS and self.faults.occurs(Fault.INDEX_LAG):
                return before
        return item

    def _item_if_condition_holds(self, table: Table, key: Key, request: Request) -> Item | None:
        """The present item. Raises `ServiceError` unless the condition of a single write holds."""
        if key in table.held:
            raise ServiceError("TransactionConflictException", "Transaction is ongoing for the item")
        item = table.items.get(key)
        if not holds(item, request):
            returned: Answer = {"Item": dict(item)} if item is not None and _wants_old(request) else {}
            raise ServiceError("ConditionalCheckFailedException", "The conditional request failed", **returned)
        return item


def holds(item: Item | None, request: Request) -> bool:
    tested = request.get("ConditionExpression")
    used = _placeholders(request, "UpdateExpression", update)
    if tested is None:
        _require_used(request, used)
        return True
    parsed = condition(tested)
    _require_used(request, parsed.placeholders | used)
    return parsed.holds(_scope(item or {}, request))


def updated(table: Table, before: Item | None, request: Request) -> Item:
    """The item after an update. An update of a missing item creates it."""
    item = before if before is not None else dict(request["Key"])
    if "UpdateExpression" not in request:
        return item
    parsed = update(request["UpdateExpression"])
    if parsed.names(request.get("ExpressionAttributeNames", {})) & {*table.schema.names}:
        raise invalid("Cannot update attribute. This attribute is part of the key")
    return parsed.applied(_scope(item, request))


def _wants_old(request: Request) -> bool:
    return bool(request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD")


def _scope(item: Item, request: Request) -> Scope:
    return Scope(item, request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {}))


def _placeholders(request: Request, expression: str, parse: Callable[[str], Any] = condition) -> frozenset[str]:
    if expression not in request:
        return frozenset()
    found: frozenset[str] = parse(request[expression]).placeholders
    return found


def _require_used(request: Request, used: frozenset[str]) -> None:
    given = {*request.get("ExpressionAttributeNames", {}), *request.get("ExpressionAttributeValues", {})}
    if "FilterExpression" in request:
        used = used | condition(request["FilterExpression"]).placeholders
    if "ProjectionExpression" in request:
        used = used | {part.strip() for part in request["ProjectionExpression"].split(",")}
    if unused := given - used:
        raise invalid(f"Value provided in expression attributes unused in expressions: {', '.join(sorted(unused))}")


def _returned(request: Request, before: Item | None, after: Item | None) -> Answer:
    match request.get("ReturnValues", "NONE"):
        case "ALL_OLD":
            return {} if before is None else {"Attributes": dict(before)}
        case "ALL_NEW":
            return {"Attributes": dict(after or {})}
        case "UPDATED_NEW" | "UPDATED_OLD" as which:
            names = update(request["UpdateExpression"]).names(request.get("ExpressionAttributeNames", {}))
            shown = (after if which == "UPDATED_NEW" else before) or {}
            return {"Attributes": {name: shown[name] for name in names if name in shown}}
        case _:
            return {}


def _partition_of(request: Request, schema: Schema) -> str | None:
    """The value that the key condition gives to the partition key; None if it does not say so in the plain form."""
    names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
    for name, value in _EQUALITY.findall(request["KeyConditionExpression"]):
        if names.get(name, name) == schema.names[0] and value in values:
            return str(values[value].get(schema.types[0], ""))
    return None

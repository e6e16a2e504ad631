"""The tables and queues behind the loopback server, and what a run has cost. No condition is checked: all hold."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from tests.benchmarks.item_size import write_units
from tests.benchmarks.update_expression import Item, updated
from tests.support.partiql_updates import as_insert, as_update
from tidemill.names import (
    ATTENTION_KEY,
    ATTENTION_SORT_KEY,
    CONFIGURATION_KEY,
    JOB_KEY,
    LISTING_KEY,
    LISTING_SORT_KEY,
)

#: The operations that a build calls.
CALLED: Final = (
    *("PutItem", "UpdateItem", "GetItem", "BatchGetItem", "BatchExecuteStatement"),
    *("SendMessage", "SendMessageBatch"),
)
#: The keys of the two indexes of the jobs table, which hold keys only.
_INDEXES: Final = ((ATTENTION_KEY, ATTENTION_SORT_KEY), (LISTING_KEY, LISTING_SORT_KEY))


@dataclass
class State:
    items: dict[str, Item] = field(default_factory=dict)
    #: The job items that were inserted since the last `take`, for the stream.
    inserted: list[Item] = field(default_factory=list)
    #: The bodies of the messages that were sent since the last `take`.
    sent: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def take(self) -> dict[str, Any]:
        taken = {"inserted": self.inserted, "sent": self.sent, "counts": dict(self.counts)}
        self.inserted, self.sent, self.counts = [], [], Counter()
        return taken

    def answer(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Raises `KeyError` for an operation that no build calls."""
        # A process reads it every few seconds, and not for each job.
        of_process = request.get("Key") == {JOB_KEY: {"S": CONFIGURATION_KEY}}
        self.counts["configuration reads" if of_process else f"call {operation}"] += 1
        answers = {
            "PutItem": self._put,
            "UpdateItem": self._update,
            "GetItem": self._get,
            "BatchGetItem": self._get_many,
            "BatchExecuteStatement": self._execute,
            "SendMessage": self._send,
            "SendMessageBatch": self._send_batch,
        }
        return answers[operation](request)

    def _put(self, request: dict[str, Any]) -> dict[str, Any]:
        item = request["Item"]
        name = JOB_KEY if JOB_KEY in item else "id"
        self._write(f"{request['TableName']} {item[name]}", item)
        if "generation" in item:
            self.inserted.append(item)
        return {}

    def _update(self, request: dict[str, Any]) -> dict[str, Any]:
        key = request["Key"]
        place = f"{request['TableName']} {next(iter(key.values()))}"
        after = updated(self.items.get(place, key), request)
        self._write(place, after)
        return {"Attributes": after} if request.get("ReturnValues") == "ALL_NEW" else {}

    def _write(self, place: str, after: Item) -> None:
        before = self.items.get(place)
        self.items[place] = after
        self.counts["table writes"] += 1
        self.counts["write units"] += write_units(before, after)
        for names in _INDEXES:
            old, new = (_entry(image, names) for image in (before or {}, after))
            if old != new:
                # A changed key deletes one entry and puts another.
                self.counts["index write units"] += 2 if old and new else 1

    def _get(self, request: dict[str, Any]) -> dict[str, Any]:
        found = self.items.get(f"{request['TableName']} {next(iter(request['Key'].values()))}")
        if request["Key"] != {JOB_KEY: {"S": CONFIGURATION_KEY}}:
            self.counts["reads"] += 1
        return {"Item": found} if found else {}

    def _get_many(self, request: dict[str, Any]) -> dict[str, Any]:
        ((table, asked),) = request["RequestItems"].items()
        found = [self._get({"TableName": table, "Key": key}) for key in asked["Keys"]]
        return {"Responses": {table: [each["Item"] for each in found]}, "UnprocessedKeys": {}}

    def _execute(self, request: dict[str, Any]) -> dict[str, Any]:
        for each in request["Statements"]:
            if insert := as_insert(each):
                self._put(insert)
            else:
                self._update(as_update(each))
        return {"Responses": [{} for _ in request["Statements"]]}

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        self.sent.append(request["MessageBody"])
        return _receipt(request["MessageBody"])

    def _send_batch(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"Successful": [{"Id": entry["Id"], **self._send(entry)} for entry in request["Entries"]]}


def _entry(item: Item, names: Sequence[str]) -> Sequence[Any] | None:
    """The entry of the item in the index; None for an item without the partition key of the index."""
    return [item.get(name) for name in names] if names[0] in item else None


def _receipt(body: str) -> dict[str, Any]:
    digest = hashlib.md5(body.encode()).hexdigest()
    return {"MessageId": str(UUID(hex=digest)), "MD5OfMessageBody": digest}


def body_of(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()

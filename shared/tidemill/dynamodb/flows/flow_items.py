"""The items of flows in the jobs table: cursors, and nodes that were added. Each clause has a comment with its race."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from tidemill.aws.attribute_values import milliseconds, number, seconds, text
from tidemill.aws.clients import Item, translated
from tidemill.aws.refused_write import refusing_item
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.flows.flow_cursor import Cursor
from tidemill.domain.flows.flows import NODES_KEPT
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State, Write
from tidemill.domain.waiting.signal_answers import waits_for_signal
from tidemill.dynamodb.document import decode
from tidemill.dynamodb.flows import flow_writes
from tidemill.dynamodb.item_keys import prefixed_key
from tidemill.dynamodb.job_reader import JobReader
from tidemill.dynamodb.transactions import RefusedError, own, transact
from tidemill.dynamodb.update_requests import Request
from tidemill.names import JOB_KEY, TTL_ATTRIBUTE
from tidemill.system import ids

#: A tenant never begins with them.
CURSOR_PREFIX: Final = "!flow-cursor#"
ADDITION_PREFIX: Final = "!flow-nodes#"
_READ_AT_ONCE: Final = 100


class DynamoFlows(JobReader):
    """`FlowStore` over one table."""

    def cursors(self, flow: Job, nodes: Sequence[int]) -> Mapping[int, Cursor]:
        keys = {node: _key(CURSOR_PREFIX, flow, node) for node in nodes}
        items = self._read(list(keys.values()))
        found = {node: items.get(key[JOB_KEY]["S"]) for node, key in keys.items()}
        return {node: _cursor(item) if item else Cursor() for node, item in found.items()}

    def move(self, flow: Job, node: int, cursor: Cursor) -> Cursor | None:
        written = replace(cursor, version=ids.new_token())
        request: Request = {
            "Item": _key(CURSOR_PREFIX, flow, node) | _cursor_item(written) | _expires(flow),
            # Another advance has moved the cursor since it was read, and reads the parent at which it stands now.
            "ConditionExpression": "attribute_not_exists(#version)" if cursor.version is None else "#version = :read",
            "ExpressionAttributeNames": {"#version": "version"},
            **({} if cursor.version is None else {"ExpressionAttributeValues": {":read": text(cursor.version)}}),
        }
        try:
            with translated():
                self._client.put_item(TableName=self._table, ReturnValuesOnConditionCheckFailure="ALL_OLD", **request)
        except ClientError as error:
            item = refusing_item(error)
            # The SDK sends the call again after its own success.
            return written if item and item["version"]["S"] == written.version else None
        return written

    def look(self, flow: Job, *, now: datetime) -> None:
        # In another state, a run is to come: it begins after the read that shows this state.
        if flow.state is State.RUNNING or waits_for_signal(flow):
            self._update(flow_writes.look(flow, now=now))

    def added(self, flow: Job, numbers: Sequence[int]) -> Sequence[str]:
        keys = [_key(ADDITION_PREFIX, flow, each) for each in numbers]
        items = self._read(keys)
        return [items[key[JOB_KEY]["S"]]["nodes"]["S"] for key in keys if key[JOB_KEY]["S"] in items]

    def add(self, flow: Job, addition: str, *, now: datetime) -> Job:
        if flow.state.terminal:
            raise WriteRefusedError(Write.ADD_NODES, flow)
        item = _key(ADDITION_PREFIX, flow, flow.flow_state.additions) | {"nodes": text(addition)} | _expires(flow)
        entries = [
            own("Update", flow_writes.count_addition(flow, now=now), table=self._table),
            # The clause of the flow says that no other addition has this number, so this one needs none.
            own("Put", {"Item": item}, table=self._table),
        ]
        try:
            transact(self._client, entries)
        except RefusedError as refused:
            (refusal,) = refused.refusals
            current = decode(refusal.item) if refusal.item else None
            raise WriteRefusedError(Write.ADD_NODES, current) from None
        return replace(flow, flow_state=replace(flow.flow_state, additions=flow.flow_state.additions + 1))

    def _update(self, request: Request) -> None:
        try:
            with translated():
                self._client.update_item(
                    TableName=self._table, ReturnValuesOnConditionCheckFailure="ALL_OLD", **request
                )
        except ClientError as error:
            item = refusing_item(error)
            raise WriteRefusedError(Write.LOOK, decode(item) if item else None) from None

    def _read(self, keys: Sequence[Item]) -> Mapping[str, Item]:
        items = [
            item
            for start in range(0, len(keys), _READ_AT_ONCE)
            for item in self._get_batch(keys[start : start + _READ_AT_ONCE])
        ]
        return {item[JOB_KEY]["S"]: item for item in items}


def _key(prefix: str, flow: Job, number_: int) -> Item:
    """With the time of the flow, since a new flow may replace an expired one under its key."""
    return prefixed_key(prefix, flow.tenant, flow.id, milliseconds(flow.created_at)["N"], number_)


def _expires(flow: Job) -> Item:
    """The expiry of the documents of its nodes: never before that of the flow itself."""
    return {TTL_ATTRIBUTE: seconds(flow.created_at + NODES_KEPT)}


def _cursor_item(cursor: Cursor) -> Item:
    item: dict[str, Any] = {
        "at": number(cursor.at),
        "clean": {"BOOL": cursor.clean},
        "additions": number(cursor.additions),
        "version": text(cursor.version or ""),
    }
    return item | ({} if cursor.by is None else {"by": number(cursor.by)})


def _cursor(item: Item) -> Cursor:
    return Cursor(
        at=int(item["at"]["N"]),
        by=int(item["by"]["N"]) if "by" in item else None,
        clean=bool(item["clean"]["BOOL"]),
        additions=int(item["additions"]["N"]),
        version=item["version"]["S"],
    )

"""Make moto faster, and safe for threads, without changing its answers. The tests spend most of their time in it.

Transactions: to roll back, moto copies the table, with every record of its stream, for each entry of a transaction.
Here it copies the table once for each transaction, and shares the records, which never change.

Attribute values: moto looks for each of the ten possible members of `{"S": "text"}` under several names. Here it reads
a plain dict by the name of the member.

Threads: moto copies items while another thread may change them. Here its DynamoDB serves one call at a time.

The code is in https://github.com/getmoto/moto: `moto/dynamodb/models/__init__.py`, `moto/dynamodb/responses.py` and
`moto/core/serialize.py`.
"""

import copy
import threading
from contextvars import ContextVar
from typing import Any, Final

from moto.core.serialize import ResponseSerializer
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler

#: The copies that the present transaction has made, by the identity of their tables. None outside transactions.
_copies: ContextVar[dict[int, Table] | None] = ContextVar("copies", default=None)
_transact: Final = DynamoDBBackend.transact_write_items
_get_value: Final = ResponseSerializer.get_value
_call_action: Final = DynamoHandler.call_action
_one_call: Final = threading.RLock()


def install() -> None:
    """Replace four methods of moto. A second call changes nothing."""
    setattr(Table, "__deepcopy__", _copied)  # noqa: B010 - moto has no such method
    setattr(DynamoDBBackend, "transact_write_items", _transact_with_one_copy)  # noqa: B010 - mypy sees a method
    setattr(DynamoHandler, "call_action", _alone)  # noqa: B010 - mypy sees a method
    setattr(ResponseSerializer, "get_value", _member)  # noqa: B010 - mypy sees a method


def _alone(self: DynamoHandler) -> Any:
    with _one_call:
        return _call_action(self)


def _transact_with_one_copy(self: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
    before = _copies.set({})
    try:
        _transact(self, transact_items)
    finally:
        _copies.reset(before)


def _copied(self: Table, memo: dict[int, Any]) -> Table:
    copies = _copies.get()
    if copies is not None and id(self) in copies:
        return copies[id(self)]
    copied = copy.copy(self)
    copied.items = copy.deepcopy(self.items, memo)
    if self.stream_shard:
        copied.stream_shard = copy.copy(self.stream_shard)
        copied.stream_shard.table = copied
        copied.stream_shard.items = [*self.stream_shard.items]
    if copies is not None:
        copies[id(self)] = copied
    return copied


def _member(self: ResponseSerializer, value: Any, key: str, shape: Any) -> Any:
    parent = getattr(shape, "parent", None)
    if type(value) is dict and parent is not None and parent.name == "AttributeValue":
        return value.get(key)
    return _get_value(self, value, key, shape)

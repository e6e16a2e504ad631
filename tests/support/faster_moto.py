"""Make moto faster, and safe for threads, without changing its answers. The tests spend most of their time in it.

Transactions: to roll back, moto copies the table, with every record of its stream, for each entry of a transaction.
Here it copies the table once for each transaction, and shares the records, which never change.

Attribute values: moto looks for each of the ten possible members of `{"S": "text"}` under several names. Here the
plain dict is the answer, unless it has bytes.

Names: for each call, moto looks for the methods of the service. Here it looks once.

Long polls: moto waits for a message a second at a time. No test sends one meanwhile, so here it looks once.

Threads: moto copies items while another thread may change them. Here its DynamoDB serves one call at a time.

The code is in https://github.com/getmoto/moto: `moto/dynamodb/models/__init__.py`, `moto/dynamodb/responses.py`,
`moto/sqs/models.py`, `moto/core/responses.py` and `moto/core/serialize.py`.
"""

import copy
import threading
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from moto.core import responses
from moto.core.serialize import BaseJSONSerializer
from moto.core.utils import method_names_from_class
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler
from moto.sqs.models import SQSBackend

#: The copies that the present transaction has made, by the identity of their tables. None outside transactions.
_copies: ContextVar[dict[int, Table] | None] = ContextVar("copies", default=None)
_transact: Final = DynamoDBBackend.transact_write_items
_structure: Final = BaseJSONSerializer._serialize_type_structure
_receive: Final = SQSBackend.receive_message
_method_names: Final = cache(method_names_from_class)
_call_action: Final = DynamoHandler.call_action
_one_call: Final = threading.RLock()


def install() -> None:
    """Replace methods of moto. A second call changes nothing."""
    setattr(Table, "__deepcopy__", _copied)  # noqa: B010 - moto has no such method
    setattr(DynamoDBBackend, "transact_write_items", _transact_with_one_copy)  # noqa: B010 - mypy sees a method
    setattr(DynamoHandler, "call_action", _alone)  # noqa: B010 - mypy sees a method
    setattr(BaseJSONSerializer, "_serialize_type_structure", _attribute_value)  # noqa: B010 - mypy sees a method
    setattr(SQSBackend, "receive_message", _receive_at_once)  # noqa: B010 - mypy sees a method
    setattr(responses, "method_names_from_class", _method_names)  # noqa: B010 - mypy sees a function


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


def _attribute_value(self: BaseJSONSerializer, serialized: Any, value: Any, shape: Any, key: str) -> None:
    if shape.name == "AttributeValue" and not _has_bytes(value):
        self._default_serialize(serialized, value, shape, key)
    else:
        _structure(self, serialized, value, shape, key)


def _has_bytes(value: dict[str, Any]) -> bool:
    ((type_, content),) = value.items()
    if type_ == "M":
        return any(map(_has_bytes, content.values()))
    if type_ == "L":
        return any(map(_has_bytes, content))
    return type_ in {"B", "BS"}


def _receive_at_once(self: SQSBackend, queue: str, count: int, _wait: int, *rest: Any) -> Any:
    return _receive(self, queue, count, 0, *rest)

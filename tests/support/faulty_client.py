"""A DynamoDB client whose writes fail when a test says so, each as a network or a process can fail."""

import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

_WRITES: Final = frozenset({"put_item", "update_item", "delete_item", "transact_write_items"})
_URL: Final = "https://dynamodb.invalid"


class KilledError(BaseException):
    """The process ends here. It is a BaseException, so that no handler of errors catches it."""


class Fault(StrEnum):
    """How a write fails."""

    #: The request never arrives.
    NOT_SENT = "not sent"
    #: DynamoDB applies the write, and the response is lost.
    ANSWER_LOST = "answer lost"
    #: DynamoDB applies the write, the response is lost, and the SDK sends the request again.
    SENT_TWICE = "sent twice"
    #: A transaction holds the item. Nothing is written.
    IN_CONFLICT = "in conflict"
    #: DynamoDB applies the write, the response is lost, and the repeat of the SDK meets a transaction.
    REPEAT_IN_CONFLICT = "repeat in conflict"
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"


class FaultyClient:
    """Passes every call to `client`. Each write takes the next of `faults`; None means no fault."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.Lock()
        self.faults: list[Fault | None] = []
        #: Called with False before each write, and with True after it.
        self.watch: Callable[[bool], None] = lambda _applied: None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name not in _WRITES:
            return method

        def write(**request: Any) -> Any:
            return self._write(method, request)

        return write

    def _write(self, method: Callable[..., Any], request: Mapping[str, Any]) -> Any:
        fault = self.faults.pop(0) if self.faults else None
        if fault is Fault.NOT_SENT:
            raise ConnectTimeoutError(endpoint_url=_URL)
        if fault is Fault.KILLED_BEFORE:
            raise KilledError
        if fault is Fault.IN_CONFLICT:
            raise _conflict()
        # DynamoDB checks a condition and writes in one step. moto takes two, and another thread may run between them.
        with self._lock:
            self.watch(False)
            answer = method(**request)
            self.watch(True)
        if fault is Fault.ANSWER_LOST:
            raise ReadTimeoutError(endpoint_url=_URL)
        if fault is Fault.REPEAT_IN_CONFLICT:
            raise _conflict()
        if fault is Fault.KILLED_AFTER:
            raise KilledError
        return method(**request) if fault is Fault.SENT_TWICE else answer


def _conflict() -> ClientError:
    answer: Any = {"Error": {"Code": "TransactionConflictException", "Message": "Transaction is ongoing for the item"}}
    return ClientError(answer, "UpdateItem")

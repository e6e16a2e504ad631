"""A DynamoDB client whose writes go wrong when a test says so, each in a way that the network knows."""

import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

_WRITES: Final = frozenset({"put_item", "update_item", "delete_item", "transact_write_items"})
_URL: Final = "https://dynamodb.invalid"


class KilledError(BaseException):
    """The process ends here: nothing catches it."""


class Fault(StrEnum):
    """What goes wrong with a write."""

    #: It never arrives.
    NOT_SENT = "not sent"
    #: It is applied, and the answer is lost for good.
    ANSWER_LOST = "answer lost"
    #: It is applied, the answer is lost, and the SDK sends it again.
    SENT_TWICE = "sent twice"
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"


class FaultyClient:
    """Passes every call on; the next write suffers the next of `faults`."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.Lock()
        self.faults: list[Fault | None] = []
        #: Called after each write, and before each with False.
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
        # DynamoDB tests a condition and writes in one step; moto takes two, between which a thread may come.
        with self._lock:
            self.watch(False)
            answer = method(**request)
            self.watch(True)
        if fault is Fault.ANSWER_LOST:
            raise ReadTimeoutError(endpoint_url=_URL)
        if fault is Fault.KILLED_AFTER:
            raise KilledError
        return method(**request) if fault is Fault.SENT_TWICE else answer

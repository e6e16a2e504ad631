"""A cache that holds values up to a total size."""

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """The values that were used last, of at most so many bytes together. Threads may share one."""

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes
        self._values: dict[Hashable, tuple[Value, int]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        with self._lock:
            if (found := self._values.pop(key, None)) is None:
                return None
            # The last one that was used is the last one to go.
            self._values[key] = found
            return found[0]

    def put(self, key: Hashable, value: Value, size_bytes: int) -> None:
        with self._lock:
            _, before = self._values.pop(key, (None, 0))
            self._values[key] = (value, size_bytes)
            self._left += before - size_bytes
            while self._left < 0:
                _, gone = self._values.pop(next(iter(self._values)))
                self._left += gone

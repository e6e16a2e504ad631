"""Values that are made once, on first use, by one of several threads."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Lazy(Generic[Made]):
    """Calls `make` on first use and keeps the result. If `make` raises, the next use calls it again.

    `functools.cache` calls its function once in each of several concurrent threads, and a cold worker starts a whole
    batch of threads at once.
    """

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: list[Made] = []

    def __call__(self) -> Made:
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]

    def forget(self) -> None:
        """Drop the value, so that the next use makes a new one."""
        with self._lock:
            self._made.clear()

"""Things that are made when first asked for, by whichever thread asks first."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Lazy(Generic[Made]):
    """Calls `make` once and keeps what it returns; what it raises is not kept.

    `functools.cache` calls it once in each of the threads that come at the same time, and a cold worker starts with a
    whole batch of them.
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
        """Make it anew when next asked for."""
        with self._lock:
            self._made.clear()

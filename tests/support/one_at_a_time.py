"""A place in which two threads must not be at the same time."""

import threading
import time

#: How long a thread stays, so that another one could come meanwhile. That none comes cannot be awaited.
_MOMENT = 0.003


class OneAtATime:
    def __init__(self) -> None:
        self._here = threading.Lock()

    def visit(self) -> None:
        """Raises `AssertionError` if another thread is here."""
        assert self._here.acquire(blocking=False), "another thread is here"
        time.sleep(_MOMENT)
        self._here.release()

"""The one place where a handler is called: the frames of its traceback begin below it."""

from collections.abc import Callable
from typing import Any

from tidemill.domain.errors import TidemillError


def call_handler(handler: Callable[..., Any], payload: Any, run: Any) -> Any:
    """`payload` and `run` are lists for a batch handler. Raises what the handler raises, as an `Exception`."""
    try:
        return handler(payload, run)
    except Exception:
        raise
    except BaseException as exit_:
        # For example `SystemExit` or a cancelled coroutine. It ends the attempt, not the thread.
        raise TidemillError(f"the handler tried to end its process: {exit_!r}") from exit_

"""The one place where a handler is called: the frames of its traceback begin below it."""

from collections.abc import Callable
from typing import Any

from tidemill.domain.error_groups import as_failure


def call_handler(handler: Callable[..., Any], payload: Any, run: Any) -> Any:
    """`payload` and `run` are lists for a batch handler. Raises what the handler raises, as an `Exception`."""
    try:
        return handler(payload, run)
    except Exception:
        raise
    except BaseException as exit_:
        # For example `SystemExit` or a cancelled coroutine.
        raise as_failure(exit_) from exit_

"""The one place where a handler is called: the frames of its traceback begin below it."""

from collections.abc import Callable
from typing import Any, Final

from tidemill.domain.attempt.error_groups import as_failure

#: In the errors of `signal` and of the signal handlers of `asyncio`: https://docs.python.org/3/library/signal.html
_MAIN_THREAD_ONLY: Final = "only works in main thread"
_ADVICE: Final = "a handler runs in a thread beside it; set signal handlers at the top of the job file"


def call_handler(handler: Callable[..., Any], payload: Any, run: Any) -> Any:
    """`payload` and `run` are lists for a batch handler. Raises what the handler raises, as an `Exception`."""
    try:
        return handler(payload, run)
    except (RuntimeError, ValueError) as error:
        match error.args:
            case (str(text), *rest) if _MAIN_THREAD_ONLY in text:
                error.args = (f"{text}: {_ADVICE}", *rest)
        raise
    except Exception:
        raise
    except BaseException as exit_:
        # For example `SystemExit` or a cancelled coroutine.
        raise as_failure(exit_) from exit_

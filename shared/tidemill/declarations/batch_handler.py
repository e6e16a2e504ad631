"""The declaration of a batch handler: the option `batch` of `job_type`, and the handler that goes with it."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidemill.declarations import declaration_checks as checks
from tidemill.domain.batch_handlers.joint_call import LEAST_ATTEMPTS, MOST_JOBS
from tidemill.domain.errors import DeclarationError
from tidemill.domain.limits.limits import Limit

if TYPE_CHECKING:
    from pydantic import BaseModel


def require_batch(batch: object, *, max_attempts: int, limit: Limit | None) -> None:
    """None is allowed: it leaves the option out. Raises `DeclarationError`."""
    if batch is None:
        return
    checks.require_whole_numbers(batch=batch)
    if not isinstance(batch, int) or not 1 <= batch <= MOST_JOBS:
        raise DeclarationError(f"batch is {batch!r}; it must be from 1 to {MOST_JOBS}")
    if max_attempts < LEAST_ATTEMPTS:
        raise DeclarationError(
            f"batch needs max_attempts of at least {LEAST_ATTEMPTS}, and it is {max_attempts}: a call that kills "
            "its worker costs each of its jobs an attempt, and one payload must end no other job"
        )
    if limit and limit.adaptive:
        raise DeclarationError(
            "batch cannot go with Adaptive: an adaptive concurrency follows the time of single runs, and the jobs of a "
            "call have one time. Use a number, or leave batch out"
        )


def require_handler(handler: Callable[..., Any], *, payload: "type[BaseModel]") -> None:
    """A function of a list of payloads and a list of runs. Raises `DeclarationError`."""
    checks.require_callable("the batch handler", handler, "payloads", "runs")
    first = next(iter(inspect.signature(handler).parameters.values()), None)
    if first and first.annotation in {payload, payload.__name__}:
        raise DeclarationError(
            f"the first parameter of the batch handler is declared as one {payload.__name__}; with batch it gets a "
            f"list: declare it as list[{payload.__name__}]"
        )

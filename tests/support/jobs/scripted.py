"""Types whose handler a test writes. Their retries have no backoff."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict

from tidemill import Lane, Run, job_type


class Anything(BaseModel):
    """Any JSON object. A member `n` must be a number."""

    model_config = ConfigDict(extra="allow")

    n: int = 0


class Script:
    """The handler of the types below. It does nothing until a test replaces it."""

    def __init__(self) -> None:
        self.handler: Callable[[Anything, Run], Any] = lambda _payload, _run: None


script = Script()


@job_type("test.scripted", payload=Anything, max_attempts=3, backoff_seconds=0)
def scripted(payload: Anything, run: Run) -> Any:
    return script.handler(payload, run)


@job_type("test.extra", payload=Anything, importance="sheddable")
def extra(payload: Anything, run: Run) -> Any:
    return script.handler(payload, run)


@job_type("test.later", payload=Anything, importance="deferrable")
def later(payload: Anything, run: Run) -> Any:
    return script.handler(payload, run)


@job_type("test.urgent", payload=Anything, lane=Lane.CRITICAL)
def urgent(payload: Anything, run: Run) -> Any:
    return script.handler(payload, run)


@job_type("test.quick", payload=Anything, max_attempts=3, backoff_seconds=0, timeout_seconds=0.2)
def quick(payload: Anything, run: Run) -> Any:
    return script.handler(payload, run)


@job_type("test.quick_limited", payload=Anything, backoff_seconds=0, timeout_seconds=0.2, concurrency_per_key=1)
def quick_limited(payload: Anything, run: Run) -> Any:
    return script.handler(payload, run)


@job_type("test.noop", payload=Anything)
def noop(_payload: Anything, _run: Run) -> None:
    pass

"""Types whose handler a test writes. Their retries do not wait."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict

from tidemill import Run, job_type


class Anything(BaseModel):
    """Takes all that is JSON, and a number where it is called `n`."""

    model_config = ConfigDict(extra="allow")

    n: int = 0


class Script:
    """What the handler does until a test says otherwise."""

    def __init__(self) -> None:
        self.handler: Callable[[Anything, Run], Any] = lambda _payload, _run: None


script = Script()


@job_type("test.scripted", payload=Anything, max_attempts=3, backoff_seconds=0)
def scripted(payload: Anything, run: Run) -> Any:
    return script.handler(payload, run)


@job_type("test.quick", payload=Anything, max_attempts=3, backoff_seconds=0, timeout_seconds=0.2)
def quick(payload: Anything, run: Run) -> Any:
    return script.handler(payload, run)


@job_type("test.noop", payload=Anything)
def noop(_payload: Anything, _run: Run) -> None:
    pass

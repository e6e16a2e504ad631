"""Waits for a condition, never for a time."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

Value = TypeVar("Value")
INTERVAL_SECONDS: Final = 0.05


class WaitError(Exception):
    """What was waited for did not come in time."""


def wait_until(condition: Callable[[], Value], timeout_seconds: float, what: str) -> Value:
    """The first value of `condition` that is true. Asks at least twice. Raises WaitError."""
    deadline = time.monotonic() + timeout_seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise WaitError(f"waited {timeout_seconds:g} s in vain for {what}")
        time.sleep(INTERVAL_SECONDS)
    return value

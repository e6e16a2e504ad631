"""Waits until a condition holds, never for a fixed time."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

Value = TypeVar("Value")
INTERVAL_SECONDS: Final = 0.05


class WaitError(Exception):
    """The condition did not hold in time."""


def wait_until(condition: Callable[[], Value], timeout_seconds: float, what: str) -> Value:
    """The first true value of `condition`, which is called at least twice. Raises WaitError."""
    deadline = time.monotonic() + timeout_seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise WaitError(f"waited {timeout_seconds:g} s in vain for {what}")
        time.sleep(INTERVAL_SECONDS)
    return value

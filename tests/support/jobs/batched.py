"""A type whose batch handler a test writes. Its retries have no backoff."""

from collections.abc import Callable
from typing import Any

from tests.support.jobs.scripted import Anything
from tidemill import Run, job_type


class BatchScript:
    """The handler of the types below. It returns no result until a test replaces it."""

    def __init__(self) -> None:
        self.handler: Callable[[list[Anything], list[Run]], Any] = lambda payloads, _runs: [None] * len(payloads)
        #: The numbers in the payloads of each call, sorted.
        self.calls: list[list[int]] = []

    def call(self, payloads: list[Anything], runs: list[Run]) -> Any:
        self.calls.append(sorted(payload.n for payload in payloads))
        return self.handler(payloads, runs)


batch_script = BatchScript()


@job_type("test.batched", payload=Anything, max_attempts=3, backoff_seconds=0, batch=100)
def batched(payloads: list[Anything], runs: list[Run]) -> Any:
    return batch_script.call(payloads, runs)


@job_type("test.batched_by_four", payload=Anything, max_attempts=3, backoff_seconds=0, batch=4)
def batched_by_four(payloads: list[Anything], runs: list[Run]) -> Any:
    return batch_script.call(payloads, runs)


@job_type("test.batched_quick", payload=Anything, max_attempts=3, backoff_seconds=0, timeout_seconds=0.2, batch=100)
def batched_quick(payloads: list[Anything], runs: list[Run]) -> Any:
    return batch_script.call(payloads, runs)


@job_type("test.batched_grouped", payload=Anything, max_attempts=3, backoff_seconds=0, batch=100, commit="grouped")
def batched_grouped(payloads: list[Anything], runs: list[Run]) -> Any:
    return batch_script.call(payloads, runs)


@job_type(
    "test.batched_dependent", payload=Anything, max_attempts=3, backoff_seconds=0, batch=100, depends_on=["meter"]
)
def batched_dependent(payloads: list[Anything], runs: list[Run]) -> Any:
    return batch_script.call(payloads, runs)

"""The attempts of one batch of messages whose jobs share calls, and the handler that they call."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tests.support.builders import a_job, a_job_type, a_run, types_of
from tests.support.patience import PATIENCE_SECONDS
from tests.support.single_job import Clock, tools
from tidemill.application.attempt.participant import Called
from tidemill.application.batch_handlers.joint_calls import JointCalls, JointParticipant
from tidemill.application.job_types import JobType
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.in_memory.single_job import OneJob

#: Much longer than what the threads of a test need.
WAIT_SECONDS = float(PATIENCE_SECONDS)


class Handler:
    """Doubles each payload, or does what a test says; and notes its calls."""

    def __init__(self, act: Callable[[list[int]], Any] | None = None) -> None:
        self.calls: list[list[int]] = []
        self._act = act or (lambda payloads: [2 * each for each in payloads])

    def __call__(self, payloads: Any, _runs: Any) -> Any:
        self.calls.append(payloads)
        return self._act(payloads)

    @property
    def sets(self) -> list[list[int]]:
        """The payloads of each call, in no order."""
        return sorted(sorted(each) for each in self.calls)

    def type(self, **changes: Any) -> JobType:
        return replace(a_job_type(self, max_attempts=3), **{"batch": 10} | changes)


def a_called(job_type: JobType, payload: Any, *, begin: Callable[[], None] = lambda: None, attempt: int = 1) -> Called:
    job = a_job(type=job_type.name, attempt=attempt)
    return Called(job=job, job_type=job_type, payload=payload, run=a_run(), begin=begin)


class Batch:
    """The participants of a batch of messages, whose attempts run in threads of their own."""

    def __init__(self, participants: int, **changes: Any) -> None:
        self.scopes: list[int] = []
        self.pauses: list[float] = []
        context = replace(
            tools(OneJob(a_job()), types_of(a_job_type()), Clock()),  # type: ignore[arg-type]  # it needs less
            pause=self.pauses.append,
            **changes,
        )
        calls = JointCalls(context, participants=participants, scope=self._scope, longest_wait_seconds=WAIT_SECONDS)
        self.participants = calls.participants

    def _scope(self, jobs: Sequence[Job]) -> AbstractContextManager[None]:
        @contextmanager
        def scope() -> Iterator[None]:
            self.scopes.append(len(jobs))
            yield

        return scope()

    def each(self, act: Callable[[JointParticipant, Any], Any], given: Sequence[Any]) -> list[Any]:
        """What each participant got or raised."""

        def one(participant: JointParticipant, value: Any) -> Any:
            try:
                return act(participant, value)
            except Exception as error:  # noqa: BLE001 - the test looks at it
                return error

        began = time.monotonic()
        with ThreadPoolExecutor(len(given)) as pool:
            ends = list(pool.map(one, self.participants, given))
        assert time.monotonic() - began < WAIT_SECONDS, "one has waited for another that does not come"
        return ends

    def call(self, given: Sequence[Called]) -> list[Any]:
        return self.each(lambda participant, called: participant.call(called), given)

"""What a kind of job is to the use cases: a name, a lane, a policy, a parser and a handler."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.domain.errors import UnknownJobTypeError
from shared.domain.retry import RetryPolicy
from shared.names import Lane


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a handler may know of the run it is in."""

    job_id: str
    tenant: str
    #: Counts from 1.
    attempt: int
    max_attempts: int
    submitted_at: datetime
    #: The run counts as failed from here on, so long work should look at it.
    deadline: datetime
    #: The same in every attempt of the job: hand it to services that take an idempotency key.
    idempotency_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobType:
    """A type of job. Calling it runs the handler, as a test of the handler does."""

    name: str
    lane: Lane
    retry: RetryPolicy
    #: Turns decoded JSON into what the handler takes; raises `InvalidPayloadError`.
    parse: Callable[[Any], Any]
    handler: Callable[[Any, Run], Any]

    def __call__(self, payload: Any, run: Run) -> Any:
        return self.handler(payload, run)


class JobTypes:
    """The job types that this code knows."""

    def __init__(self, job_types: Mapping[str, JobType]) -> None:
        self._job_types = dict(job_types)

    def get(self, name: str) -> JobType:
        """Raises `UnknownJobTypeError`."""
        try:
            return self._job_types[name]
        except KeyError:
            raise UnknownJobTypeError(name, tuple(self._job_types)) from None

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._job_types))

"""What a kind of job is to the use cases: a name, a lane, its policies, a parser and a handler."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tidemill.domain.errors import UnknownJobTypeError
from tidemill.domain.limits import Limit
from tidemill.domain.retry import RetryPolicy
from tidemill.names import Lane

#: Saves a state (JSON), and how far of how much. Raises what `Run.checkpoint` raises.
SaveCheckpoint = Callable[[Any, int | None, int | None], None]


def _save_nothing(_state: Any, _done: int | None, _total: int | None) -> None:
    """A run outside a worker, as in a test of a handler, has nowhere to save."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a handler may know of the run it is in, and what it may tell of it."""

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
    group: str | None = None
    #: Snoozes and continuations so far, and those of the jobs that this one follows; bounded by `max_hops` of the type.
    hops: int = 0
    #: What the last checkpoint or `Continue` of this job saved, in whichever run; None before the first.
    resumed_from: Any = None
    save: SaveCheckpoint = field(default=_save_nothing, repr=False, compare=False)

    def checkpoint(self, state: Any = None, *, done: int | None = None, total: int | None = None) -> None:
        """Save a state to resume from, and how far the job is: one write, which also says that the run is alive.

        `state` is JSON of at most 8 KiB; without one, what was saved before stays. `done` of `total` is what a person
        who watches sees. Call it between steps, and no more often than every few seconds.

        Raises `CancelRequestedError` when somebody asked for the job to end, `LeaseLostError` or `JobTimeoutError` when
        the run is over in any case, and `CheckpointTooLargeError`. Let them through, or clean up and raise them again.
        """
        self.save(state, done, total)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobType:
    """A type of job. Calling it runs the handler, as a test of the handler does."""

    name: str
    lane: Lane
    retry: RetryPolicy
    #: Turns decoded JSON into what the handler takes; raises `InvalidPayloadError`.
    parse: Callable[[Any], Any]
    handler: Callable[[Any, Run], Any]
    #: How long a run may take; None for as long as the lane allows.
    timeout: timedelta | None = None
    #: How long to keep a finished job; None for as long as the stage says.
    retention: timedelta | None = None
    #: Whether a group stands while one of these is dead at its head.
    blocks: bool = False
    #: How much may run for one key, and the key of a parsed payload.
    limit: Limit | None = None
    limit_key: Callable[[Any], str] | None = None
    #: Whether tenants share the limit of a key, as for a service that all of them call.
    limit_spans_tenants: bool = False
    #: One job of the same payload in each such period; None for no such rule.
    unique: timedelta | None = None
    #: When the clock submits one, as EventBridge Scheduler writes it: `rate(1 hour)`, `cron(0 3 * * ? *)`.
    schedule: str | None = None

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

"""A job type as the use cases see it: name, lane, policies, parser and handler; and the `Run` of its handler."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from logging import Logger, LoggerAdapter
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from tidemill.application.event_types import EventSource, EventType
from tidemill.application.run_log import RunLog
from tidemill.domain.breaker import BreakerPolicy
from tidemill.domain.downstream_errors import Classify
from tidemill.domain.errors import JobFileError, UnknownJobTypeError, UnloadedJobTypeError
from tidemill.domain.events import Consumption
from tidemill.domain.limit_key import LimitKey
from tidemill.domain.limits import Limit
from tidemill.domain.retry import RetryPolicy
from tidemill.domain.steps import key_of_step
from tidemill.domain.strain import NO_STRAIN, Importance
from tidemill.domain.type_overrides import NO_OVERRIDES, TypeOverrides
from tidemill.domain.waiting import Line
from tidemill.names import CANARY_TYPE, Lane

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

#: As `Run.step`, with the call of the function.
TakeStep = Callable[[str, "partial[Any]"], Any]

#: Saves a state (JSON), `done` and `total`. Raises what `Run.checkpoint` raises.
SaveCheckpoint = Callable[[Any, int | None, int | None], None]

#: As `Run.flags`.
ReadFlags = Callable[[], Mapping[str, Any]]

#: As `Run.strained`.
ReadLevel = Callable[[], int]


def _no_strain() -> int:
    """For a run outside of a worker."""
    return NO_STRAIN


#: Takes the seconds, if known, and whether the downstream throttled.
Observe = Callable[[float | None, bool], None]


def observe_nothing(_seconds: float | None, _throttled: bool) -> None:  # noqa: FBT001 - `Run.observed` names it
    """For a run whose concurrency does not adapt."""


def _mark_nothing(_name: str) -> None:
    """For a run outside of a worker."""


def _save_nothing(_state: Any, _done: int | None, _total: int | None) -> None:
    """For a run outside of a worker, such as in a test of a handler."""


def _only_call(_name: str, call: "partial[Any]") -> Any:
    """For a run outside of a worker."""
    return call()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run that a handler is in: its facts, and `checkpoint` to report progress."""

    job_id: str
    tenant: str
    #: Counts from 1.
    attempt: int
    max_attempts: int
    submitted_at: datetime
    #: The run counts as failed after this time, so long work should compare it with the present.
    deadline: datetime
    #: The same in every attempt of the job: pass it to services that take an idempotency key.
    idempotency_key: str
    #: The id of the event that the job consumes, or of the job that it follows; None for others. A replay of an event
    #: has a key of its own and the same parent: use this for an effect that one event must have once.
    parent: str | None = None
    group: str | None = None
    #: The id of the flow of which the job is a node.
    flow: str | None = None
    #: Of a node: the results of its parents by their names, in the order of `after`; None for one that failed or was
    #: skipped. Each use reads them from the table, some at a time, so it may raise `StoreUnavailableError`.
    parents: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    #: Snoozes and continuations so far, and those of the jobs that this one follows; bounded by `max_hops` of the type.
    hops: int = 0
    #: The state that the last checkpoint or `Continue` of this job saved, in any run; None before the first.
    resumed_from: Any = None
    #: The data of each signal that the job has got, by name: see `signal`.
    signals: Mapping[str, Any] = field(default_factory=dict)
    #: The signal of the last `WaitFor` or `MissingInput`; None if the job has not waited for one.
    waited_for: str | None = None
    #: The W3C trace context of the submission, for calls of other services; None if the caller sent none.
    traceparent: str | None = None
    #: A logger of the standard library. Its lines carry the fields of the job, also from threads of the handler.
    log: "LoggerAdapter[Logger]" = field(default_factory=lambda: RunLog({}), repr=False, compare=False)
    save: SaveCheckpoint = field(default=_save_nothing, repr=False, compare=False)
    read_flags: ReadFlags = field(default=dict, repr=False, compare=False)
    observe: Observe = field(default=observe_nothing, repr=False, compare=False)
    read_strain: ReadLevel = field(default=_no_strain, repr=False, compare=False)
    mark_skipped: Callable[[str], None] = field(default=_mark_nothing, repr=False, compare=False)
    take_step: TakeStep = field(default=_only_call, repr=False, compare=False)

    @property
    def flags(self) -> Mapping[str, Any]:
        """The flags of the runtime configuration, by name, without those whose end has passed: JSON values.

        An operator sets one with `tidemill config set flags.NAME VALUE`. Each use may read them anew, and a value is at
        most 5 seconds old. If they cannot be read, it returns the last known ones.
        """
        return self.read_flags()

    def observed(self, seconds: float | None = None, *, throttled: bool = False) -> None:
        """Report a call of the downstream, for a type whose concurrency adapts. Other types ignore it.

        The slowest reported call counts instead of the time of the whole handler. `throttled` says that the downstream
        asked for fewer calls. Raises `ValueError` for a time below 0.
        """
        self.observe(seconds, throttled)

    def signal(self, name: str) -> Any:
        """The data (JSON) of the signal of that name, as it was when the run began; None if none had come.

        Data may be null: use `name in run.signals` to tell the two apart.
        """
        return self.signals.get(name)

    @property
    def timed_out(self) -> bool:
        """Whether the job last waited for a signal that has not come."""
        return self.waited_for is not None and self.waited_for not in self.signals

    @property
    def strained(self) -> int:
        """The level of strain, from 0 for none to 3; at most 5 seconds old.

        A handler may take a cheaper path: `if run.strained: …`. An operator sets it with `tidemill config set
        strain.level 2`, and in a stage with `foreground_target_seconds` the governor does. The higher one counts.
        """
        return self.read_strain()

    def skipped(self, name: str) -> None:
        """Mark the success of this run: it skipped this optional work, for example because of `strained`.

        The type names the job type that makes up for it in `backfill`. An operator submits those jobs with `tidemill
        backfill`. A run that does not succeed leaves no mark. Raises `ValueError` for a name that is not in `backfill`.
        """
        self.mark_skipped(name)

    def step(
        self, name: str, function: Callable[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Call the function and record its result with one write. A later run returns the result without the call.

        The result is JSON, or what the return annotation of the function says and pydantic can turn into JSON, of at
        most 8 KiB. A crash before the record calls the function again: give its effect `step_key(name)`. Each run asks
        for the same steps in the same order, one after another; a name is 1 to 32 characters of a-z, 0-9, '_', '.'
        and '-'.

        Raises what the function raises, and what `checkpoint` raises; `StepError` for a wrong name or result, and
        `StepsChangedError` if the recorded steps are not the first that this run asks for. These two end the job.
        """
        result: Result = self.take_step(name, partial(function, *args, **kwargs))
        return result

    def step_key(self, name: str) -> str:
        """The same in every attempt of the step: pass it to services that take an idempotency key."""
        return key_of_step(self.idempotency_key, name)

    def checkpoint(self, state: Any = None, *, done: int | None = None, total: int | None = None) -> None:
        """Save a state to resume from, and the progress of the job, with one write.

        `state` is JSON of at most 8 KiB; None keeps the state that was saved before. `GET /jobs/{id}` and `tidemill
        watch` show `done` and `total`, which are whole numbers. Call it between steps, and no more often than every few
        seconds.

        Raises `CancelRequestedError` when a cancel was requested, `LeaseLostError` or `JobTimeoutError` when the run
        has ended already, and `CheckpointTooLargeError`. Let them through, or clean up and raise them again.
        """
        self.save(state, done, total)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobType:
    """A job type. Calling it runs the handler; tests of a handler do that."""

    name: str
    lane: Lane
    retry: RetryPolicy
    #: Turns decoded JSON into the handler's payload; raises `InvalidPayloadError`.
    parse: Callable[[Any], Any]
    handler: Callable[[Any, Any], Any]
    #: How long a run may take; None for the limit of the lane.
    timeout: timedelta | None = None
    #: How much its jobs matter under strain.
    importance: Importance = Importance.NORMAL
    #: How old a job may be when a run begins, counted from the time at which it may begin; None for any age.
    max_age: timedelta | None = None
    #: How long to keep a finished job; None for the retention of the stage.
    retention: timedelta | None = None
    #: Whether a dead job of this type blocks its group while it is the head.
    blocks: bool = False
    #: The limit of each limit key, and the function that makes the limit key of a parsed payload.
    limit: Limit | None = None
    limit_key: Callable[[Any], str] | None = None
    #: Whether all tenants share the limit of a limit key, such as for a service that all of them call.
    limit_spans_tenants: bool = False
    #: Whether each lane has the limit for itself.
    limit_per_lane: bool = False
    #: The name of the limit, if other types share it.
    shared_limit: str | None = None
    #: At most one job with the same payload in each such period; None for no bound.
    unique: timedelta | None = None
    #: When the scheduler submits a job, as EventBridge Scheduler writes it: `rate(1 hour)`, `cron(0 3 * * ? *)`.
    schedule: str | None = None
    #: Whether one job makes up for the times of the schedule that fall into a pause.
    catch_up: bool = True
    #: The downstreams that a run calls, and the rules of the type for their errors.
    depends_on: tuple[BreakerPolicy, ...] = ()
    classify: Classify | None = None
    #: By the name of optional work that a run may skip, the job type that makes up for it.
    backfill: Mapping[str, str] = field(default_factory=dict)
    #: Whether a worker may claim and settle several of its jobs in one call.
    grouped: bool = False
    #: The events that make a job of this type each.
    consumes: tuple[Consumption, ...] = ()
    #: The most jobs of one call of a batch handler; None for a handler that gets one job.
    batch: int | None = None
    #: The JSON schema of the payload, for the checks of a synthesis; None without a model.
    schema: Callable[[], dict[str, Any]] | None = None

    def limit_line(self, payload: Any, *, tenant: str, lane: str) -> Line | None:
        """The line of the limit key of this parsed payload; None if the type has no limit."""
        if self.limit is None:
            return None
        key = LimitKey(
            type=self.name if self.shared_limit is None else None,
            shared=self.shared_limit,
            text=self.limit_key(payload) if self.limit_key else "",
            lane=lane if self.limit_per_lane else None,
            # The tenant writes the payload, so without the tenant in the key it could take another tenant's slots.
            tenant=None if self.limit_spans_tenants else tenant,
        )
        return Line.for_limit(str(key))

    def __call__(self, payload: Any, run: Any) -> Any:
        return self.handler(payload, run)

    def overridden(self, overrides: TypeOverrides) -> "JobType":
        """With the values that operators have set."""
        if overrides is NO_OVERRIDES:
            return self
        return replace(
            self,
            retry=overrides.retry(self.retry),
            timeout=overrides.timeout or self.timeout,
            limit=overrides.limit(self.limit),
        )


def measured(names: Iterable[str], most: int) -> Sequence[str]:
    """The types that have metrics of their own: the first ones by name. The canary has its own metric in any case."""
    return sorted(set(names) - {CANARY_TYPE})[:most]


class JobTypes:
    """The job types that this code knows. `faults` are the broken job files, whose types it lacks.

    `events` are the event types by name and version, and `sources` those of other services by name.
    """

    def __init__(
        self,
        job_types: Mapping[str, JobType],
        faults: Sequence[JobFileError] = (),
        events: Mapping[tuple[str, int], EventType] = MappingProxyType({}),
        sources: Mapping[str, EventSource] = MappingProxyType({}),
    ) -> None:
        self._job_types = dict(job_types)
        self.faults = tuple(faults)
        self.events = dict(events)
        self.sources = dict(sources)

    def get(self, name: str) -> JobType:
        """Raises `UnknownJobTypeError`, and `UnloadedJobTypeError` if a broken job file may declare the type."""
        if job_type := self._job_types.get(name):
            return job_type
        if fault := self._fault_of(name):
            raise UnloadedJobTypeError(name, tuple(self._job_types), str(fault))
        raise UnknownJobTypeError(name, tuple(self._job_types))

    def with_shared_limit(self, name: str) -> JobType | None:
        """One of the types that share the limit of this name."""
        return next((each for each in self._job_types.values() if each.shared_limit == name), None)

    def lacks(self, name: str) -> bool:
        """Whether a broken job file may declare this type, and no sound one does."""
        return name not in self._job_types and self._fault_of(name) is not None

    def _fault_of(self, name: str) -> JobFileError | None:
        return next((fault for fault in self.faults if not fault.names or name in fault.names), None)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._job_types))

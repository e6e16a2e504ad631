"""A job type as the use cases see it: name, lane, policies, parser and handler."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from tidemill.application.event_types import EventSource, EventType
from tidemill.domain.admission.strain import Importance
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.breakers.breaker import BreakerPolicy
from tidemill.domain.breakers.downstream_errors import Classify
from tidemill.domain.errors import JobFileError, UnknownJobTypeError, UnloadedJobTypeError
from tidemill.domain.events.events import Consumption
from tidemill.domain.limits.limit_key import LimitKey
from tidemill.domain.limits.limits import Limit
from tidemill.domain.operations.type_overrides import NO_OVERRIDES, TypeOverrides
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line
from tidemill.names import CANARY_TYPE, Lane


class JobType(Struct, frozen=True, kw_only=True):
    """A job type. Calling it runs the handler; tests of a handler do that."""

    name: str
    lane: Lane
    retry: RetryPolicy
    #: Turns JSON text into the handler's payload; raises `InvalidPayloadError`. A validator of the app may change what
    #: it gets, so it gets nothing that is used afterwards.
    parse: Callable[[str], Any]
    handler: Callable[[Any, Any], Any]
    #: Whether the handler gets its payload. The job of a flow reads the graph by itself, node by node.
    reads_payload: bool = True
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
    #: Whether a worker may claim and settle several of its jobs in one call.
    grouped: bool = False
    #: The events that make a job of this type each.
    consumes: tuple[Consumption, ...] = ()
    #: The most jobs of one call of a batch handler; None for a handler that gets one job.
    batch: int | None = None
    #: The JSON schema of the payload, for the checks of a synthesis; None without a model.
    schema: Callable[[], dict[str, Any]] | None = None

    def limit_line(self, payload: Any, *, tenant: str, lane: str) -> Line | None:
        """The line of the limit key of this parsed payload; None if the type has no limit.

        Raises `TypeError` for a key that is not JSON, and what the function of the type raises.
        """
        if self.limit is None:
            return None
        made = self.limit_key(payload) if self.limit_key else ""
        key = LimitKey(
            type=self.name if self.shared_limit is None else None,
            shared=self.shared_limit,
            text=made,
            lane=lane if self.limit_per_lane else None,
            # The tenant writes the payload, so without the tenant in the key it could take another tenant's slots.
            tenant=None if self.limit_spans_tenants else tenant,
        )
        try:
            return Line.for_limit(str(key))
        except TypeError as error:
            raise TypeError(
                f"the key of {self.name!r} returned a {type(made).__name__}; return text, a number or None"
            ) from error

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

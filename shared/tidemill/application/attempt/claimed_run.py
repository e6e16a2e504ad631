"""The run that has claimed a job, as its gates know it: the job, its type with the overrides, and the time it has."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from tidemill.application.attempt.run import Observe, TakeStep, observe_nothing, only_call
from tidemill.application.job_types import JobType
from tidemill.domain.attempt.retry import LARGEST_MAX_HOPS, RetryPolicy
from tidemill.domain.errors import UnknownJobTypeError
from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Limit
from tidemill.domain.waiting.waiting import Line
from tidemill.names import LARGEST_MAX_ATTEMPTS

if TYPE_CHECKING:
    from tidemill.application.attempt.attempt_context import AttemptContext, AttemptHooks

#: Another version of the code may know a type that this one does not, and may allow it the most that any type may have.
UNKNOWN_TYPE_POLICY: Final = RetryPolicy(max_attempts=LARGEST_MAX_ATTEMPTS, max_hops=LARGEST_MAX_HOPS)


class AttemptState(Protocol):
    """What an attempt tells its gates. Another thread may change it at any moment."""

    @property
    def in_handler(self) -> bool:
        """Whether the handler is being called."""

    def has_ended(self) -> bool:
        """Whether the attempt has a report."""

    def require_under_way(self) -> None:
        """Raises `JobTimeoutError` or `LeaseLostError` once the run is over."""

    def written(self, job: Job) -> None:
        """The document may be as `job` from now on."""


class ClaimedRun:
    """Its gates read it, and some of them set a field for those after them, for the handler or for the attempt."""

    def __init__(
        self,
        job: Job,
        context: "AttemptContext",
        hooks: "AttemptHooks",
        *,
        deadline: datetime,
        attempt: AttemptState,
    ) -> None:
        """The overrides of the type at this moment hold until the run has ended."""
        #: The job as claimed. The attempt replaces it after a write of this run.
        self.job = job
        self.context = context
        self.hooks = hooks
        self.attempt = attempt
        #: A time of `AttemptContext.steady`. A gate moves it.
        self.deadline = deadline
        #: The time that the type allows, once the gate of that has passed; None while the time of the lane counts.
        self.type_timeout: timedelta | None = None
        #: The payload as the model of the type parsed it, once its gate has passed.
        self.payload: Any = None
        #: The line that the run asked for a slot, if it did. So it has used its turn in that line.
        self.asked: Line | None = None
        #: What the `Run` of the handler gets, from the gates of the features.
        self.observe: Observe = observe_nothing
        self.take_step: TakeStep = only_call
        self.unknown: UnknownJobTypeError | None = None
        self.declared_limit: Limit | None = None
        self._job_type: JobType | None = None
        try:
            declared = context.job_types.get(job.type)
        except UnknownJobTypeError as unknown:
            self.unknown = unknown
            return
        configuration = context.configuration()
        overrides = configuration.overrides_of(job.type, shares=declared.shared_limit, now=context.clock())
        self._job_type, self.declared_limit = declared.overridden(overrides), declared.limit

    @property
    def job_type(self) -> JobType:
        """The type of the job, once its gate has passed."""
        if self._job_type is None:
            raise AssertionError("the gate of the type comes before this")
        return self._job_type

    @property
    def policy(self) -> RetryPolicy:
        return self._job_type.retry if self._job_type else UNKNOWN_TYPE_POLICY

    @property
    def wall_deadline(self) -> datetime:
        """The deadline by the wall clock of this moment, to compare with other times of that."""
        return self.context.clock() + (self.deadline - self.context.steady())

    def time_allowed(self, lane_timeout: timedelta | None) -> str:
        """How long the run may take, and which setting says so."""
        if self.type_timeout and (lane_timeout is None or self.type_timeout < lane_timeout):
            return f"the {self.type_timeout.total_seconds():g} s that `timeout_seconds` of {self.job.type} allows"
        if lane_timeout:
            return f"the {lane_timeout.total_seconds():g} s that lane {self.job.lane} allows"
        return "its worker had time"

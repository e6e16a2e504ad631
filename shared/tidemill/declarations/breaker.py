"""The circuit breaker of a downstream, for the files in `functions/jobs`.

PAYMENTS = Breaker("payments", failure_threshold=5)

@job_type("order.charge", payload=Order, depends_on=[PAYMENTS])
def charge(order: Order, run: Run) -> None: ...
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar

from tidemill.application.breakers.breaker_use import CURRENT_USE
from tidemill.declarations import declaration_checks as checks
from tidemill.domain.breakers.breaker import BreakerPolicy
from tidemill.domain.errors import DeclarationError
from tidemill.domain.time_constants import SECOND

#: SQS delays a message by so much, and the next probe waits on its lane:
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html
_LONGEST_PROBE_INTERVAL: Final = timedelta(minutes=15)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Breaker:
    """One downstream. All workers share its state, under its name. Declare it once, with its settings.

    It opens when `failure_threshold` calls have failed within `window_seconds`, and these are at least `failure_ratio`
    of the calls. Then one job probes the downstream each `probe_seconds`, until one succeeds.

    Raises `DeclarationError`.
    """

    name: str
    failure_threshold: int = 5
    failure_ratio: float = 0.5
    window_seconds: float = 10.0
    probe_seconds: float = 15.0
    policy: BreakerPolicy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checks.require_downstream(self.name)
        checks.require_whole_numbers(failure_threshold=self.failure_threshold)
        checks.require_number(failure_ratio=self.failure_ratio)
        if self.failure_threshold < 1:
            raise DeclarationError(f"failure_threshold is {self.failure_threshold}; it must be at least 1")
        if not 0 < self.failure_ratio <= 1:
            raise DeclarationError(f"failure_ratio is {self.failure_ratio}; it must be above 0 and at most 1")
        window = checks.duration("window_seconds", self.window_seconds, SECOND)
        interval = checks.duration("probe_seconds", self.probe_seconds, SECOND)
        if interval is None or window is None or interval > _LONGEST_PROBE_INTERVAL:
            raise DeclarationError(f"probe_seconds is {self.probe_seconds}; it must be at most 900")
        policy = BreakerPolicy(
            name=self.name,
            failure_threshold=self.failure_threshold,
            failure_ratio=self.failure_ratio,
            window=window,
            probe_interval=interval,
        )
        object.__setattr__(self, "policy", policy)

    def __enter__(self) -> Self:
        """Raises `BreakerOpenError` while it is open. Let it propagate: the job waits, and keeps its attempt."""
        if use := CURRENT_USE.get():
            use.admit(self.policy)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if use := CURRENT_USE.get():
            use.leave(self.policy, error)

    def call(self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """What the function returns. Raises what it raises, and `BreakerOpenError` instead of the call."""
        with self:
            return function(*args, **kwargs)


def policies(depends_on: Any) -> tuple[BreakerPolicy, ...]:
    """Read the option `depends_on`: names, or breakers with settings. Raises `DeclarationError`."""
    if isinstance(depends_on, str) or not isinstance(depends_on, Iterable):
        raise DeclarationError(f"depends_on is {depends_on!r}; it must be a list of names or breakers")
    breakers = [each if isinstance(each, Breaker) else Breaker(each) for each in depends_on]
    if len({each.name for each in breakers}) < len(breakers):
        raise DeclarationError("depends_on names a downstream twice")
    return tuple(each.policy for each in breakers)

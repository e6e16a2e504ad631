"""Pauses: what an operator has stopped for a time, and which jobs that holds back. Pure."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Rate
from tidemill.domain.time_constants import SECOND
from tidemill.domain.waiting.waiting import Line
from tidemill.names import SCHEDULE_TENANT, Lane

#: How many jobs start each second after the end of a pause, by default and at most. One call of wake a minute releases
#: about 2,000 jobs of a line.
DRAIN_PER_SECOND: Final = 10
LARGEST_DRAIN_PER_SECOND: Final = 100
#: A change of the configuration reaches each function within this time, unless its source says otherwise.
ACTS_WITHIN: Final = timedelta(seconds=10)
#: How long a call of the scheduler may come after its time: a day until Lambda accepts it, then six hours of retries.
#: https://docs.aws.amazon.com/scheduler/latest/APIReference/API_RetryPolicy.html
#: https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html
LATEST_CALL: Final = timedelta(hours=30)
#: The tag of a periodic job that makes up for the times of a pause. No other periodic job has it.
CATCH_UP_TAG: Final = "catch-up"
#: The members of the value of a pause.
_REJECT_NEW: Final = "reject_new"
_RATE: Final = "rate"


class Scope(StrEnum):
    """What a pause may stop."""

    LANE = "lane"
    TYPE = "type"
    TENANT = "tenant"
    GROUP = "group"
    #: The jobs of one limit key, by its name in `tidemill explain` and `tidemill status`.
    LIMIT = "limit"
    #: The schedule of a periodic type. Its jobs go on, except the one that makes up for the times of the pause.
    SCHEDULE = "schedule"


class Target(Struct, frozen=True, kw_only=True):
    """What one pause stops. As text: `type=mail.welcome`, or `group=TENANT NAME`."""

    scope: Scope
    name: str
    #: The tenant of a group, whose name is its tenant's own. Empty for the others.
    tenant: str = ""

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Raises `InvalidSettingError`."""
        scope, _, name = text.partition("=")
        if scope not in set(Scope) or not name:
            raise InvalidSettingError(f"{text!r} names nothing to pause: use {_forms()}")
        tenant = ""
        if scope == Scope.GROUP:
            # No tenant contains a space.
            tenant, _, name = name.partition(" ")
            if not (tenant and name):
                raise InvalidSettingError(f"{text!r} has no tenant: a group belongs to one")
        if scope == Scope.LANE and name not in set(Lane):
            raise InvalidSettingError(f"no lane is called {name!r}: use {', '.join(Lane)}")
        return cls(scope=Scope(scope), name=name, tenant=tenant)

    def __str__(self) -> str:
        return f"{self.scope}={self.tenant} {self.name}" if self.tenant else f"{self.scope}={self.name}"

    @property
    def line(self) -> Line:
        """Where its jobs wait."""
        return Line.for_pause(str(self))

    @property
    def stops_schedules(self) -> bool:
        """Whether it may be the target of a pause that stops a schedule."""
        return self.scope in {Scope.SCHEDULE, Scope.TYPE, Scope.LANE} or self == _ALL_SCHEDULES

    def stops_schedule(self, type_: str, lane: Lane | None) -> bool:
        """Whether its pause stops the schedule of this type, or each of its jobs. None: the lane is not known."""
        names = {Scope.SCHEDULE: type_, Scope.TYPE: type_, Scope.LANE: lane, Scope.TENANT: SCHEDULE_TENANT}
        return names.get(self.scope) == self.name

    def covers(self, job: Job) -> bool:
        """Not for a limit key, which only a worker knows."""
        match self.scope:
            case Scope.LANE:
                return job.lane == self.name
            case Scope.TYPE:
                return job.type == self.name
            case Scope.TENANT:
                return job.tenant == self.name
            case Scope.GROUP:
                return (job.tenant, job.group.key) == (self.tenant, self.name)
            case Scope.SCHEDULE:
                return (job.tenant, job.type) == (SCHEDULE_TENANT, self.name) and CATCH_UP_TAG in job.tags
            case Scope.LIMIT:
                return False


_ALL_SCHEDULES: Final = Target(scope=Scope.TENANT, name=SCHEDULE_TENANT)


class Pause(Struct, frozen=True, kw_only=True):
    """One pause, as its setting records it."""

    target: Target
    since: datetime
    until: datetime | None
    by: str
    reason: str
    #: Whether the HTTP API refuses new jobs meanwhile.
    reject_new: bool = False
    #: How fast its jobs start after its end.
    rate: Rate = Rate(count=DRAIN_PER_SECOND, period=SECOND)

    @property
    def order(self) -> tuple[int, str]:
        """The sort key of pauses: of several that cover a job, the first one holds it."""
        return list(Scope).index(self.target.scope), str(self.target)

    def lasts_to(self, time: datetime) -> bool:
        """Whether it has not ended before."""
        return self.until is None or time <= self.until

    def holds(self, scheduled: datetime, *, acts_within: timedelta = ACTS_WITHIN) -> bool:
        """Whether this time of a schedule falls into the pause. The present time does not matter.

        So all deliveries of one call get the same answer, also those that a function with an older configuration
        handles: a time this early came before each function knew of the pause.
        """
        return self.since + acts_within <= scheduled and (self.until is None or scheduled < self.until)


def first_time(pauses: Collection[Pause], scheduled: datetime, *, acts_within: timedelta) -> datetime:
    """The first time of a schedule that these pauses hold without a gap up to this one; itself if none does.

    Who extends a pause replaces it, and pauses of several targets may overlap: for their jobs these are one pause.
    """
    first = scheduled
    while earlier := [
        begin for pause in pauses if (begin := pause.since + acts_within) < first and pause.lasts_to(first)
    ]:
        first = min(earlier)
    return first


class Drain(Struct, frozen=True, kw_only=True):
    """How the line of a pause empties after its end."""

    line: Line
    rate: Rate
    #: When the pause ends, as far as is known. Jobs may enter the line until a little later.
    ends_at: datetime


def options_of(value: Any) -> Mapping[str, Any]:
    """The arguments of `Pause` in the value of its setting. Raises `InvalidSettingError`."""
    if not isinstance(value, dict):
        raise InvalidSettingError(f"the value of a pause is an object with {_REJECT_NEW} and {_RATE}, or an empty one")
    options: dict[str, Any] = {}
    for name, option in value.items():
        if name == _REJECT_NEW and isinstance(option, bool):
            options["reject_new"] = option
        elif name == _RATE:
            options["rate"] = drain_rate(option)
        else:
            raise InvalidSettingError(f"a pause has no option {name}={option!r}: it has {_REJECT_NEW} and {_RATE}")
    return options


def value_of(*, reject_new: bool, per_second: int | None) -> dict[str, Any]:
    """The value of a setting with these options."""
    return ({_REJECT_NEW: True} if reject_new else {}) | ({_RATE: per_second} if per_second else {})


def drain_rate(per_second: Any) -> Rate:
    """Raises `InvalidSettingError`."""
    whole = isinstance(per_second, int) and not isinstance(per_second, bool)
    if not whole or not 1 <= per_second <= LARGEST_DRAIN_PER_SECOND:
        raise InvalidSettingError(f"the rate {per_second!r} is not a whole number from 1 to {LARGEST_DRAIN_PER_SECOND}")
    return Rate(count=per_second, period=SECOND)


def _forms() -> str:
    return ", ".join(f"{scope}=…" for scope in Scope)

"""A circuit breaker: when calls of a downstream stop, who probes it, and how fast its jobs start again. Pure.

All workers share one record for each downstream. Closed: calls pass, and failures are counted in a window. Open: no
call passes. Half-open: one elected job, the probe, calls the downstream, and its result closes or opens the breaker.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Rate
from tidemill.domain.records import replace
from tidemill.domain.time_constants import EPOCH, SECOND
from tidemill.domain.waiting.pauses import LARGEST_DRAIN_PER_SECOND

#: How long an elected job may take to reach a worker, from the time of its probe.
PROBE_EXPECTED_WITHIN: Final = timedelta(minutes=1)
#: The rate right after the breaker closed, and the time in which it doubles.
FIRST_DRAIN_PER_SECOND: Final = 5
DRAIN_DOUBLES_EVERY: Final = timedelta(seconds=10)
#: A breaker that opens again so soon after it closed has reopened: it is the same outage.
SAME_OUTAGE: Final = timedelta(minutes=5)
#: Failures of one worker or tenant alone open a breaker so long after the first of them, unless others are served.
#: A busy worker reads the breaker every two seconds, and has another one to say that its own calls succeed.
HEARD_WITHIN: Final = timedelta(seconds=3)
#: Workers or tenants whose failures are not those of one.
_ENOUGH: Final = 2


class BreakerState(StrEnum):
    """Whether calls pass. An unknown value raises `ValueError`."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class BreakerPolicy(Struct, frozen=True, kw_only=True):
    """The settings of one breaker. The defaults of threshold and ratio need five failures, and half of the calls."""

    name: str
    #: It opens after so many failures in one window, if they are at least this part of the calls.
    failure_threshold: int = 5
    failure_ratio: float = 0.5
    window: timedelta = timedelta(seconds=10)
    #: The time between two probes.
    probe_interval: timedelta = timedelta(seconds=15)


class Callers(Struct, frozen=True):
    """The workers that made some calls, and the tenants of their jobs. Two of each are enough to know of."""

    workers: frozenset[str] = frozenset()
    tenants: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.workers or self.tenants)

    def more(self, callers: "Callers") -> "Callers":
        """Return the ones of `callers` that are worth adding."""
        pairs = ((self.workers, callers.workers), (self.tenants, callers.tenants))
        return Callers(*(others - known if len(known) < _ENOUGH else frozenset() for known, others in pairs))


class Breaker(Struct, frozen=True, kw_only=True):
    """What the table says of one downstream. A missing item is a closed breaker."""

    name: str
    state: BreakerState = BreakerState.CLOSED
    #: When it got this state; for a half-open one, when it opened. `EPOCH` before its first transition.
    since: datetime = EPOCH
    #: When it opened for the first time in this outage. Only of use after it has reopened.
    outage_from: datetime = EPOCH
    #: Failed calls, and calls that the workers who saw a failure have made, since `window_from`.
    failures: int = 0
    calls: int = 0
    window_from: datetime = EPOCH
    #: Whose calls have failed since `window_from`, and who has been served meanwhile while only one worker or tenant
    #: failed. Empty in the window that a transition begins.
    failing: Callers = Callers()
    serving: Callers = Callers()
    #: The last call that counts for the interval: the one that opened the breaker, or a probe.
    called_at: datetime = EPOCH
    #: The elected job, its time, and when another may take its place. None: the next one is not elected yet.
    probe: tuple[str, str] | None = None
    probe_at: datetime = EPOCH
    probe_until: datetime = EPOCH
    #: The job of the last probe that failed, and when it was submitted.
    failed_probe: tuple[str, str] | None = None
    failed_probe_created: datetime = EPOCH
    #: The probes of this outage that failed, and how often the breaker opened again.
    probes: int = 0
    reopened: int = 0
    #: The interval that the worker which opened it declares.
    probe_interval: timedelta = timedelta(seconds=15)
    #: The last call that was counted as failed, since the SDK may send its write again.
    last_call: str = ""
    #: Class of the failure that was counted last, or of the last failed probe; empty before the first. No message: it
    #: would show a text of one tenant to all others.
    last_error: str = ""
    #: Each transition counts one up.
    version: int = 0

    @property
    def closed(self) -> bool:
        return self.state is BreakerState.CLOSED

    @property
    def outage_since(self) -> datetime:
        """When its outage began, of one that is not closed."""
        return self.outage_from if self.reopened and self.outage_from > EPOCH else self.since

    def may_probe(self, *, now: datetime) -> bool:
        """Whether the job that asks now becomes the probe: it is time, and no probe is under way.

        It need not be the elected one. On a lane that is behind, each elected job would come too late.
        """
        under_way = self.state is BreakerState.HALF_OPEN and now < self.probe_until
        return not self.closed and not under_way and self.next_probe_at(now=now) <= now

    def may_elect(self, *, now: datetime) -> bool:
        """Whether it needs a probe: none is elected, or the elected one has not come in time."""
        return not self.closed and (self.probe is None or self.probe_until <= now)

    def next_probe_at(self, *, now: datetime) -> datetime:
        """A job that was elected and did not call leaves this as it was: the next one follows at once."""
        return max(now, self.called_at + self.probe_interval)


def window_is_over(breaker: Breaker, policy: BreakerPolicy, *, now: datetime) -> bool:
    return breaker.window_from <= now - policy.window


def trips(breaker: Breaker, policy: BreakerPolicy) -> bool:
    """Whether a closed breaker opens, by what has been counted in its window, once `heard_at` has passed."""
    enough = breaker.failures >= policy.failure_threshold and breaker.failures >= policy.failure_ratio * breaker.calls
    failing, serving = breaker.failing, breaker.serving
    one = _others(serving.workers, than=failing.workers) or _others(serving.tenants, than=failing.tenants)
    return breaker.closed and enough and not one


def heard_at(breaker: Breaker, policy: BreakerPolicy) -> datetime:
    """When the callers that are served have had the time to say so."""
    lone = len(breaker.failing.workers) == 1 or len(breaker.failing.tenants) == 1
    return breaker.window_from + min(HEARD_WITHIN, policy.window) if lone else breaker.window_from


def contradiction(
    breaker: Breaker, policy: BreakerPolicy, *, worker: str, served: Mapping[str, datetime], now: datetime
) -> Callers:
    """What a worker can say against the failures of one worker or tenant alone; empty if it has been said.

    `served` has tenants whose calls succeeded in this worker, and when the last one did.
    """
    if not breaker.closed or not breaker.failing or window_is_over(breaker, policy, now=now):
        return Callers()
    tenants = frozenset(tenant for tenant, at in served.items() if at > breaker.window_from)
    workers = frozenset({worker}) if tenants else frozenset[str]()
    failing, serving = breaker.failing, breaker.serving
    return Callers(
        frozenset() if serving.workers else _others(workers, than=failing.workers),
        frozenset() if serving.tenants else _others(tenants, than=failing.tenants),
    )


def _others(serving: frozenset[str], *, than: frozenset[str]) -> frozenset[str]:
    """Those that are served while one alone fails. If several fail, the fault is not that of one."""
    return serving - than if len(than) == 1 else frozenset()


def counts_from(breaker: Breaker, policy: BreakerPolicy, *, now: datetime) -> datetime:
    """A worker that reports a failure now adds its successes if all of them came after this time.

    Soon after the breaker closed, successes from before the first failure of the window do not count. Otherwise a
    service that fails again in the middle of a drain would get as many failures as it had successes.
    """
    begin = now - policy.window
    if not same_outage(breaker, now=now):
        return begin
    return now if window_is_over(breaker, policy, now=now) else breaker.window_from


def same_outage(breaker: Breaker, *, now: datetime) -> bool:
    """Whether a closed breaker has closed so short a time ago that its outage may go on."""
    return now - breaker.since < SAME_OUTAGE


def opened(breaker: Breaker, *, probe_interval: timedelta, now: datetime) -> Breaker:
    """The first probe comes an interval later."""
    again = same_outage(breaker, now=now)
    return replace(
        _next(breaker),
        state=BreakerState.OPEN,
        since=now,
        outage_from=breaker.outage_from if again and breaker.outage_from > EPOCH else now,
        called_at=now,
        probe=None,
        probe_at=now,
        probe_until=EPOCH,
        failed_probe=None,
        failed_probe_created=EPOCH,
        probes=0,
        reopened=breaker.reopened + 1 if again else 0,
        probe_interval=probe_interval,
    )


def elected(breaker: Breaker, job: Job, *, now: datetime) -> Breaker:
    """The job will probe the downstream at `probe_at`."""
    at = breaker.next_probe_at(now=now)
    return replace(
        _next(breaker),
        state=BreakerState.OPEN,
        probe=(job.tenant, job.id),
        probe_at=at,
        probe_until=at + PROBE_EXPECTED_WITHIN,
    )


def probing(breaker: Breaker, job: Job, *, now: datetime, lease_end: datetime) -> Breaker:
    """The probe begins. Until its lease ends, no other job may."""
    return replace(
        _next(breaker),
        state=BreakerState.HALF_OPEN,
        called_at=now,
        probe=(job.tenant, job.id),
        probe_at=now,
        probe_until=lease_end,
    )


def failed(breaker: Breaker, job: Job, *, error: str) -> Breaker:
    """The call of the probe failed. The next one comes an interval after it."""
    return replace(
        given_up(breaker),
        last_error=error,
        failed_probe=(job.tenant, job.id),
        failed_probe_created=job.created_at,
        probes=breaker.probes + 1,
    )


def given_up(breaker: Breaker) -> Breaker:
    """The probe ended without a result, or the elected job did not call the downstream."""
    return replace(_next(breaker), state=BreakerState.OPEN, probe=None, probe_until=EPOCH)


def in_turn(breaker: Breaker, waiting: Sequence[Job]) -> list[Job]:
    """The candidates for the next probe, from the first jobs of the line that wait behind the last one that failed.

    A job whose own call always fails must not keep a breaker open. So each failed probe is followed by that of
    another job, of another tenant if there is one.
    """
    others = [job for job in waiting if (job.tenant, job.id) != breaker.failed_probe] or list(waiting)
    tenant = breaker.failed_probe[0] if breaker.failed_probe else None
    candidates = [job for job in others if job.tenant != tenant] or others
    turn = breaker.probes % max(len(candidates), 1)
    return candidates[turn:] + candidates[:turn]


def closed(breaker: Breaker, *, now: datetime) -> Breaker:
    """The probe succeeded. Failures are counted anew."""
    return replace(
        _next(breaker),
        state=BreakerState.CLOSED,
        since=now,
        failures=0,
        calls=0,
        window_from=EPOCH,
        failing=Callers(),
        serving=Callers(),
        probe=None,
        probe_until=EPOCH,
        failed_probe=None,
        failed_probe_created=EPOCH,
    )


def drain_rate(*, since: datetime, at: datetime) -> Rate:
    """How fast the parked jobs start at that time: it doubles, so that a downstream which recovers is not overrun.

    `since` is when it closed.
    """
    doublings = min((at - since) / DRAIN_DOUBLES_EVERY, 16)
    per_second = FIRST_DRAIN_PER_SECOND * 2 ** max(doublings, 0)
    return Rate(count=min(int(per_second), LARGEST_DRAIN_PER_SECOND), period=SECOND)


def _next(breaker: Breaker) -> Breaker:
    return replace(breaker, version=breaker.version + 1)

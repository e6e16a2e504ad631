"""The use of one limit key, and which parked jobs may follow. Pure.

A slot is held by a run, or reserved for a released job on its way to a worker. Each has an end, so a killed worker or a
lost job holds back others no longer than that. The rate is one number, the theoretical arrival time of the generic cell
rate algorithm: each run that starts moves it on by the interval of the rate, and it may lie ahead of the present by at
most the burst. https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm

A second number, `promised`, gives each job that waits for the rate a time of its own. It orders the jobs; `arrival`
alone decides.
"""

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field

from tidemill.domain.limits.adaptive_limit import Adapted
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.time_constants import EPOCH, MICROSECOND

#: How long a slot waits for the job that it is reserved for, from the time when the job may start.
RESERVED: Final = timedelta(minutes=1)
#: While a line stands, a newcomer whose rate lets it start this soon gets that time and waits on its lane. Any other is
#: parked. Without a line, it may get a time up to `AHEAD`.
NEAR: Final = timedelta(seconds=30)
#: Wake releases the jobs that a rate lets start within this time. It is longer than `NEAR` plus the interval of wake,
#: so a newcomer finds the near times taken while anybody is parked.
AHEAD: Final = timedelta(minutes=2)
#: The most jobs that one release takes. Its write names the slot of each, and perhaps a hundred that are over, and
#: DynamoDB allows 4 KB and 300 operators in an expression:
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MOST_AT_ONCE: Final = 25
#: Lanes delay messages by whole seconds.
_SLACK: Final = timedelta(seconds=1)
_RESERVATION: Final = "+"


class LimitState(Struct, frozen=True, kw_only=True):
    """What the limit item said when it was read."""

    #: The limit that the last run which found it full knew, without overrides; None before that.
    limit: Limit | None = None
    #: The end of each slot in use, by the name of the run or of the reservation; None before the first.
    held: Mapping[str, datetime] | None = field(default_factory=dict)
    arrival: datetime = EPOCH
    promised: datetime = EPOCH
    #: The interval of the rate that moved `arrival` on last. None before that.
    spacing: timedelta | None = None
    #: Whether jobs may be parked.
    marked: bool = False
    #: The tenant and id of the job that was the last to mark it, and when that was.
    last: tuple[str, str] | None = None
    last_at: datetime = EPOCH
    #: The run that entered last, for a limit without slots.
    last_run: str | None = None
    #: The number of an adaptive concurrency; None before its first run.
    adapted: Adapted | None = None
    #: Nothing was read: the first try of a run that knows only its own reservation.
    blind: bool = False

    @property
    def last_tenant(self) -> str | None:
        return self.last[0] if self.last else None

    def over(self, now: datetime) -> list[str]:
        """The slots whose time is over."""
        return [name for name, until in (self.held or {}).items() if until <= now]

    def taken(self, now: datetime) -> set[str]:
        return set(self.held or ()) - set(self.over(now))

    def reservation_for_use(self, job: str) -> str | None:
        """The reservation that a released job may take: its own, or else that of a job which has not come yet.

        Behind a backlog a reservation may end before its job comes. The jobs that do come must find a slot then.
        """
        others = (name for name in self.held or () if name.startswith(_RESERVATION))
        return job if job in (self.held or ()) else next(others, None)

    def under(self, rate: Rate, now: datetime) -> "LimitState":
        """Without the times that only another rate can have set, such as an override that was removed since.

        A slow rate sets times up to a day ahead. They must not outlive it: one run may start at once.
        """
        if self.spacing in {None, interval(rate)}:
            return self
        late = self.arrival > now + burst(rate) + interval(rate)
        far = self.promised > now + AHEAD + interval(rate)
        return replace(
            self,
            arrival=now + burst(rate) if late else self.arrival,
            promised=now if far else self.promised,
        )

    def turns(self, now: datetime, *, leaving: str | None = None) -> list[datetime]:
        """When the next parked jobs may start, one time for each. `leaving` is a slot that is given back with them."""
        if self.limit is None:
            return [now] * MOST_AT_ONCE
        times = [now] * MOST_AT_ONCE
        if rate := self.limit.rate:
            known = self.under(rate, now)
            first = max(now, known.promised, earliest(rate, known.arrival))
            times = [first + number * interval(rate) for number in range(MOST_AT_ONCE)]
            times = [at for at in times if at <= now + AHEAD]
        if (slots := self.limit.slots(self.adapted)) is not None:
            times = times[: max(slots - len(self.taken(now) - {leaving}), 0)]
        return times

    def reservations(self) -> int:
        return sum(name.startswith(_RESERVATION) for name in self.held or ())


class Turn(Struct, frozen=True, kw_only=True):
    """A parked job and when it may start."""

    reservation: str
    due: datetime
    #: Whether an earlier release reserved its slot already, and did not come to release the job.
    reserved: bool = False


def run_name(token: str) -> str:
    """The name of a run's slot. 48 bits tell a hundred slots apart, and keep the item small."""
    return base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()[:6]).decode()


def reservation_name(tenant: str, job_id: str) -> str:
    return _RESERVATION + run_name(f"{tenant}#{job_id}")


def interval(rate: Rate) -> timedelta:
    """Rounded up to a whole microsecond, so that rounding never adds up to one run more."""
    return -(-rate.period // (rate.count * MICROSECOND)) * MICROSECOND


def burst(rate: Rate) -> timedelta:
    """How far ahead of the present the arrival time may lie when one more run starts."""
    return (rate.count - 1) * interval(rate)


def slack(rate: Rate) -> timedelta:
    """How much sooner a job may start whose time has come.

    The one before it may have come a little later after its own time, which moves the arrival time on. Without the
    slack, a job would then lose its time, and the rate a start. It lets no further run start at once.
    """
    return min(_SLACK, interval(rate) / 2)


def earliest(rate: Rate, arrival: datetime) -> datetime:
    """When the rate lets the next run start; long ago for a rate that no run has used."""
    return arrival - burst(rate) if arrival > EPOCH else EPOCH

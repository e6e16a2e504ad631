"""The item of one breaker in memory, which other workers change too, and one worker that uses it."""

from datetime import datetime, timedelta
from typing import Final

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job
from tests.support.configurations import configured
from tidemill.application.breakers.breakers import Breakers
from tidemill.domain.breakers.breaker import Breaker, BreakerPolicy, BreakerState, Callers
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.operations.runtime_configuration import NOTHING_SET
from tidemill.domain.operations.setting import Setting
from tidemill.domain.records import replace

POLICY: Final = BreakerPolicy(name="pay", failure_threshold=2, window=10 * SECOND, probe_interval=20 * SECOND)
JOB: Final = a_job(tenant="t", id="probe", due=NOW + timedelta(minutes=1))
OTHER: Final = a_job(tenant="t", id="other")
OWN: Final = (JOB.tenant, JOB.id)
CLOSED: Final = Breaker(name="pay")
#: Failures that are not those of one worker or tenant.
SEVERAL: Final = Callers(
    frozenset({"worker a", "worker b", JOB.lease.owner or JOB.id}), frozenset({JOB.tenant, "other"})
)
#: No job is elected, and it is time for a probe.
DUE: Final = replace(CLOSED, state=BreakerState.OPEN, since=NOW, called_at=NOW - 15 * SECOND, version=3)
EARLY: Final = replace(DUE, called_at=NOW - 15 * SECOND + MILLISECOND)
ELECTED: Final = replace(DUE, probe=OWN, probe_at=NOW, probe_until=NOW + timedelta(minutes=1))
UNDER_WAY: Final = replace(ELECTED, state=BreakerState.HALF_OPEN, probe_until=NOW + MILLISECOND)
LOST: Final = replace(UNDER_WAY, probe_until=NOW)
COUNTED: Final = replace(CLOSED, failures=2, calls=3, window_from=NOW - 10 * SECOND + MILLISECOND)


class Item:
    """`BreakerStore` of one breaker."""

    def __init__(self, breaker: Breaker = CLOSED) -> None:
        self.breaker = breaker
        #: What lagging copies answer next.
        self.copies: list[Breaker] = []
        #: What other workers have written before each next transition.
        self.faster: list[Breaker] = []
        self.error: Exception | None = None
        self.reads: list[bool] = []
        self.counted: list[tuple[int, str, str, datetime]] = []
        self.tries = 0
        self.contradicted = 0

    def read(self, name: str, *, consistent: bool = False) -> Breaker:
        assert name == "pay"
        self.reads.append(consistent)
        self._respond()
        return self.copies.pop(0) if self.copies and not consistent else self.breaker

    def fail(
        self, seen: Breaker, policy: BreakerPolicy, *, calls: int, call: str, by: Callers, error: str, now: datetime
    ) -> Breaker:
        self._respond()
        assert policy is POLICY
        self.counted.append((calls, call, error, now))
        self.breaker = replace(seen, failures=seen.failures + 1, calls=seen.calls + calls, window_from=NOW)
        self.breaker = replace(self.breaker, failing=_joined(self.breaker.failing, by))
        return self.breaker

    def contradict(self, seen: Breaker, serving: Callers) -> Breaker:
        self._respond()
        assert seen.window_from == self.breaker.window_from
        self.contradicted += 1
        self.breaker = replace(self.breaker, serving=_joined(self.breaker.serving, serving))
        return self.breaker

    def move(self, seen: Breaker, after: Breaker) -> tuple[bool, Breaker]:
        self._respond()
        self.tries += 1
        if self.faster:
            self.breaker = self.faster.pop(0)
            return False, self.breaker
        assert after.version == seen.version + 1
        self.breaker = after
        return True, after

    def _respond(self) -> None:
        if self.error:
            raise self.error


class Worker:
    """One environment, with its clock and its settings."""

    def __init__(self, breaker: Breaker = CLOSED, *, force: str | None = None, forced_at: datetime = NOW) -> None:
        self.now = NOW
        self.pauses: list[float] = []
        self.item = Item(breaker)
        self.moved: list[tuple[Breaker, Breaker]] = []
        setting = Setting(name="breakers.pay", value={"force": force}, at=forced_at, by="eve", reason="")
        settings = configured(setting) if force else NOTHING_SET
        self.breakers = Breakers(
            self.item,
            clock=lambda: self.now,
            pause=self.pauses.append,
            configuration=lambda: settings,
            moved=lambda before, after: self.moved.append((before, after)),
        )

    def fail(self, call: str = "c") -> bool:
        return self.breakers.failed(POLICY, JOB, call=call, error="Boom: x")

    def stop_store(self) -> None:
        self.item.error = StoreUnavailableError("it does not respond")


def _joined(some: Callers, more: Callers) -> Callers:
    return Callers(some.workers | more.workers, some.tenants | more.tenants)

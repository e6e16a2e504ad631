"""Failures of one worker or tenant alone: who contradicts them, who waits for that, and when they open a breaker."""

from collections.abc import Callable
from datetime import datetime, timedelta

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, with_changes
from tests.support.one_breaker import CLOSED, POLICY, Item
from tidemill.application.breakers.breakers import CACHED_FOR, Breakers
from tidemill.domain.breakers.breaker import HEARD_WITHIN, BreakerState
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.records import replace

UNTIL = NOW + timedelta(minutes=1)


class Fleet:
    """Workers of one item, on one clock, which a pause moves on."""

    def __init__(self, workers: int) -> None:
        self.now = NOW
        self.item = Item(CLOSED)
        self.pauses: list[float] = []
        #: What happens ten times during a pause.
        self.meanwhile: Callable[[], object] = lambda: None
        self.workers = [Breakers(self.item, clock=lambda: self.now, pause=self._pause) for _ in range(workers)]

    def call(self, worker: int, tenant: str = "t", *, fails: bool = False) -> bool:
        """Whether the call was admitted."""
        breakers = self.workers[worker]
        job = with_changes(a_job(tenant=tenant), owner=f"{worker} {self.now}")
        admitted = breakers.admits(POLICY, job)
        if admitted and fails:
            breakers.failed(POLICY, job, call=str(len(self.item.counted)), error="Boom: x")
        elif admitted:
            breakers.succeeded(POLICY, job)
        return admitted

    def passes(self, time: timedelta) -> None:
        self.now += time

    def ends(self, worker: int, *, until: datetime = UNTIL) -> None:
        """The run of a failed call."""
        self.workers[worker].hear_others(POLICY, until=until)

    @property
    def state(self) -> BreakerState:
        return self.item.breaker.state

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        for _ in range(10):
            self.passes(timedelta(seconds=seconds) / 10)
            self.meanwhile()


def test_a_failing_worker_opens_nothing_while_another_is_served() -> None:
    fleet = Fleet(2)
    fleet.call(1)
    fleet.call(0, fails=True)
    fleet.call(0, fails=True)
    fleet.meanwhile = lambda: fleet.call(1, "u")

    fleet.ends(0)

    assert (fleet.state, fleet.pauses) == (BreakerState.CLOSED, [3.0])
    for _ in range(5):
        assert fleet.call(0, fails=True)
        fleet.ends(0)
    assert (fleet.state, len(fleet.pauses)) == (BreakerState.CLOSED, 1), "it knows what the other one said"


def test_a_failing_tenant_opens_nothing_while_another_is_served() -> None:
    fleet = Fleet(2)
    fleet.call(0, "bad", fails=True)
    fleet.passes(MILLISECOND)
    fleet.call(0, "good")
    fleet.call(1, "bad", fails=True)
    fleet.ends(1)

    assert (fleet.state, fleet.item.breaker.serving.tenants) == (BreakerState.CLOSED, frozenset({"good"}))


def test_several_workers_and_tenants_that_fail_open_it_at_once() -> None:
    fleet = Fleet(3)
    fleet.call(2)
    fleet.call(0, "a", fails=True)
    fleet.call(1, "b", fails=True)

    assert (fleet.state, fleet.pauses) == (BreakerState.OPEN, [])


def test_the_only_worker_and_tenant_open_it_after_three_seconds_and_its_run_keeps_its_attempt() -> None:
    fleet = Fleet(1)
    fleet.call(0)
    fleet.call(0, fails=True)
    fleet.call(0, fails=True)
    assert fleet.state is BreakerState.CLOSED

    fleet.ends(0)

    assert (fleet.state, fleet.pauses) == (BreakerState.OPEN, [3.0])
    assert fleet.workers[0].blocks("pay")
    fleet.ends(0)
    assert len(fleet.pauses) == 1


def test_a_window_of_two_seconds_is_long_enough_to_open_it() -> None:
    fleet, policy = Fleet(1), replace(POLICY, window=2 * SECOND)
    job = a_job()
    for _ in range(2):
        fleet.workers[0].admits(policy, job)
        fleet.item.fail = lambda seen, _policy, **more: Item.fail(fleet.item, seen, POLICY, **more)  # type: ignore[method-assign]
        fleet.workers[0].failed(policy, job, call=str(fleet.now), error="Boom: x")

    fleet.workers[0].hear_others(policy, until=UNTIL)

    assert (fleet.state, fleet.pauses) == (BreakerState.OPEN, [2.0])


def test_a_run_without_the_time_to_wait_leaves_the_opening_to_the_next_one() -> None:
    fleet = Fleet(1)
    fleet.call(0, fails=True)
    fleet.call(0, fails=True)

    fleet.ends(0, until=NOW + HEARD_WITHIN + SECOND - MILLISECOND)

    assert (fleet.state, fleet.pauses) == (BreakerState.CLOSED, [])
    fleet.passes(HEARD_WITHIN - MILLISECOND)
    assert fleet.call(0), "others may still be heard"
    fleet.passes(MILLISECOND)
    assert not fleet.call(0)
    assert fleet.state is BreakerState.OPEN


def test_below_the_threshold_no_run_waits() -> None:
    fleet = Fleet(1)
    fleet.call(0, fails=True)
    fleet.ends(0)

    assert fleet.pauses == []


def test_a_breaker_that_cannot_be_read_after_the_wait_may_be_opened_by_the_next_run() -> None:
    fleet = Fleet(1)
    fleet.call(0, fails=True)
    fleet.call(0, fails=True)
    fleet.item.error = StoreUnavailableError("down")
    fleet.ends(0)
    assert fleet.state is BreakerState.CLOSED

    fleet.item.error = None
    assert not fleet.call(0)


def test_a_table_that_does_not_take_a_contradiction_changes_nothing_for_its_worker() -> None:
    fleet = Fleet(2)
    fleet.call(0, fails=True)
    fleet.passes(MILLISECOND)
    fleet.call(1, "u")
    assert fleet.item.breaker.serving
    fleet.item.breaker = replace(fleet.item.breaker, serving=CLOSED.serving)
    fleet.passes(CACHED_FOR)
    fleet.workers[1].look("pay")
    fleet.item.error = StoreUnavailableError("down")

    assert fleet.call(1, "u")


def test_while_one_worker_fails_the_others_write_once() -> None:
    fleet = Fleet(3)
    for _ in range(40):
        fleet.call(0, "u", fails=True)
        fleet.passes(50 * MILLISECOND)
        fleet.call(1)
        fleet.call(2)

    assert fleet.state is BreakerState.CLOSED
    assert fleet.item.contradicted == 1

"""When failures of one worker or tenant alone open a breaker, and who contradicts them."""

from datetime import datetime

import pytest

from tests.support.builders import NOW, SECOND
from tidemill.domain.breakers import breaker as rules
from tidemill.domain.breakers.breaker import Breaker, BreakerPolicy, Callers
from tidemill.domain.records import replace

POLICY = BreakerPolicy(name="payments", failure_threshold=3)
FAILING = Breaker(name="payments", failures=3, calls=3, window_from=NOW)
OPEN = rules.opened(FAILING, probe_interval=POLICY.probe_interval, now=NOW)


def callers(workers: str, tenants: str) -> Callers:
    """Each character names one."""
    return Callers(frozenset(workers), frozenset(tenants))


@pytest.mark.parametrize(
    ("failing", "serving", "trips"),
    [
        (callers("a", "t"), Callers(), True),
        # No caller is known yet.
        (Callers(), Callers(), True),
        (callers("a", "tu"), callers("b", ""), False),
        (callers("ab", "t"), callers("", "u"), False),
        (callers("a", "t"), callers("b", "t"), False),
        # They failed as well, later.
        (callers("ab", "tu"), callers("b", "u"), True),
        # Several fail, and others are served: the failures and their share decide.
        (callers("ab", "tu"), callers("c", "v"), True),
        # The worker that fails is served now and then, and counts its own successes.
        (callers("a", "t"), callers("a", "t"), True),
    ],
)
def test_failures_of_one_worker_or_tenant_alone_open_nothing_while_others_are_served(
    failing: Callers, serving: Callers, trips: bool
) -> None:
    assert rules.trips(replace(FAILING, failing=failing, serving=serving), POLICY) is trips


@pytest.mark.parametrize(
    ("failing", "window", "seconds"),
    [
        (callers("ab", "tu"), 10, 0),
        (Callers(), 10, 0),
        (callers("a", "tu"), 10, 3),
        (callers("ab", "t"), 10, 3),
        (callers("a", "t"), 2, 2),
    ],
)
def test_others_have_three_seconds_to_contradict_one_worker_or_tenant(
    failing: Callers, window: int, seconds: int
) -> None:
    policy = replace(POLICY, window=window * SECOND)

    assert rules.heard_at(replace(FAILING, failing=failing), policy) == NOW + seconds * SECOND


@pytest.mark.parametrize(
    ("failing", "serving", "said"),
    [
        (callers("a", "t"), Callers(), callers("b", "u")),
        (callers("b", "t"), Callers(), callers("", "u")),
        (callers("a", "u"), Callers(), callers("b", "")),
        (callers("ac", "tv"), Callers(), Callers()),
        # It has been said.
        (callers("a", "t"), callers("c", "v"), Callers()),
        (callers("a", "t"), callers("c", ""), callers("", "u")),
        (Callers(), Callers(), Callers()),
    ],
)
def test_a_worker_contradicts_failures_of_another_worker_or_tenant_alone(
    failing: Callers, serving: Callers, said: Callers
) -> None:
    seen = replace(FAILING, failing=failing, serving=serving)

    assert contradiction(seen, served_at=NOW + SECOND, now=NOW + SECOND) == said


def test_a_success_before_the_first_failure_of_the_window_contradicts_nothing() -> None:
    seen = replace(FAILING, failing=callers("a", "t"))

    assert not contradiction(seen, served_at=NOW, now=NOW + SECOND)


@pytest.mark.parametrize("breaker", [OPEN, FAILING])
def test_a_breaker_that_is_open_or_whose_window_is_over_needs_no_contradiction(breaker: Breaker) -> None:
    seen = replace(breaker, failing=callers("a", "t"))

    assert not contradiction(seen, served_at=NOW + SECOND, now=NOW + (9 if breaker is OPEN else 10) * SECOND)


def contradiction(seen: Breaker, *, served_at: datetime, now: datetime) -> Callers:
    """The worker b contradicts: it has served a job of the tenant u."""
    return rules.contradiction(seen, POLICY, worker="b", served={"u": served_at}, now=now)


def test_two_callers_are_enough_to_know() -> None:
    assert callers("a", "tu").more(callers("a", "v")) == Callers()
    assert callers("a", "tu").more(callers("b", "v")) == callers("b", "")


def test_a_closed_breaker_forgets_whose_calls_failed() -> None:
    closed = rules.closed(replace(OPEN, failing=callers("a", "t"), serving=callers("b", "u")), now=NOW)

    assert (closed.failing, closed.serving) == (Callers(), Callers())

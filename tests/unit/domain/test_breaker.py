"""The rules of a breaker: when it opens, who probes it, and how fast its jobs start again."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tidemill.domain import breaker as rules
from tidemill.domain.breaker import Breaker, BreakerPolicy, BreakerState

POLICY = BreakerPolicy(name="payments", failure_threshold=3, failure_ratio=0.5, probe_interval=15 * SECOND)
FAILING = Breaker(name="payments", failures=3, calls=3, window_from=NOW)
OPEN = rules.opened(FAILING, probe_interval=POLICY.probe_interval, now=NOW)
JOB = a_job()


@pytest.mark.parametrize(
    ("failures", "calls", "trips"), [(2, 2, False), (3, 3, True), (3, 6, True), (3, 7, False), (4, 7, True)]
)
def test_it_opens_at_the_threshold_if_the_failures_are_enough_of_the_calls(
    failures: int, calls: int, trips: bool
) -> None:
    assert rules.trips(replace(FAILING, failures=failures, calls=calls), POLICY) is trips


def test_an_open_breaker_does_not_open_again() -> None:
    assert not rules.trips(replace(OPEN, failures=9, calls=9), POLICY)


def test_the_first_probe_comes_an_interval_after_the_opening() -> None:
    elected = rules.elected(OPEN, JOB, now=NOW + SECOND)
    assert (elected.probe, elected.probe_at) == ((JOB.tenant, JOB.id), NOW + 15 * SECOND)


def test_the_first_job_that_comes_after_the_interval_probes() -> None:
    elected = rules.elected(OPEN, JOB, now=NOW)
    assert not elected.may_probe(now=NOW + 14 * SECOND)
    assert elected.may_probe(now=elected.probe_at)
    assert elected.may_probe(now=elected.probe_until), "the elected job came late, and another is elected by now"


def test_no_other_job_probes_until_the_lease_of_the_probe_ends() -> None:
    probing = rules.probing(OPEN, JOB, now=NOW + 15 * SECOND, lease_end=NOW + 60 * SECOND)
    assert not probing.may_probe(now=NOW + 59 * SECOND)
    assert probing.may_probe(now=NOW + 60 * SECOND)


def test_an_elected_job_that_does_not_call_costs_no_interval() -> None:
    elected = rules.elected(OPEN, JOB, now=NOW)
    at = elected.probe_at + SECOND
    assert rules.given_up(elected).next_probe_at(now=at) == at


def test_a_failed_probe_is_followed_by_that_of_another_job_and_tenant_if_there_is_one() -> None:
    tenth = [a_job(tenant="a") for _ in range(3)]
    other = a_job(tenant="b")
    failed = rules.failed(rules.probing(OPEN, tenth[0], now=NOW, lease_end=NOW), tenth[0], error="E: x")

    assert rules.in_turn(failed, [*tenth, other]) == [other]
    assert set(rules.in_turn(failed, tenth)) == set(tenth[1:])
    assert rules.in_turn(failed, tenth[:1]) == tenth[:1]
    assert rules.in_turn(failed, []) == []
    assert rules.in_turn(OPEN, tenth) == tenth


def test_each_job_behind_a_failed_probe_has_its_turn() -> None:
    jobs = [a_job() for _ in range(4)]
    failed, first = rules.failed(OPEN, a_job(), error="E: x"), set()
    for _ in jobs:
        first.add(rules.in_turn(failed, jobs)[0])
        failed = replace(failed, probes=failed.probes + 1)
    assert first == set(jobs)


def test_another_job_is_elected_only_if_the_first_has_not_come() -> None:
    elected = rules.elected(OPEN, JOB, now=NOW)
    assert OPEN.may_elect(now=NOW)
    assert not elected.may_elect(now=elected.probe_at)
    assert elected.may_elect(now=elected.probe_until)


def test_a_probe_that_began_is_alone_until_its_lease_ends() -> None:
    probing = rules.probing(OPEN, JOB, now=NOW, lease_end=NOW + 300 * SECOND)
    assert probing.state is BreakerState.HALF_OPEN
    assert not probing.may_elect(now=NOW + 299 * SECOND)


def test_the_next_probe_comes_an_interval_after_one_that_failed() -> None:
    probing = rules.probing(OPEN, JOB, now=NOW + 20 * SECOND, lease_end=NOW + 300 * SECOND)
    failed = rules.failed(probing, JOB, error="E: x")
    assert (failed.state, failed.probe, failed.probes) == (BreakerState.OPEN, None, 1)
    assert failed.next_probe_at(now=NOW + 21 * SECOND) == NOW + 35 * SECOND


def test_a_closed_breaker_counts_anew() -> None:
    closed = rules.closed(OPEN, now=NOW + SECOND)
    assert (closed.state, closed.failures, closed.calls) == (BreakerState.CLOSED, 0, 0)
    assert not rules.trips(closed, POLICY)


@pytest.mark.parametrize(("after", "reopened"), [(timedelta(minutes=4), 1), (timedelta(minutes=6), 0)])
def test_it_has_reopened_if_it_opens_soon_after_it_closed(after: timedelta, reopened: int) -> None:
    closed = rules.closed(OPEN, now=NOW)
    again = rules.opened(closed, probe_interval=SECOND, now=NOW + after)
    assert again.reopened == reopened
    assert again.outage_since == (OPEN.since if reopened else NOW + after)


@pytest.mark.parametrize(
    ("seconds", "per_second"), [(0, 5), (10, 10), (20, 20), (40, 80), (60, 100), (10_000_000, 100)]
)
def test_the_rate_of_the_drain_doubles_up_to_its_bound(seconds: int, per_second: int) -> None:
    assert rules.drain_rate(since=NOW, at=NOW + seconds * SECOND).count == per_second


def test_each_transition_counts_the_version_up() -> None:
    assert [OPEN.version, rules.closed(OPEN, now=NOW).version] == [1, 2]

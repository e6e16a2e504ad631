"""The rules of a breaker: when it opens, who probes it, and how fast its jobs start again."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tidemill.domain.breakers import breaker as rules
from tidemill.domain.breakers.breaker import PROBE_EXPECTED_WITHIN, Breaker, BreakerPolicy, BreakerState
from tidemill.domain.records import replace
from tidemill.domain.time_constants import EPOCH

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
    assert replace(elected, probe=None).may_elect(now=elected.probe_at)


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


def test_the_defaults_of_a_breaker_are_those_that_its_page_names() -> None:
    assert BreakerPolicy(name="payments") == BreakerPolicy(
        name="payments", failure_threshold=5, failure_ratio=0.5, window=10 * SECOND, probe_interval=15 * SECOND
    )


def test_a_downstream_without_an_item_has_a_closed_breaker_that_has_counted_nothing() -> None:
    unused = Breaker(name="payments")

    assert (unused.state, unused.failures, unused.calls, unused.version) == (BreakerState.CLOSED, 0, 0, 0)
    assert (unused.probes, unused.reopened, unused.probe_interval) == (0, 0, 15 * SECOND)
    assert (unused.closed, unused.may_probe(now=NOW), unused.may_elect(now=NOW)) == (True, False, False)


@pytest.mark.parametrize("state", BreakerState)
def test_only_a_breaker_that_is_not_closed_needs_a_probe(state: BreakerState) -> None:
    breaker = replace(OPEN, state=state)
    needs = state is not BreakerState.CLOSED
    later = NOW + 15 * SECOND

    assert (breaker.closed, breaker.may_probe(now=later), breaker.may_elect(now=later)) == (not needs, needs, needs)


@pytest.mark.parametrize(("ago", "over"), [(9, False), (10, True), (11, True)])
def test_the_window_of_the_counts_is_over_after_its_length(ago: int, *, over: bool) -> None:
    assert rules.window_is_over(replace(FAILING, window_from=NOW - ago * SECOND), POLICY, now=NOW) is over


#: A breaker that closed so long ago, whose window began so long ago: since when successes count, in seconds ago.
COUNTS_FROM = [
    # Its outage is over: all of the last window.
    (None, 3, 10),
    (300, 3, 10),
    # It may go on: only since the first failure of the window, and from now on without one.
    (299, 3, 3),
    (299, 9, 9),
    (299, 10, 0),
    (20, 300, 0),
]


@pytest.mark.parametrize(("closed_ago", "window_ago", "counts_ago"), COUNTS_FROM)
def test_soon_after_an_outage_only_successes_since_the_first_failure_count(
    closed_ago: int | None, window_ago: int, counts_ago: int
) -> None:
    since = EPOCH if closed_ago is None else NOW - closed_ago * SECOND
    breaker = Breaker(name="payments", since=since, window_from=NOW - window_ago * SECOND)

    assert rules.counts_from(breaker, POLICY, now=NOW) == NOW - counts_ago * SECOND


#: All that an outage leaves in the record of a breaker.
MARKED = Breaker(
    name="payments",
    state=BreakerState.HALF_OPEN,
    since=NOW - 60 * SECOND,
    outage_from=NOW - 90 * SECOND,
    failures=3,
    calls=4,
    window_from=NOW - 65 * SECOND,
    called_at=NOW - 20 * SECOND,
    probe=("tenant", "probe"),
    probe_at=NOW - 20 * SECOND,
    probe_until=NOW + 40 * SECOND,
    failed_probe=("tenant", "failed"),
    failed_probe_created=NOW - 80 * SECOND,
    probes=2,
    reopened=1,
    probe_interval=15 * SECOND,
    last_call="call",
    last_error="E: first",
    version=7,
)
#: What each transition changes besides the version.
CHANGES: Mapping[str, tuple[Breaker, dict[str, Any]]] = {
    "opened": (
        rules.opened(replace(MARKED, state=BreakerState.CLOSED), probe_interval=20 * SECOND, now=NOW),
        {
            "state": BreakerState.OPEN,
            "since": NOW,
            "called_at": NOW,
            "probe": None,
            "probe_at": NOW,
            "probe_until": EPOCH,
            "failed_probe": None,
            "failed_probe_created": EPOCH,
            "probes": 0,
            "reopened": 2,
            "probe_interval": 20 * SECOND,
        },
    ),
    "elected": (
        rules.elected(MARKED, JOB, now=NOW),
        {
            "state": BreakerState.OPEN,
            "probe": (JOB.tenant, JOB.id),
            "probe_at": NOW,
            "probe_until": NOW + PROBE_EXPECTED_WITHIN,
        },
    ),
    "probing": (
        rules.probing(MARKED, JOB, now=NOW, lease_end=NOW + 9 * SECOND),
        {"called_at": NOW, "probe": (JOB.tenant, JOB.id), "probe_at": NOW, "probe_until": NOW + 9 * SECOND},
    ),
    "failed": (
        rules.failed(MARKED, JOB, error="E: second"),
        {
            "state": BreakerState.OPEN,
            "probe": None,
            "probe_until": EPOCH,
            "failed_probe": (JOB.tenant, JOB.id),
            "failed_probe_created": JOB.created_at,
            "probes": 3,
            "last_error": "E: second",
        },
    ),
    "given up": (rules.given_up(MARKED), {"state": BreakerState.OPEN, "probe": None, "probe_until": EPOCH}),
    "closed": (
        rules.closed(MARKED, now=NOW),
        {
            "state": BreakerState.CLOSED,
            "since": NOW,
            "failures": 0,
            "calls": 0,
            "window_from": EPOCH,
            "probe": None,
            "probe_until": EPOCH,
            "failed_probe": None,
            "failed_probe_created": EPOCH,
        },
    ),
}


@pytest.mark.parametrize("transition", CHANGES)
def test_a_transition_changes_these_parts_of_the_record_and_keeps_the_others(transition: str) -> None:
    after, changes = CHANGES[transition]

    assert after == replace(MARKED, version=8, **changes)


@pytest.mark.parametrize(
    ("since", "outage_from", "expected"),
    [
        (NOW - 60 * SECOND, NOW - 90 * SECOND, NOW - 90 * SECOND),
        (NOW - 60 * SECOND, EPOCH, NOW),
        (NOW - timedelta(minutes=5), NOW - timedelta(minutes=9), NOW),
        (EPOCH, EPOCH, NOW),
    ],
    ids=["again", "again, and the older code wrote no begin", "another outage", "first outage"],
)
def test_an_outage_begins_with_its_first_opening(since: datetime, outage_from: datetime, expected: datetime) -> None:
    closed = replace(MARKED, state=BreakerState.CLOSED, since=since, outage_from=outage_from)
    again = rules.opened(closed, probe_interval=SECOND, now=NOW)

    assert (again.outage_from, again.outage_since) == (expected, expected)


def test_the_begin_of_an_outage_counts_only_for_a_breaker_that_has_reopened() -> None:
    assert replace(MARKED, reopened=0).outage_since == MARKED.since
    assert replace(MARKED, outage_from=EPOCH).outage_since == MARKED.since


def test_the_elected_job_has_a_minute_to_come() -> None:
    elected = rules.elected(OPEN, JOB, now=NOW)

    assert elected.probe_until - elected.probe_at == timedelta(minutes=1)


@pytest.mark.parametrize(("seconds", "per_second"), [(-1, 5), (5, 7), (9, 9), (43, 98), (44, 100)])
def test_the_rate_of_the_drain_grows_all_the_time(seconds: int, per_second: int) -> None:
    rate = rules.drain_rate(since=NOW, at=NOW + seconds * SECOND)

    assert (rate.count, rate.period) == (per_second, SECOND)


#: All of its fields have values of their own.
BUSY = Breaker(
    name="payments",
    state=BreakerState.CLOSED,
    since=NOW - SECOND,
    outage_from=NOW - 9 * SECOND,
    window_from=NOW - 2 * SECOND,
    called_at=NOW - 3 * SECOND,
    probe=("a", "elected"),
    probe_at=NOW - 4 * SECOND,
    probe_until=NOW + 4 * SECOND,
    failed_probe=("a", "failed"),
    failed_probe_created=NOW - 5 * SECOND,
    probe_interval=7 * SECOND,
    failures=3,
    calls=4,
    probes=5,
    reopened=6,
    version=8,
)
UNPROBED: Mapping[str, Any] = {"probe": None, "probe_until": EPOCH}
UNFAILED: Mapping[str, Any] = {"failed_probe": None, "failed_probe_created": EPOCH}
ELECTED: Mapping[str, Any] = {"probe": (JOB.tenant, JOB.id)}


@pytest.mark.parametrize(
    ("after", "arguments", "changes"),
    [
        (
            rules.opened,
            {"probe_interval": SECOND, "now": NOW},
            {
                "state": "open",
                "since": NOW,
                "called_at": NOW,
                "probe_at": NOW,
                "probe_interval": SECOND,
                "probes": 0,
                "reopened": 7,
                **UNPROBED,
                **UNFAILED,
            },
        ),
        (
            rules.elected,
            {"job": JOB, "now": NOW},
            {"state": "open", "probe_at": NOW + 4 * SECOND, "probe_until": NOW + 64 * SECOND, **ELECTED},
        ),
        (
            rules.probing,
            {"job": JOB, "now": NOW, "lease_end": NOW + SECOND},
            {"state": "half-open", "called_at": NOW, "probe_at": NOW, "probe_until": NOW + SECOND, **ELECTED},
        ),
        (
            rules.failed,
            {"job": JOB, "error": "E: x"},
            {
                "state": "open",
                "last_error": "E: x",
                "probes": 6,
                **UNPROBED,
                "failed_probe": (JOB.tenant, JOB.id),
                "failed_probe_created": JOB.created_at,
            },
        ),
        (rules.given_up, {}, {"state": "open", **UNPROBED}),
        (
            rules.closed,
            {"now": NOW},
            {
                "state": "closed",
                "since": NOW,
                "failures": 0,
                "calls": 0,
                "window_from": EPOCH,
                **UNPROBED,
                **UNFAILED,
            },
        ),
    ],
)
def test_a_transition_counts_up_and_leaves_the_rest_as_it_was(
    after: Callable[..., Breaker], arguments: dict[str, Any], changes: dict[str, Any]
) -> None:
    assert after(BUSY, **arguments) == replace(BUSY, version=9, **changes)

"""The breakers of one environment: what it reads and keeps, which calls it admits, and what each result writes."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND
from tests.support.one_breaker import (
    CLOSED,
    COUNTED,
    DUE,
    EARLY,
    ELECTED,
    JOB,
    LOST,
    OTHER,
    OWN,
    POLICY,
    SEVERAL,
    UNDER_WAY,
    Worker,
)
from tidemill.application.breakers.breakers import CACHED_FOR, Breakers
from tidemill.domain.breakers import breaker as rules
from tidemill.domain.breakers.breaker import Breaker, BreakerPolicy, BreakerState
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.records import replace


@pytest.mark.parametrize(
    ("after", "afresh", "reads"),
    [
        (timedelta(0), False, []),
        (CACHED_FOR - MILLISECOND, False, []),
        (CACHED_FOR, False, [False]),
        # The clock was set back.
        (-MILLISECOND, False, [False]),
        (timedelta(0), True, [True]),
    ],
)
def test_a_breaker_is_read_again_after_the_time_of_the_cache(after: timedelta, afresh: bool, reads: list[bool]) -> None:
    worker = Worker()
    worker.breakers.look("pay")
    worker.item.breaker, worker.now = EARLY, NOW + after

    seen = worker.breakers.look("pay", afresh=afresh)

    assert worker.item.reads == [False, *reads]
    assert seen == (EARLY if reads else CLOSED)


@pytest.mark.parametrize("error", [StoreUnavailableError("down"), ValueError("a newer state")])
@pytest.mark.parametrize(("known", "kept"), [(None, CLOSED), (DUE, DUE)])
def test_a_breaker_that_cannot_be_read_stays_as_it_was_known(
    known: Breaker | None, kept: Breaker, error: Exception
) -> None:
    worker = Worker(known or CLOSED)
    if known:
        worker.breakers.look("pay")
    worker.now, worker.item.error, worker.item.reads = NOW + CACHED_FOR, error, []

    assert worker.breakers.look("pay") == kept
    worker.now += CACHED_FOR - MILLISECOND
    assert worker.breakers.look("pay") == kept
    assert worker.item.reads == [False], "the next read is made as late as after a success"


@pytest.mark.parametrize(
    ("copy", "afresh", "reads", "seen"),
    [
        (replace(CLOSED, version=2), False, [False, True], DUE),
        (replace(CLOSED, version=3), False, [False], replace(CLOSED, version=3)),
        (replace(CLOSED, version=4), False, [False], replace(CLOSED, version=4)),
        (replace(CLOSED, version=2), True, [True], DUE),
    ],
)
def test_a_copy_that_lags_behind_what_is_known_is_not_believed(
    copy: Breaker, afresh: bool, reads: list[bool], seen: Breaker
) -> None:
    worker = Worker(DUE)
    worker.breakers.look("pay")
    worker.now, worker.item.copies, worker.item.reads = NOW + CACHED_FOR, [copy], []

    assert worker.breakers.look("pay", afresh=afresh) == seen
    assert worker.item.reads == reads


def test_a_deleted_item_is_believed_after_one_consistent_read() -> None:
    worker = Worker(DUE)
    worker.breakers.look("pay")
    worker.item.breaker, worker.item.reads = CLOSED, []

    assert worker.breakers.look("pay", afresh=True) == CLOSED
    assert worker.item.reads == [True]


@pytest.mark.parametrize(
    ("breaker", "force", "admitted", "blocked"),
    [
        (CLOSED, None, True, False),
        (EARLY, None, False, True),
        (DUE, None, True, True),
        (UNDER_WAY, None, False, True),
        (replace(LOST, called_at=NOW), None, False, True),
        (LOST, None, True, True),
        (CLOSED, "open", False, True),
        (DUE, "open", False, True),
        (EARLY, "closed", True, False),
    ],
)
def test_a_call_is_admitted_if_it_is_closed_or_needs_a_probe(
    breaker: Breaker, force: str | None, admitted: bool, blocked: bool
) -> None:
    worker = Worker(breaker, force=force)

    assert worker.breakers.blocks("pay") is blocked
    assert worker.breakers.would_admit(POLICY) is admitted
    assert worker.item.tries == 0, "it changes nothing"
    assert worker.breakers.admits(POLICY, OTHER) is admitted

    probes = admitted and not breaker.closed and not force
    assert (worker.item.breaker.probe == (OTHER.tenant, OTHER.id)) is probes
    assert worker.item.tries == probes


@pytest.mark.parametrize("asks", [Breakers.would_admit, lambda breakers, policy: breakers.admits(policy, JOB)])
def test_an_open_breaker_is_read_consistently_before_it_refuses_a_call(
    asks: Callable[[Breakers, BreakerPolicy], bool],
) -> None:
    worker = Worker(EARLY)
    worker.breakers.look("pay")
    worker.item.breaker = replace(CLOSED, version=4)

    assert asks(worker.breakers, POLICY)
    assert worker.item.reads == [False, True]
    assert asks(worker.breakers, POLICY)
    assert worker.item.reads == [False, True], "it is known to be closed"


@pytest.mark.parametrize(("due", "lease_end"), [(NOW + SECOND, NOW + SECOND), (None, NOW)])
def test_a_probe_holds_the_breaker_until_its_lease_ends(due: datetime | None, lease_end: datetime) -> None:
    worker = Worker(DUE)

    assert worker.breakers.admits(POLICY, replace(JOB, due=due))

    assert worker.item.breaker.state is BreakerState.HALF_OPEN
    assert (worker.item.breaker.probe_until, worker.item.breaker.called_at) == (lease_end, NOW)
    assert worker.moved == [(DUE, worker.item.breaker)]


@pytest.mark.parametrize(
    ("faster", "admitted", "tries"),
    [
        ([DUE] * 3, True, 4),
        ([DUE] * 4, False, 4),
        ([CLOSED], True, 1),
        ([DUE, UNDER_WAY], False, 2),
    ],
)
def test_a_probe_that_other_workers_outrun_is_tried_four_times(
    faster: list[Breaker], admitted: bool, tries: int
) -> None:
    worker = Worker(DUE)
    worker.item.faster = [*faster]

    assert worker.breakers.admits(POLICY, JOB) is admitted
    assert worker.item.tries == tries
    assert len(worker.moved) == (tries > len(faster)), "only what this worker wrote is reported"
    assert worker.breakers.look("pay") == worker.item.breaker, "it knows what the others wrote"


@pytest.mark.parametrize(
    ("breaker", "stopped", "admitted", "opened"),
    [
        (COUNTED, False, False, True),
        (COUNTED, True, True, False),
        (replace(COUNTED, window_from=NOW - 10 * SECOND), False, True, False),
        (replace(COUNTED, failures=1), False, True, False),
        (replace(COUNTED, calls=5), False, True, False),
    ],
)
def test_a_breaker_that_no_worker_opened_at_its_threshold_opens_before_the_next_call(
    breaker: Breaker, stopped: bool, admitted: bool, opened: bool
) -> None:
    worker = Worker(breaker)
    worker.breakers.look("pay")
    if stopped:
        worker.stop_store()

    assert worker.breakers.admits(POLICY, JOB) is admitted

    expected = rules.opened(breaker, probe_interval=20 * SECOND, now=NOW) if opened else breaker
    assert worker.item.breaker == expected


@pytest.mark.parametrize(
    ("times", "calls"),
    [
        ([], 1),
        ([0], 2),
        ([0, 9_999], 3),
        ([0, 10_000], 2),
        ([0, 5_000, 10_000, 10_001], 3),
    ],
)
def test_the_successes_of_a_window_count_as_calls_of_its_failure(times: list[int], calls: int) -> None:
    worker = Worker()
    worker.breakers.look("pay")
    for after in times:
        worker.now = NOW + after * MILLISECOND
        assert worker.breakers.succeeded(POLICY, JOB)
    assert worker.item.reads == [False], "a success costs nothing"

    assert worker.fail("first")
    assert worker.fail("second")

    assert worker.item.counted == [(calls, "first", "Boom: x", worker.now), (1, "second", "Boom: x", worker.now)]


@pytest.mark.parametrize(
    ("after", "since", "calls"),
    [
        (10 * SECOND - MILLISECOND, None, 2),
        (10 * SECOND, None, 1),
        # It closed a moment ago, and this is the first failure since.
        (SECOND, NOW - SECOND, 1),
    ],
)
def test_successes_from_before_the_window_of_a_failure_do_not_count(
    after: timedelta, since: datetime | None, calls: int
) -> None:
    worker = Worker(replace(CLOSED, since=since) if since else CLOSED)
    worker.breakers.look("pay")
    worker.breakers.succeeded(POLICY, JOB)
    worker.now = NOW + after

    worker.fail()

    assert worker.item.counted[0][0] == calls


@pytest.mark.parametrize("force", ["open", "closed"])
def test_the_results_of_a_forced_breaker_decide_nothing(force: str) -> None:
    worker = Worker(ELECTED, force=force)
    assert worker.fail(), "it was never asked"
    worker.breakers.look("pay")

    assert worker.breakers.succeeded(POLICY, OTHER)
    assert worker.breakers.failed(POLICY, OTHER, call="c", error="Boom: x")

    assert (worker.item.tries, worker.item.counted, worker.item.breaker) == (0, [], ELECTED)


@pytest.mark.parametrize("succeeds", [True, False])
@pytest.mark.parametrize("force", ["open", "closed"])
def test_the_probe_of_a_forced_breaker_ends_with_its_run(force: str, succeeds: bool) -> None:
    """Or no other could take its place after the force, until its lease is over."""
    worker = Worker(UNDER_WAY, force=force)
    worker.breakers.look("pay")

    assert worker.breakers.succeeded(POLICY, JOB) if succeeds else worker.fail()

    assert worker.item.breaker == rules.given_up(UNDER_WAY)


def test_a_job_that_was_elected_a_moment_ago_is_given_up() -> None:
    worker = Worker(DUE)
    worker.breakers.look("pay")
    worker.item.breaker = ELECTED

    worker.breakers.give_up("pay", JOB)

    assert worker.item.breaker == rules.given_up(ELECTED)


def test_a_success_of_a_breaker_that_was_never_asked_is_not_counted() -> None:
    worker = Worker(ELECTED)

    assert worker.breakers.succeeded(POLICY, JOB)
    assert (worker.item.reads, worker.item.tries) == ([], 0)


@pytest.mark.parametrize(("failures", "opens"), [(0, False), (1, True)])
def test_the_failure_that_reaches_the_threshold_opens_it(failures: int, opens: bool) -> None:
    worker = Worker(replace(CLOSED, failures=failures, calls=failures, failing=SEVERAL))

    assert worker.fail()

    (counted,) = worker.item.counted
    assert counted == (1, "c", "Boom: x", NOW)
    seen = replace(CLOSED, failures=failures + 1, calls=failures + 1, window_from=NOW, failing=SEVERAL)
    after = rules.opened(seen, probe_interval=20 * SECOND, now=NOW)
    assert worker.item.breaker == (after if opens else seen)
    assert worker.moved == ([(seen, after)] if opens else [])
    assert worker.breakers.look("pay") == worker.item.breaker
    assert worker.item.reads == [False], "it knows that at once"


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("succeeded", rules.closed(ELECTED, now=NOW)),
        ("failed", rules.failed(ELECTED, JOB, error="Boom: x")),
        ("give_up", rules.given_up(ELECTED)),
    ],
)
@pytest.mark.parametrize("own", [True, False])
def test_only_the_result_of_the_probe_moves_an_open_breaker(name: str, after: Breaker, own: bool) -> None:
    worker = Worker(ELECTED)
    worker.breakers.look("pay")
    job = JOB if own else OTHER
    match name:
        case "succeeded":
            assert worker.breakers.succeeded(POLICY, job)
        case "failed":
            assert worker.breakers.failed(POLICY, job, call="c", error="Boom: x")
        case _:
            worker.breakers.give_up("pay", job)

    assert worker.item.breaker == (after if own else ELECTED)
    assert worker.item.counted == []


def test_the_end_of_a_run_leaves_a_closed_breaker_alone() -> None:
    worker = Worker(replace(CLOSED, probe=OWN))

    worker.breakers.give_up("pay", JOB)

    assert worker.item.tries == 0


@pytest.mark.parametrize(
    ("faster", "tries"),
    [
        ([ELECTED] * 3, 4),
        ([ELECTED] * 4, 4),
        ([replace(ELECTED, probe=("t", "another"))], 1),
        ([CLOSED], 1),
    ],
)
def test_the_result_of_a_probe_that_other_workers_outrun_is_tried_four_times(faster: list[Breaker], tries: int) -> None:
    worker = Worker(ELECTED)
    worker.breakers.look("pay")
    worker.item.faster = [*faster]

    assert worker.breakers.succeeded(POLICY, JOB)

    assert worker.item.tries == tries
    assert worker.item.breaker.closed is (tries > len(faster) or faster[-1].closed)


@pytest.mark.parametrize("breaker", [CLOSED, ELECTED])
def test_a_result_that_the_store_does_not_take_may_be_reported_again(breaker: Breaker) -> None:
    worker = Worker(breaker)
    worker.breakers.look("pay")
    worker.stop_store()

    assert not worker.fail()
    assert worker.breakers.succeeded(POLICY, JOB) is breaker.closed, "a success of a closed one costs no write"
    worker.breakers.give_up("pay", JOB)
    assert worker.item.breaker == breaker

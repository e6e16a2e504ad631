"""What wake asks of the breakers: whether a line may move, how fast, and for how long its breaker is open."""

from datetime import datetime, timedelta

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND
from tests.support.one_breaker import CLOSED, DUE, EARLY, ELECTED, JOB, Worker
from tidemill.application.breakers.breakers import CACHED_FOR
from tidemill.domain.breakers import breaker as rules
from tidemill.domain.breakers.breaker import Breaker
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.limits.limits import Rate
from tidemill.domain.records import replace


@pytest.mark.parametrize(
    ("breaker", "force", "holds"),
    [(CLOSED, None, False), (EARLY, None, True), (CLOSED, "open", True), (EARLY, "closed", False)],
)
def test_a_line_is_held_while_its_breaker_blocks(breaker: Breaker, force: str | None, holds: bool) -> None:
    worker = Worker(breaker, force=force)

    assert worker.breakers.holds_line("pay") is holds
    assert len(worker.item.reads) == (0 if force else 1)


def test_no_line_moves_by_a_state_that_could_not_be_read() -> None:
    worker = Worker(EARLY)
    worker.stop_store()
    assert not worker.breakers.blocks("pay"), "a worker goes on"

    with pytest.raises(StoreUnavailableError):
        worker.breakers.holds_line("pay")
    worker.item.error = None
    assert worker.breakers.holds_line("pay")
    assert worker.item.reads == [False, False, False]


def test_a_line_moves_once_its_breaker_is_read_and_closed() -> None:
    worker = Worker(CLOSED)
    worker.stop_store()
    worker.breakers.look("pay")
    worker.item.error = None

    assert not worker.breakers.holds_line("pay")
    assert not worker.breakers.holds_line("pay")
    assert worker.item.reads == [False, False], "the second answer is known"


def test_a_forced_state_needs_no_read_that_succeeds() -> None:
    worker = Worker(EARLY, force="closed")
    worker.stop_store()
    worker.breakers.look("pay")

    assert not worker.breakers.holds_line("pay")
    assert worker.item.reads == [False]


REOPENED = replace(ELECTED, reopened=1, outage_from=NOW - timedelta(hours=1))


@pytest.mark.parametrize(
    ("breaker", "force", "after", "open_for"),
    [
        (ELECTED, None, SECOND, SECOND),
        (REOPENED, None, SECOND, timedelta(hours=1) + SECOND),
        (REOPENED, "open", SECOND, timedelta(0)),
        (REOPENED, "closed", SECOND, timedelta(0)),
        (CLOSED, None, SECOND, timedelta(0)),
        # No job waits for it.
        (DUE, None, SECOND, timedelta(0)),
        (ELECTED, None, timedelta(minutes=1) - MILLISECOND, timedelta(minutes=1) - MILLISECOND),
        (ELECTED, None, timedelta(minutes=1), timedelta(0)),
        # The clock of the worker that opened it is ahead.
        (ELECTED, None, -SECOND, timedelta(0)),
    ],
)
def test_a_breaker_is_open_for_the_time_that_jobs_wait_for_it(
    breaker: Breaker, force: str | None, after: timedelta, open_for: timedelta
) -> None:
    worker = Worker(breaker, force=force)
    worker.now = NOW + after

    assert worker.breakers.open_for("pay") == open_for


@pytest.mark.parametrize(("breaker", "moves"), [(CLOSED, True), (DUE, False)])
def test_a_breaker_that_is_forced_open_is_open_without_the_force_too(breaker: Breaker, moves: bool) -> None:
    breaker = replace(breaker, probe_interval=7 * SECOND)
    worker = Worker(breaker, force="open")

    worker.breakers.keep_open("pay")

    after = rules.opened(breaker, probe_interval=7 * SECOND, now=NOW) if moves else breaker
    assert worker.item.breaker == after


@pytest.mark.parametrize("refused", [False, True])
def test_an_elected_job_learns_the_time_of_its_probe(refused: bool) -> None:
    worker = Worker(EARLY)
    worker.item.faster = [ELECTED] if refused else []

    at = worker.breakers.elect(EARLY, JOB)

    assert at == (None if refused else NOW + MILLISECOND)
    assert worker.item.breaker == (ELECTED if refused else rules.elected(EARLY, JOB, now=NOW))


def test_an_election_that_the_store_does_not_take_is_an_error() -> None:
    worker = Worker(CLOSED, force="open")
    worker.stop_store()

    with pytest.raises(StoreUnavailableError):
        worker.breakers.elect(EARLY, JOB)
    with pytest.raises(StoreUnavailableError):
        worker.breakers.keep_open("pay")


@pytest.mark.parametrize(
    ("force", "forced_at", "count"),
    [
        (None, NOW, 20),
        # The later of the two: it was closed 20 s before this time, and was forced closed 10 s before.
        ("closed", NOW + 10 * SECOND, 10),
        ("closed", NOW - 10 * SECOND, 20),
    ],
)
def test_a_line_drains_faster_the_longer_its_breaker_lets_it(
    force: str | None, forced_at: datetime, count: int
) -> None:
    worker = Worker(replace(CLOSED, since=NOW), force=force, forced_at=forced_at)

    assert worker.breakers.drain_rate("pay", at=NOW + 20 * SECOND) == Rate(count=count, period=SECOND)


def test_the_state_of_a_breaker_is_cached_for_wake_too() -> None:
    worker = Worker(EARLY)
    worker.breakers.open_for("pay")
    worker.breakers.holds_line("pay")
    worker.now = NOW + CACHED_FOR
    worker.breakers.open_for("pay")

    assert worker.item.reads == [False, False]

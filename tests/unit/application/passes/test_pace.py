"""Reads keep to their rate: each is paid for after it, and a run without time for the wait stops."""

from datetime import datetime, timedelta

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.single_job import Clock
from tidemill.application.passes.pace import MOST_WRITES_PER_SECOND, Pace

HOUR = timedelta(hours=1)


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def pace(clock: Clock, pauses: list[float]) -> Pace:
    return Pace(10, clock=clock, pause=pauses.append)


def test_a_read_is_paid_for_after_it(pace: Pace, pauses: list[float]) -> None:
    assert pace.spend(20, within=HOUR)
    assert pauses == [2]


def test_reads_at_the_same_time_add_up(pace: Pace, pauses: list[float]) -> None:
    assert [pace.spend(20, within=HOUR), pace.spend(5, within=HOUR)] == [True, True]
    assert pauses == [2, 2.5]


def test_time_that_passed_without_reads_is_not_saved_up(pace: Pace, clock: Clock, pauses: list[float]) -> None:
    pace.spend(20, within=HOUR)
    clock.now += HOUR

    pace.spend(10, within=HOUR)

    assert pauses == [2, 1]


def test_a_read_that_costs_nothing_needs_no_pause(pace: Pace, pauses: list[float]) -> None:
    assert pace.spend(0, within=timedelta(0))
    assert pauses == []


@pytest.mark.parametrize(("within", "paid"), [(2 * SECOND, True), (2 * SECOND - timedelta(microseconds=1), False)])
def test_a_run_without_time_for_the_wait_does_not_wait(
    pace: Pace, pauses: list[float], within: timedelta, *, paid: bool
) -> None:
    assert pace.spend(20, within=within) is paid
    assert pauses == [2] * paid


def test_threads_that_spend_at_the_same_time_do_so_one_after_another(pauses: list[float]) -> None:
    locked: list[bool] = []

    def clock() -> datetime:
        locked.append(shared._lock.locked())
        return NOW

    def pause(seconds: float) -> None:
        locked.append(shared._lock.locked())
        pauses.append(seconds)

    shared = Pace(10, clock=clock, pause=pause)
    shared.spend(20, within=HOUR)

    # The wait itself holds up no other thread.
    assert (locked, pauses) == ([True, False], [2])


def test_commands_and_reconcile_write_as_fast_as_one_partition_takes() -> None:
    assert MOST_WRITES_PER_SECOND == 1_000

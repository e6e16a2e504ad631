"""How long a worker rests after a batch: as long as the strain lasts, within the time of its invocation."""

from datetime import timedelta

import pytest

from tests.support.builders import SECOND
from tidemill.names import Lane
from tidemill.worker.rest import Rested, rest_after


class Rest:
    """Rests after a batch of bulk. The level falls to 0 after `strained_for`."""

    def __init__(self, *, level: int, strained_for: timedelta = timedelta(days=1), left: timedelta) -> None:
        self.level = level
        self.strained_for = strained_for
        self.left = left
        self.rested = timedelta(0)

    def after(self, worked: timedelta, *, lane: Lane = Lane.BULK) -> Rested | None:
        return rest_after(
            worked,
            lane=lane,
            strain=lambda: self.level if self.rested < self.strained_for else 0,
            time_left=lambda: self.left - self.rested,
            pause=self._pause,
        )

    def _pause(self, seconds: float) -> None:
        self.rested += timedelta(seconds=seconds)


@pytest.mark.parametrize(("level", "times"), [(1, 1), (2, 3), (3, 7)])
def test_a_worker_rests_for_a_multiple_of_the_batch(level: int, times: int) -> None:
    rest = Rest(level=level, left=300 * SECOND)

    assert rest.after(2.5 * SECOND) == Rested(strain=level, worked=2.5 * SECOND, rested=times * 2.5 * SECOND)
    assert rest.rested == times * 2.5 * SECOND


@pytest.mark.parametrize(("lane", "level"), [(Lane.BULK, 0), (Lane.DEFAULT, 1), (Lane.CRITICAL, 3)])
def test_a_lane_that_is_not_slowed_does_not_rest(lane: Lane, level: int) -> None:
    rest = Rest(level=level, left=300 * SECOND)

    assert rest.after(10 * SECOND, lane=lane) is None
    assert not rest.rested


def test_a_rest_leaves_time_for_the_answer() -> None:
    rest = Rest(level=3, left=4.5 * SECOND)

    rested = rest.after(10 * SECOND)

    assert rested == Rested(strain=3, worked=10 * SECOND, rested=3.5 * SECOND)


def test_without_time_for_more_than_the_answer_it_does_not_rest() -> None:
    assert Rest(level=3, left=SECOND).after(10 * SECOND) is None


def test_a_rest_ends_with_the_strain() -> None:
    rest = Rest(level=3, strained_for=2.5 * SECOND, left=300 * SECOND)

    assert rest.after(10 * SECOND) == Rested(strain=3, worked=10 * SECOND, rested=3 * SECOND)


def test_a_clock_that_was_set_back_causes_no_rest() -> None:
    assert Rest(level=3, left=300 * SECOND).after(-SECOND) is None

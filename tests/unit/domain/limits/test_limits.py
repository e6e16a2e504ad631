"""The bounds of a declared limit, and the name of the line in which its jobs wait."""

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tidemill.domain.limits.adaptive_limit import LARGEST_CONCURRENCY, Adaptive
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Line, Wait

DAY = timedelta(days=1)


@pytest.mark.parametrize(("count", "period"), [(1, SECOND), (1, DAY), (9, SECOND)])
def test_a_rate_within_its_bounds_has_an_interval(count: int, period: timedelta) -> None:
    assert Rate(count=count, period=period).interval == period / count


@pytest.mark.parametrize(
    ("count", "period"),
    [
        (0, SECOND),
        (-1, SECOND),
        (1, SECOND - timedelta(microseconds=1)),
        (1, DAY + timedelta(microseconds=1)),
        (0, DAY * 2),
    ],
)
def test_a_rate_beyond_its_bounds_is_refused(count: int, period: timedelta) -> None:
    with pytest.raises(ValueError, match=f"got {count} in "):
        Rate(count=count, period=period)


@pytest.mark.parametrize("count", [True, "5", 1.5, float("nan"), None])
def test_the_count_of_a_rate_is_a_whole_number(count: Any) -> None:
    with pytest.raises(ValueError, match=f"count is {count!r}; it must be a whole number"):
        Rate(count=count, period=SECOND)


@pytest.mark.parametrize("period", [60, "60", True, None])
def test_the_period_of_a_rate_is_a_timedelta(period: Any) -> None:
    with pytest.raises(TypeError, match=re.escape(f"such as timedelta(minutes=1); got {period!r}")):
        Rate(count=1, period=period)


@pytest.mark.parametrize("concurrency", [1, LARGEST_CONCURRENCY])
def test_a_concurrency_within_its_bounds_is_kept(concurrency: int) -> None:
    assert Limit(concurrency=concurrency).concurrency == concurrency


def test_a_limit_is_fixed_or_adaptive() -> None:
    adaptive = Adaptive(ceiling=9, target_seconds=1)

    assert (Limit(adaptive=adaptive).has_slots, Limit(adaptive=adaptive).slots(None)) == (True, 1)
    with pytest.raises(ValueError, match="a concurrency is fixed or adaptive, not both"):
        Limit(concurrency=1, adaptive=adaptive)


@pytest.mark.parametrize("concurrency", [0, -1, 101])
def test_a_concurrency_beyond_its_bounds_is_refused(concurrency: int) -> None:
    with pytest.raises(ValueError, match=f"concurrency_per_key is {concurrency}; it must lie within 1 and 100"):
        Limit(concurrency=concurrency)


def test_a_limit_bounds_something() -> None:
    with pytest.raises(ValueError, match="concurrency, rate or both"):
        Limit()
    assert Limit(rate=Rate(count=1, period=SECOND)).concurrency is None


def test_a_long_limit_key_is_replaced_by_its_hash() -> None:
    assert Line.for_limit("k" * 256) == Line(Cause.LIMIT, "k" * 256)
    hashed = [Line.for_limit("k" * 257), Line.for_limit("k" * 258)]
    assert [len(line.key) for line in hashed] == [64, 64]
    assert hashed[0] != hashed[1]


def test_a_wait_names_its_line() -> None:
    assert Wait(cause=Cause.LIMIT, key="k", since=NOW).line == Line(Cause.LIMIT, "k")


@pytest.mark.parametrize("cause", Cause)
def test_a_job_waits_alone_for_a_signal_and_for_its_input(cause: Cause) -> None:
    assert Wait(cause=cause, key="k", since=NOW).alone is (cause in {Cause.SIGNAL, Cause.INPUT})


def test_a_parked_job_is_released_after_a_day_if_nothing_else_releases_it() -> None:
    assert LONGEST_PARKED == DAY

"""Full jitter: between zero and a ceiling that doubles up to its cap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.domain.attempt.retry import LONGEST_BACKOFF_SECONDS, RetryPolicy
from tidemill.names import LARGEST_MAX_ATTEMPTS

ATTEMPTS = st.integers(min_value=1, max_value=LARGEST_MAX_ATTEMPTS)
DRAWS = st.floats(min_value=0, max_value=1, exclude_max=True)
CAPS = st.floats(min_value=0, max_value=LONGEST_BACKOFF_SECONDS)


@given(attempt=ATTEMPTS, draw=DRAWS, cap=CAPS, share=DRAWS)
def test_the_delay_lies_between_zero_and_the_ceiling(attempt: int, draw: float, cap: float, share: float) -> None:
    policy = RetryPolicy(backoff_seconds=cap * share, backoff_cap_seconds=cap)

    delay = policy.delay_seconds(attempt, draw)

    assert 0 <= delay <= min(cap, cap * share * 2 ** (attempt - 1))


@given(attempt=ATTEMPTS, draw=DRAWS)
def test_the_ceiling_doubles_with_each_attempt_until_the_cap(attempt: int, draw: float) -> None:
    policy = RetryPolicy(backoff_seconds=0.5, backoff_cap_seconds=600)

    assert policy.delay_seconds(attempt + 1, draw) == pytest.approx(
        min(2 * policy.delay_seconds(attempt, draw), draw * 600)
    )


@given(attempt=ATTEMPTS, draws=st.tuples(DRAWS, DRAWS))
def test_a_greater_draw_waits_no_less(attempt: int, draws: tuple[float, float]) -> None:
    low, high = sorted(draws)

    assert RetryPolicy().delay_seconds(attempt, low) <= RetryPolicy().delay_seconds(attempt, high)


@pytest.mark.parametrize("max_attempts", [0, LARGEST_MAX_ATTEMPTS + 1])
def test_a_policy_refuses_attempts_that_no_lane_allows_for(max_attempts: int) -> None:
    with pytest.raises(ValueError, match="max_attempts"):
        RetryPolicy(max_attempts=max_attempts)


@pytest.mark.parametrize(("backoff", "cap"), [(-1, 10), (11, 10), (1, LONGEST_BACKOFF_SECONDS + 1), (float("nan"), 10)])
def test_a_policy_refuses_a_backoff_that_makes_no_sense(backoff: float, cap: float) -> None:
    with pytest.raises(ValueError, match="backoff"):
        RetryPolicy(backoff_seconds=backoff, backoff_cap_seconds=cap)


@pytest.mark.parametrize("max_hops", [-1, 100_001])
def test_a_policy_refuses_hops_that_no_chain_needs(max_hops: int) -> None:
    with pytest.raises(ValueError, match=f"max_hops is {max_hops}; it must lie within 0 and 100000"):
        RetryPolicy(max_hops=max_hops)


def test_a_policy_may_reach_its_bounds() -> None:
    day = 86_400.0
    widest = RetryPolicy(
        max_attempts=LARGEST_MAX_ATTEMPTS, max_hops=100_000, backoff_seconds=day, backoff_cap_seconds=day
    )
    assert widest.delay_seconds(1, 0.5) == day / 2
    assert RetryPolicy(max_attempts=1, max_hops=0, backoff_seconds=0, backoff_cap_seconds=0).delay_seconds(9, 0.5) == 0


def test_the_policy_without_a_declaration() -> None:
    policy = RetryPolicy()

    assert (policy.max_attempts, policy.max_hops) == (8, 1_000)
    assert [policy.delay_seconds(attempt, 0.5) for attempt in (1, 2, 3, 30)] == [1, 2, 4, 450]

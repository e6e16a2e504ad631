"""Full jitter: between zero and a ceiling that doubles up to its cap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.domain.retry import LONGEST_BACKOFF_SECONDS, RetryPolicy
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

"""When jobs share a call of a batch handler, and what its outcomes must be."""

from typing import Any

import pytest

from tests.support.builders import a_job
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.batch_handlers.joint_call import calls_one_job_fails, may_share_a_call, outcomes_of
from tidemill.domain.errors import BatchOutcomesError
from tidemill.domain.waiting.holds import HoldCause


@pytest.mark.parametrize(
    ("attempt", "most", "shares"), [(1, 1, False), (1, 2, True), (1, 8, True), (2, 8, False), (0, 8, False)]
)
def test_only_a_first_attempt_with_another_one_left_shares_a_call(attempt: int, most: int, *, shares: bool) -> None:
    assert may_share_a_call(a_job(attempt=attempt), RetryPolicy(max_attempts=most)) is shares


def test_a_job_that_a_call_of_several_held_back_runs_alone_next_after_other_holds_too() -> None:
    held = a_job(attempt=1, holds=1, hold_cause=HoldCause.CALL)
    held_again = a_job(attempt=1, holds=1, hold_cause=HoldCause.LIMIT, other_holds=((HoldCause.CALL, 1),))

    assert not may_share_a_call(held, RetryPolicy())
    assert not may_share_a_call(held_again, RetryPolicy())
    assert may_share_a_call(a_job(attempt=1, holds=1, hold_cause=HoldCause.LIMIT), RetryPolicy())


@pytest.mark.parametrize(("jobs", "calls"), [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (10, 5), (100, 8)])
def test_one_bad_job_fails_a_call_for_each_halving(jobs: int, calls: int) -> None:
    assert calls_one_job_fails(jobs) == calls


@pytest.mark.parametrize("returned", [[1, None], (1, None)])
def test_a_list_has_the_outcomes_in_order(returned: Any) -> None:
    assert outcomes_of(returned, 2) == [1, None]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "it returned NoneType"),
        ({"a": 1, "b": 2}, "it returned dict"),
        ("ab", "it returned str"),
        ([1], "it returned 1 for 2 jobs"),
        ([1, 2, 3], "it returned 3 for 2 jobs"),
    ],
)
def test_anything_else_than_one_outcome_for_each_job_is_refused(returned: Any, said: str) -> None:
    with pytest.raises(BatchOutcomesError, match=said):
        outcomes_of(returned, 2)

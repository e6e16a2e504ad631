"""When jobs share a call of a batch handler, and what its outcomes must be."""

from typing import Any

import pytest

from tests.support.builders import a_job
from tidemill.domain.errors import BatchOutcomesError
from tidemill.domain.joint_call import may_share_a_call, outcomes_of
from tidemill.domain.retry import RetryPolicy


@pytest.mark.parametrize(
    ("attempt", "most", "shares"), [(1, 1, False), (1, 2, True), (1, 8, True), (2, 8, False), (0, 8, False)]
)
def test_only_a_first_attempt_with_another_one_left_shares_a_call(attempt: int, most: int, *, shares: bool) -> None:
    assert may_share_a_call(a_job(attempt=attempt), RetryPolicy(max_attempts=most)) is shares


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

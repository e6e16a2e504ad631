"""The declaration of a batch handler: what it refuses, and what its function must look like."""

from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.builders import a_job, a_run
from tidemill import Adaptive, BatchOutcomesError, JobType, Run, SharedLimit, job_type
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.batch_handlers.joint_call import may_share_a_call, outcomes_of
from tidemill.domain.errors import DeclarationError

ADAPTIVE = Adaptive(ceiling=8, target_seconds=1)


class Number(BaseModel):
    n: int = 0


def _declared(handler: Any = lambda payloads, runs: [None] * len(payloads), **options: Any) -> JobType:
    return job_type("test.number", payload=Number, **{"batch": 100} | options)(handler)


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_a_type_says_how_many_jobs_share_a_call(batch: int) -> None:
    assert _declared(batch=batch).batch == batch


def test_a_call_of_a_type_is_a_call_of_its_handler() -> None:
    assert _declared(lambda payloads, runs: list(zip(payloads, runs, strict=True)))([1], [a_run()]) == [(1, a_run())]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch": 0}, "batch is 0; it must be from 1 to 100"),
        ({"batch": 101}, "batch is 101; it must be from 1 to 100"),
        ({"batch": True}, "batch is True; it must be a whole number"),
        ({"batch": "10"}, "batch is '10'; it must be a whole number"),
        ({"max_attempts": 1}, "batch needs max_attempts of at least 2, and it is 1: "),
        ({"concurrency_per_key": ADAPTIVE}, "batch cannot go with Adaptive: "),
        ({"limit": SharedLimit("numbers", concurrency_per_key=ADAPTIVE)}, "batch cannot go with Adaptive: "),
    ],
)
def test_what_cannot_work_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        _declared(**options)


def _of_one(payload: Number, run: Run) -> None: ...


def _of_one_by_text(payload: "Number", run: "Run") -> None: ...


def _of_three(payloads: list[Number], runs: list[Run], more: int) -> None: ...


def _of_none() -> None: ...


async def _awaited(payloads: list[Number], runs: list[Run]) -> None: ...


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (_of_one, "the first parameter of the batch handler is declared as one Number; .* declare it as list"),
        (_of_one_by_text, "the first parameter of the batch handler is declared as one Number; "),
        (_of_three, r"the batch handler `_of_three` cannot be called with \(payloads, runs\)"),
        (_of_none, r"the batch handler `_of_none` cannot be called with \(payloads, runs\)"),
        (_awaited, "declared with `async def`"),
    ],
)
def test_a_handler_with_other_parameters_is_refused(handler: Any, said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        _declared(handler)


@pytest.mark.parametrize(("attempt", "most", "shares"), [(1, 2, True), (2, 8, False), (1, 1, False)])
def test_only_a_first_attempt_with_another_one_left_shares_a_call(attempt: int, most: int, shares: bool) -> None:
    assert may_share_a_call(a_job(attempt=attempt), RetryPolicy(max_attempts=most)) is shares


def test_a_tuple_is_as_good_as_a_list() -> None:
    assert outcomes_of((1, 2), 2) == outcomes_of([1, 2], 2) == [1, 2]


def test_outcomes_are_for_each_job() -> None:
    with pytest.raises(BatchOutcomesError, match="it returned 1 for 2 jobs"):
        outcomes_of([1], 2)

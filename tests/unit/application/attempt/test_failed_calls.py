"""What follows a failed call of several jobs: calls with half of them, until the one that fails is alone."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, a_run
from tests.support.joint_batch import Batch, Handler, a_called
from tests.support.single_job import Clock
from tidemill.application.attempt.gate import Gate
from tidemill.application.attempt.participant import Called
from tidemill.domain.batch_handlers.joint_call import calls_one_job_fails
from tidemill.domain.errors import BatchCallError, JobTimeoutError, RetryAfter
from tidemill.domain.records import replace

SECOND = timedelta(seconds=1)


def _failing(*poison: int, error: Callable[[], Exception] = lambda: ValueError("poison")) -> Handler:
    def act(payloads: list[int]) -> list[int]:
        if set(poison) & set(payloads):
            raise error()
        return payloads

    return Handler(act)


def _all(handler: Handler, jobs: int) -> list[Any]:
    job_type = handler.type(batch=100)
    return Batch(jobs).call([a_called(job_type, n) for n in range(jobs)])


@pytest.mark.parametrize("jobs", [2, 3, 10, 33])
def test_one_bad_job_fails_by_itself_and_each_other_one_succeeds(jobs: int) -> None:
    for poison in (0, jobs // 2, jobs - 1):
        handler = _failing(poison)

        ends = _all(handler, jobs)

        bad = ends.pop(poison)
        assert (type(bad), str(bad)) == (ValueError, "poison")
        assert ends == [n for n in range(jobs) if n != poison]
        failed = [call for call in handler.calls if poison in call]
        assert len(failed) <= calls_one_job_fails(jobs)
        assert len(handler.calls) <= 2 * calls_one_job_fails(jobs) - 1


def test_the_jobs_of_a_failed_call_go_on_in_halves() -> None:
    handler = _failing(0)

    _all(handler, 4)

    assert len(handler.calls) == 5
    assert sorted(map(len, handler.calls)) == [1, 1, 2, 2, 4]


def test_several_bad_jobs_are_found_as_long_as_calls_succeed_in_between() -> None:
    ends = _all(_failing(0, 9), 10)

    assert [type(end) for end in ends] == [ValueError, *[int] * 8, ValueError]


@pytest.mark.parametrize("jobs", [2, 10, 33])
def test_more_failures_in_a_row_than_one_job_can_cause_end_the_halving(jobs: int) -> None:
    handler = _failing(*range(jobs))

    ends = _all(handler, jobs)

    assert {type(end) for end in ends} <= {BatchCallError, ValueError}
    assert len(handler.calls) == calls_one_job_fails(jobs) + 1
    alone = sum(len(call) == 1 for call in handler.calls)
    assert sum(type(end) is ValueError for end in ends) == alone
    assert len({id(end) for end in ends}) == jobs, "two threads never raise the same exception"


def test_the_error_of_a_call_that_says_nothing_of_one_job_says_how_many_jobs_it_had() -> None:
    handler = _failing(*range(3), error=lambda: RetryAfter(60, "busy"))

    ends = _all(handler, 3)

    assert {str(end) for end in ends} == {str(BatchCallError(RetryAfter(60, "busy"), 3))}
    assert len(handler.calls) == 1, "it asks for time"


class Sharing(Gate):
    """It notes each call that its job shares."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def share(self) -> None:
        self.said.append("shares")


def _each(begin: Callable[[], None], *, most: int = 4, **changes: Any) -> tuple[Handler, list[Called], list[str]]:
    """Jobs that note what becomes of them."""
    said: list[str] = []
    handler = _failing(0)
    called = [
        replace(
            a_called(handler.type(), n, begin=begin if n == most - 1 else lambda: None),
            gates=[Sharing(said)],
            leave=lambda: said.append("leaves"),
            **changes,
        )
        for n in range(most)
    ]
    return handler, called, said


def test_a_job_knows_when_others_share_its_call_and_when_it_has_failed() -> None:
    handler, called, said = _each(lambda: None, most=2)

    Batch(2).call(called)

    assert (handler.sets, said) == ([[0], [0, 1], [1]], ["shares"] * 2 + ["leaves"] * 2)


def test_a_job_whose_time_is_up_takes_no_part_in_the_next_call() -> None:
    begun: list[int] = []

    def begin() -> None:
        begun.append(1)
        if len(begun) > 1:
            raise JobTimeoutError

    handler, called, _ = _each(begin)

    ends = Batch(4).call(called)

    assert [type(end) for end in ends] == [ValueError, int, int, JobTimeoutError]
    assert sorted(handler.calls) == [[0], [0, 1], [0, 1, 2, 3], [1], [2]]


def test_no_further_call_begins_that_may_take_longer_than_its_jobs_have() -> None:
    clock = Clock()
    handler = _failing(0)
    job_type = handler.type()
    deadline = NOW + 3 * SECOND

    def slow(payloads: Any, runs: Any) -> Any:
        clock.now += 2 * SECOND
        return handler(payloads, runs)

    run = dataclasses.replace(a_run(), deadline=deadline)
    called = [replace(a_called(replace(job_type, handler=slow), n), run=run) for n in range(2)]

    ends = Batch(2, clock=clock).call(called)

    assert ([type(end) for end in ends], len(handler.calls)) == ([BatchCallError] * 2, 1)

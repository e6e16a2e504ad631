"""The calls of batch handlers: who shares a call, and what each gets of it."""

from typing import Any

import pytest

from tests.support.builders import a_job_type
from tests.support.joint_batch import Batch, Handler, a_called
from tidemill.application.attempt.participant import SoleParticipant
from tidemill.application.batch_handlers.joint_calls import JointParticipant
from tidemill.domain.errors import (
    BatchOutcomesError,
    BreakerOpenError,
    JobTimeoutError,
    StoreUnavailableError,
    StrayThreadError,
    TransactionConflictError,
)
from tidemill.domain.records import replace


def _late() -> None:
    raise JobTimeoutError


def test_jobs_of_a_type_share_a_call_and_each_gets_its_own_outcome() -> None:
    handler, batch = Handler(), Batch(3)

    assert batch.call([a_called(handler.type(), n) for n in (1, 2, 3)]) == [2, 4, 6]
    assert (handler.sets, batch.scopes) == ([[1, 2, 3]], [3])


@pytest.mark.parametrize(("most", "sizes"), [(2, [1, 2]), (3, [3])])
def test_a_call_has_no_more_jobs_than_its_type_allows(most: int, sizes: list[int]) -> None:
    handler, batch = Handler(), Batch(3)

    batch.call([a_called(handler.type(batch=most), n) for n in (1, 2, 3)])

    assert sorted(map(len, handler.calls)) == sizes
    # A scope is around a call of several jobs. That of one has the scope of its attempt.
    assert batch.scopes == [size for size in sizes if size > 1]


def test_jobs_of_two_tenants_share_no_call() -> None:
    handler, batch = Handler(), Batch(2)
    calleds = [a_called(handler.type(), n) for n in (1, 2)]

    batch.call([replace(each, job=replace(each.job, tenant=f"tenant {each.payload}")) for each in calleds])

    assert handler.sets == [[1], [2]]


def test_jobs_of_two_types_share_no_call() -> None:
    handler, batch = Handler(), Batch(2)

    assert batch.call([a_called(handler.type(name=name), 1) for name in ("a", "b")]) == [2, 2]
    assert handler.calls == [[1], [1]]


@pytest.mark.parametrize(
    ("changes", "attempt", "shares"),
    [
        ({}, 1, True),
        ({}, 2, False),
        ({"batch": 2}, 1, True),
        ({"batch": 1}, 1, False),
        ({"batch": None}, 1, False),
        ({"retry": a_job_type(max_attempts=1).retry}, 1, False),
    ],
)
def test_a_first_attempt_with_another_one_left_may_share_a_call(
    changes: dict[str, Any], attempt: int, shares: bool
) -> None:
    assert a_called(Handler().type(**changes), 1, attempt=attempt).may_share is shares


@pytest.mark.parametrize("batch_size", [10, None])
def test_a_job_that_may_not_share_a_call_is_called_alone_and_keeps_no_other_waiting(batch_size: int | None) -> None:
    begun: list[int] = []
    alone, others = Handler(lambda payloads: payloads), Handler()
    batch = Batch(3)
    called = [
        a_called(alone.type(batch=batch_size), 1, attempt=2, begin=lambda: begun.append(1)),
        a_called(others.type(), 2),
        a_called(others.type(), 3),
    ]

    assert batch.call(called) == [1, 4, 6]
    assert (alone.calls, others.sets, begun) == ([[1] if batch_size else 1], [[2, 3]], [1])


def test_a_seat_of_its_own_calls_the_handler_for_one_job() -> None:
    handler = Handler()

    assert SoleParticipant().call(a_called(handler.type(), 4)) == 8
    with pytest.raises(JobTimeoutError):
        SoleParticipant().call(a_called(handler.type(), 4, begin=_late))
    assert handler.calls == [[4]]


def test_a_job_whose_time_is_up_takes_no_part_in_the_call() -> None:
    handler, batch = Handler(), Batch(3)
    job_type = handler.type()

    late, *others = batch.call([a_called(job_type, 1, begin=_late), a_called(job_type, 2), a_called(job_type, 3)])

    assert (type(late), others, handler.sets) == (JobTimeoutError, [4, 6], [[2, 3]])


def test_a_job_beside_a_stray_thread_takes_no_part_in_the_call() -> None:
    handler, batch = Handler(), Batch(3)
    job_type = handler.type()

    def beside() -> None:
        raise StrayThreadError

    held, *others = batch.call([a_called(job_type, 1, begin=beside), a_called(job_type, 2), a_called(job_type, 3)])

    assert (type(held), others, handler.sets) == (StrayThreadError, [4, 6], [[2, 3]])


def test_without_time_for_any_job_no_call_is_made() -> None:
    handler, batch = Handler(), Batch(2)

    ends = batch.call([a_called(handler.type(), n, begin=_late) for n in (1, 2)])

    assert ([type(end) for end in ends], handler.calls) == ([JobTimeoutError] * 2, [])


def test_an_outcome_that_is_an_exception_is_raised_for_its_job_alone() -> None:
    error = KeyError("no such row")
    handler = Handler(lambda payloads: [error if each == 1 else each for each in payloads])

    assert Batch(2).call([a_called(handler.type(), n) for n in (1, 2)]) == [error, 2]
    with pytest.raises(KeyError):
        Batch(1).participants[0].call(a_called(handler.type(), 1))
    with pytest.raises(KeyError):
        SoleParticipant().call(a_called(handler.type(), 1))


def _raising(error: Exception) -> Handler:
    def act(_payloads: list[int]) -> None:
        raise error

    return Handler(act)


@pytest.mark.parametrize("error", [StoreUnavailableError("no answer"), TransactionConflictError("conflict")])
@pytest.mark.parametrize("raised", [lambda error: error, lambda error: ExceptionGroup("calls", [error])])
def test_an_outage_that_ends_a_call_costs_its_jobs_no_attempt(error: Exception, raised: Any) -> None:
    first, second = Batch(2).call([a_called(_raising(raised(error)).type(), n) for n in (1, 2)])

    assert (type(first), str(first)) == (StoreUnavailableError, str(error))
    assert first is not second


def test_an_open_breaker_that_ends_a_call_is_that_of_each_job() -> None:
    handler = _raising(BreakerOpenError("pay"))
    job_type = handler.type()

    first, second = Batch(2).call([a_called(job_type, n) for n in (1, 2)])

    assert (str(first), str(second)) == (str(BreakerOpenError("pay")),) * 2
    assert (first is not second, len(handler.calls)) == (True, 1)


@pytest.mark.parametrize("error", [ValueError("poison"), TransactionConflictError("conflict")])
def test_an_error_of_a_call_with_one_job_is_the_error_of_that_job(error: Exception) -> None:
    assert Batch(1).call([a_called(_raising(error).type(), 1)]) == [error]


def test_a_handler_must_return_an_outcome_for_each_job() -> None:
    (end,) = Batch(1).call([a_called(Handler(lambda _payloads: []).type(), 1)])

    assert type(end) is BatchOutcomesError


def test_an_attempt_that_calls_no_handler_keeps_no_other_waiting() -> None:
    handler, batch = Handler(), Batch(3)
    job_type = handler.type()

    def attempt(participant: JointParticipant, n: int) -> Any:
        return participant.leave_call() if n == 1 else participant.call(a_called(job_type, n))

    assert batch.each(attempt, [1, 2, 3]) == [None, 4, 6]
    for participant in (SoleParticipant(), batch.participants[0]):
        participant.leave_call()
        participant.leave_settle()

"""The calls of batch handlers: who shares a call, what each gets of it, and whose settles go together."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import NOW, SETTLEMENTS, a_job, a_job_type, a_run, types_of
from tests.support.single_job import Clock, tools
from tidemill.application import joint_calls
from tidemill.application.job_types import JobType
from tidemill.application.joint_calls import Called, JointCalls, JointParticipant, SoleParticipant
from tidemill.application.ports import Settling
from tidemill.domain.errors import (
    BatchCallError,
    BatchOutcomesError,
    JobTimeoutError,
    StoreUnavailableError,
    StrayBesideError,
    TidemillError,
    TransactionConflictError,
)
from tidemill.domain.job import Job
from tidemill.domain.outcomes import Settlement
from tidemill.domain.states import State
from tidemill.in_memory.single_job import OneJob

#: Much longer than what the threads of a test need.
WAIT_SECONDS = 5.0
SUCCESS = replace(SETTLEMENTS[State.SUCCEEDED], writes=({"Put": {}},))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_calls, "LONGEST_WAIT_FOR_OUTCOMES_SECONDS", WAIT_SECONDS)


def _late() -> None:
    raise JobTimeoutError


class Handler:
    """Doubles each payload, or does what a test says; and notes its calls."""

    def __init__(self, act: Callable[[list[int]], Any] | None = None) -> None:
        self.calls: list[list[int]] = []
        self._act = act or (lambda payloads: [2 * each for each in payloads])

    def __call__(self, payloads: Any, _runs: Any) -> Any:
        self.calls.append(payloads)
        return self._act(payloads)

    @property
    def sets(self) -> list[list[int]]:
        """The payloads of each call, in no order."""
        return sorted(sorted(each) for each in self.calls)

    def type(self, **changes: Any) -> JobType:
        return replace(a_job_type(self, max_attempts=3), **{"batch": 10} | changes)


def _called(job_type: JobType, payload: Any, *, begin: Callable[[], None] = lambda: None, attempt: int = 1) -> Called:
    job = a_job(type=job_type.name, attempt=attempt)
    return Called(job=job, job_type=job_type, payload=payload, run=a_run(), begin=begin)


class Batch:
    """The participants of a batch of messages, whose attempts run in threads of their own."""

    def __init__(self, participants: int, **changes: Any) -> None:
        self.scopes: list[int] = []
        self.pauses: list[float] = []
        context = replace(
            tools(OneJob(a_job()), types_of(a_job_type()), Clock()),  # type: ignore[arg-type]  # it needs less
            pause=self.pauses.append,
            **changes,
        )
        calls = JointCalls(context, participants=participants, scope=self._scope, longest_wait_seconds=WAIT_SECONDS)
        self.participants = calls.participants

    def _scope(self, jobs: Sequence[Job]) -> AbstractContextManager[None]:
        @contextmanager
        def scope() -> Iterator[None]:
            self.scopes.append(len(jobs))
            yield

        return scope()

    def each(self, act: Callable[[JointParticipant, Any], Any], given: Sequence[Any]) -> list[Any]:
        """What each participant got or raised."""

        def one(participant: JointParticipant, value: Any) -> Any:
            try:
                return act(participant, value)
            except Exception as error:  # noqa: BLE001 - the test looks at it
                return error

        began = time.monotonic()
        with ThreadPoolExecutor(len(given)) as pool:
            ends = list(pool.map(one, self.participants, given))
        assert time.monotonic() - began < WAIT_SECONDS, "one has waited for another that does not come"
        return ends

    def call(self, given: Sequence[Called]) -> list[Any]:
        return self.each(lambda participant, called: participant.call(called), given)


def test_jobs_of_a_type_share_a_call_and_each_gets_its_own_outcome() -> None:
    handler, batch = Handler(), Batch(3)

    assert batch.call([_called(handler.type(), n) for n in (1, 2, 3)]) == [2, 4, 6]
    assert (handler.sets, batch.scopes) == ([[1, 2, 3]], [3])


@pytest.mark.parametrize(("most", "sizes"), [(2, [1, 2]), (3, [3])])
def test_a_call_has_no_more_jobs_than_its_type_allows(most: int, sizes: list[int]) -> None:
    handler, batch = Handler(), Batch(3)

    batch.call([_called(handler.type(batch=most), n) for n in (1, 2, 3)])

    assert sorted(map(len, handler.calls)) == sizes
    # A scope is around a call of several jobs. That of one has the scope of its attempt.
    assert batch.scopes == [size for size in sizes if size > 1]


def test_jobs_of_two_tenants_share_no_call() -> None:
    handler, batch = Handler(), Batch(2)
    calleds = [_called(handler.type(), n) for n in (1, 2)]

    batch.call([replace(each, job=replace(each.job, tenant=f"tenant {each.payload}")) for each in calleds])

    assert handler.sets == [[1], [2]]


def test_jobs_of_two_types_share_no_call() -> None:
    handler, batch = Handler(), Batch(2)

    assert batch.call([_called(handler.type(name=name), 1) for name in ("a", "b")]) == [2, 2]
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
    assert _called(Handler().type(**changes), 1, attempt=attempt).may_share is shares


@pytest.mark.parametrize("batch_size", [10, None])
def test_a_job_that_may_not_share_a_call_is_called_alone_and_keeps_no_other_waiting(batch_size: int | None) -> None:
    begun: list[int] = []
    alone, others = Handler(lambda payloads: payloads), Handler()
    batch = Batch(3)
    called = [
        _called(alone.type(batch=batch_size), 1, attempt=2, begin=lambda: begun.append(1)),
        _called(others.type(), 2),
        _called(others.type(), 3),
    ]

    assert batch.call(called) == [1, 4, 6]
    assert (alone.calls, others.sets, begun) == ([[1] if batch_size else 1], [[2, 3]], [1])


def test_a_seat_of_its_own_calls_the_handler_for_one_job() -> None:
    handler = Handler()

    assert SoleParticipant().call(_called(handler.type(), 4)) == 8
    with pytest.raises(JobTimeoutError):
        SoleParticipant().call(_called(handler.type(), 4, begin=_late))
    assert handler.calls == [[4]]


def test_a_job_whose_time_is_up_takes_no_part_in_the_call() -> None:
    handler, batch = Handler(), Batch(3)
    job_type = handler.type()

    late, *others = batch.call([_called(job_type, 1, begin=_late), _called(job_type, 2), _called(job_type, 3)])

    assert (type(late), others, handler.sets) == (JobTimeoutError, [4, 6], [[2, 3]])


def test_a_job_beside_a_stray_thread_takes_no_part_in_the_call() -> None:
    handler, batch = Handler(), Batch(3)
    job_type = handler.type()

    def beside() -> None:
        raise StrayBesideError

    held, *others = batch.call([_called(job_type, 1, begin=beside), _called(job_type, 2), _called(job_type, 3)])

    assert (type(held), others, handler.sets) == (StrayBesideError, [4, 6], [[2, 3]])


def test_without_time_for_any_job_no_call_is_made() -> None:
    handler, batch = Handler(), Batch(2)

    ends = batch.call([_called(handler.type(), n, begin=_late) for n in (1, 2)])

    assert ([type(end) for end in ends], handler.calls) == ([JobTimeoutError] * 2, [])


def test_an_outcome_that_is_an_exception_is_raised_for_its_job_alone() -> None:
    error = KeyError("no such row")
    handler = Handler(lambda payloads: [error if each == 1 else each for each in payloads])

    assert Batch(2).call([_called(handler.type(), n) for n in (1, 2)]) == [error, 2]
    with pytest.raises(KeyError):
        Batch(1).participants[0].call(_called(handler.type(), 1))
    with pytest.raises(KeyError):
        SoleParticipant().call(_called(handler.type(), 1))


def _raising(error: Exception) -> Handler:
    def act(_payloads: list[int]) -> None:
        raise error

    return Handler(act)


@pytest.mark.parametrize("error", [StoreUnavailableError("no answer"), TransactionConflictError("conflict")])
def test_an_outage_that_ends_a_call_costs_its_jobs_no_attempt(error: Exception) -> None:
    first, second = Batch(2).call([_called(_raising(error).type(), n) for n in (1, 2)])

    assert (type(first), str(first)) == (StoreUnavailableError, str(error))
    assert first is not second


def test_any_other_error_of_a_call_says_how_many_jobs_it_had() -> None:
    handler = _raising(ValueError("poison"))
    job_type = handler.type()
    ends = Batch(3).call([_called(job_type, n) for n in (1, 2, 3)])

    assert {type(end) for end in ends} == {BatchCallError}
    assert {str(end) for end in ends} == {str(BatchCallError(ValueError("poison"), 3))}


@pytest.mark.parametrize("error", [ValueError("poison"), TransactionConflictError("conflict")])
def test_an_error_of_a_call_with_one_job_is_the_error_of_that_job(error: Exception) -> None:
    assert Batch(1).call([_called(_raising(error).type(), 1)]) == [error]


def test_a_handler_must_return_an_outcome_for_each_job() -> None:
    (end,) = Batch(1).call([_called(Handler(lambda _payloads: []).type(), 1)])

    assert type(end) is BatchOutcomesError


class Settles:
    """Joint settles, which answer what a test says, and the settles of single jobs."""

    def __init__(self, *answers: Callable[[Settling], TidemillError | None]) -> None:
        self.joint: list[list[Settling]] = []
        self.alone: list[Job] = []
        self._answers = list(answers)

    def jointly(self, settlings: Sequence[Settling]) -> Sequence[TidemillError | None]:
        answer = self._answers.pop(0) if self._answers else (lambda _settling: None)
        self.joint.append(list(settlings))
        return [answer(each) for each in settlings]

    def single(self, job: Job, settlement: Settlement, *, now: datetime) -> Sequence[Job]:
        assert now == NOW
        self.alone.append(job)
        return [job]


def _ended(settles: Settles, settlements: Sequence[Settlement], **changes: Any) -> tuple[list[Job], list[Any], Batch]:
    """Jobs of one call, and what their settles returned or raised."""
    batch = Batch(len(settlements), settle_jointly=settles.jointly, **changes)
    job_type = Handler().type()
    jobs = [a_job(id=f"{n}") for n in range(len(settlements))]

    def attempt(participant: JointParticipant, given: tuple[Job, Settlement]) -> Any:
        participant.call(replace(_called(job_type, 1), job=replace(given[0], attempt=1)))
        return participant.settle(*given, now=NOW, alone=settles.single)

    return jobs, batch.each(attempt, list(zip(jobs, settlements, strict=True))), batch


def test_the_successes_of_a_call_settle_together() -> None:
    settles = Settles()

    jobs, ends, _ = _ended(settles, [SUCCESS] * 3)

    ((first, second, third),) = [sorted(each, key=lambda one: one.job.id) for each in settles.joint]
    found = [(each.job, each.settlement, each.now) for each in (first, second, third)]
    assert found == [(job, SUCCESS, NOW) for job in jobs]
    assert (ends, settles.alone) == ([(), (), ()], [])


@pytest.mark.parametrize(
    "other",
    [
        SETTLEMENTS[State.RETRYING],
        replace(SETTLEMENTS[State.DEAD], writes=({"Put": {}},)),
        SETTLEMENTS[State.SUCCEEDED],
        replace(SUCCESS, follow_ups=(a_job(),)),
    ],
    ids=["failure", "failure with writes", "no writes", "follow-up"],
)
def test_any_other_end_settles_alone_and_keeps_no_other_waiting(other: Settlement) -> None:
    settles = Settles()

    jobs, ends, _ = _ended(settles, [other, SUCCESS, SUCCESS])

    assert [sorted(each.job.id for each in one) for one in settles.joint] == [["1", "2"]]
    assert (ends, settles.alone) == ([[jobs[0]], (), ()], [jobs[0]])


def test_a_job_that_was_alone_in_its_call_settles_alone() -> None:
    settles = Settles()

    jobs, ends, _ = _ended(settles, [SUCCESS])

    assert (ends, settles.joint) == ([[jobs[0]]], [])


def test_without_joint_settles_each_job_settles_alone() -> None:
    settles = Settles()
    batch = Batch(2)
    job_type, job = Handler().type(), a_job()

    def attempt(participant: JointParticipant, n: int) -> Any:
        participant.call(_called(job_type, n))
        return participant.settle(job, SUCCESS, now=NOW, alone=settles.single)

    assert batch.each(attempt, [1, 2]) == [[job], [job]]
    assert SoleParticipant().settle(job, SUCCESS, now=NOW, alone=settles.single) == [job]


def test_only_the_first_settle_after_a_call_goes_with_the_others() -> None:
    settles = Settles()
    batch = Batch(2, settle_jointly=settles.jointly)
    job_type, job = Handler().type(), a_job()

    def attempt(participant: JointParticipant, n: int) -> Any:
        participant.call(_called(job_type, n))
        participant.settle(job, SUCCESS, now=NOW, alone=settles.single)
        return participant.settle(job, SUCCESS, now=NOW, alone=settles.single)

    assert batch.each(attempt, [1, 2]) == [[job], [job]]
    assert len(settles.joint) == 1


def test_an_attempt_that_settles_nothing_keeps_no_other_waiting() -> None:
    settles = Settles()
    batch = Batch(3, settle_jointly=settles.jointly)
    job_type, job = Handler().type(), a_job()

    def attempt(participant: JointParticipant, n: int) -> Any:
        participant.call(_called(job_type, n))
        return participant.leave_settle() if n == 1 else participant.settle(job, SUCCESS, now=NOW, alone=settles.single)

    assert batch.each(attempt, [1, 2, 3]) == [None, (), ()]
    assert len(settles.joint[0]) == 2


def test_an_attempt_that_calls_no_handler_keeps_no_other_waiting() -> None:
    handler, batch = Handler(), Batch(3)
    job_type = handler.type()

    def attempt(participant: JointParticipant, n: int) -> Any:
        return participant.leave_call() if n == 1 else participant.call(_called(job_type, n))

    assert batch.each(attempt, [1, 2, 3]) == [None, 4, 6]
    for participant in (SoleParticipant(), batch.participants[0]):
        participant.leave_call()
        participant.leave_settle()


@pytest.mark.parametrize("error", [StoreUnavailableError("no answer"), TransactionConflictError("conflict")])
def test_what_an_outage_or_a_conflict_stops_is_tried_four_times_with_longer_pauses(error: TidemillError) -> None:
    def stopped(settling: Settling) -> TidemillError | None:
        return error if settling.job.id == "0" else None

    once, always = Settles(stopped), Settles(*[stopped] * 9)

    _, ends, batch = _ended(once, [SUCCESS] * 2, draw=lambda: 0.5)
    assert (ends, batch.pauses) == ([(), ()], [0.05])
    assert [[each.job.id for each in one] for one in once.joint[1:]] == [["0"]]

    _, ends, batch = _ended(always, [SUCCESS] * 2, draw=lambda: 0.5)
    assert (ends, batch.pauses) == ([error, ()], [0.05, 0.1, 0.2, 0.4])
    assert [len(one) for one in always.joint] == [2, 1, 1, 1]


def test_a_refused_settle_is_raised_at_once_for_its_job_alone() -> None:
    refusal = TidemillError("refused")
    settles = Settles(lambda settling: refusal if settling.job.id == "1" else None)

    _, ends, batch = _ended(settles, [SUCCESS] * 2)

    assert (ends, batch.pauses, len(settles.joint)) == ([(), refusal], [], 1)

"""The settles of jobs that shared a call: whose go together."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import NOW, SETTLEMENTS, a_job
from tests.support.joint_batch import WAIT_SECONDS, Batch, Handler, a_called
from tidemill.application.attempt.participant import SoleParticipant
from tidemill.application.batch_handlers import joint_calls
from tidemill.application.batch_handlers.joint_calls import JointParticipant
from tidemill.application.ports import Settling
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.errors import StoreUnavailableError, TidemillError, TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State

SUCCESS = replace(SETTLEMENTS[State.SUCCEEDED], writes=({"Put": {}},))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_calls, "LONGEST_WAIT_FOR_OUTCOMES_SECONDS", WAIT_SECONDS)


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
        participant.call(replace(a_called(job_type, 1), job=replace(given[0], attempt=1)))
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
        participant.call(a_called(job_type, n))
        return participant.settle(job, SUCCESS, now=NOW, alone=settles.single)

    assert batch.each(attempt, [1, 2]) == [[job], [job]]
    assert SoleParticipant().settle(job, SUCCESS, now=NOW, alone=settles.single) == [job]


def test_only_the_first_settle_after_a_call_goes_with_the_others() -> None:
    settles = Settles()
    batch = Batch(2, settle_jointly=settles.jointly)
    job_type, job = Handler().type(), a_job()

    def attempt(participant: JointParticipant, n: int) -> Any:
        participant.call(a_called(job_type, n))
        participant.settle(job, SUCCESS, now=NOW, alone=settles.single)
        return participant.settle(job, SUCCESS, now=NOW, alone=settles.single)

    assert batch.each(attempt, [1, 2]) == [[job], [job]]
    assert len(settles.joint) == 1


def test_an_attempt_that_settles_nothing_keeps_no_other_waiting() -> None:
    settles = Settles()
    batch = Batch(3, settle_jointly=settles.jointly)
    job_type, job = Handler().type(), a_job()

    def attempt(participant: JointParticipant, n: int) -> Any:
        participant.call(a_called(job_type, n))
        return participant.leave_settle() if n == 1 else participant.settle(job, SUCCESS, now=NOW, alone=settles.single)

    assert batch.each(attempt, [1, 2, 3]) == [None, (), ()]
    assert len(settles.joint[0]) == 2


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

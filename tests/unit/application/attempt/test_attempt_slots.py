"""What an attempt asks of the limit of its job, and what it gives back, over one job in memory."""

from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import A_WAIT, INVOCATION, NOW, SECOND, TENANT, a_job, a_job_type
from tests.support.one_job import attempt_at
from tests.support.single_job import Clock, carried_out
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.ports import Entered, LimitSlot
from tidemill.application.waiting.release import Releaser
from tidemill.domain.errors import JobTimeoutError
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line
from tidemill.in_memory.single_job import OneJob, Unlimited


class Full(Unlimited):
    """A limit that is full, has room, or has a time."""

    def __init__(self, answer: Entered | datetime | Line) -> None:
        self.answer = answer
        self.slots: list[LimitSlot] = []

    def acquire(self, slot: LimitSlot, *, now: datetime) -> Entered | datetime | Line:
        self.slots.append(slot)
        return self.answer


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The calls of the releaser."""
    calls: list[tuple[str, Any]] = []
    monkeypatch.setattr(
        Releaser, "leave", lambda _self, slot, *, line_stands, lowered: calls.append(("leave", (slot.job, line_stands)))
    )
    monkeypatch.setattr(Releaser, "pass_on", lambda _self, job: calls.append(("pass on", job.id)))
    monkeypatch.setattr(Releaser, "look_again", lambda _self, job: calls.append(("look again", job.wait)))
    return calls


Calls = list[tuple[str, Any]]
LIMITED = replace(a_job_type(), limit=Limit(concurrency=1), limit_key=lambda _payload: "a")
KEY = f'["test.job", "a", "{TENANT}"]'


def test_a_worker_looks_at_the_line_again_once_it_has_parked_a_job(clock: Clock, released: Calls) -> None:
    store = OneJob(a_job(id="j"))
    line = Line.for_limit(KEY)

    assert carried_out(attempt_at(store, LIMITED, clock, limits=Full(line))).ending is Ending.PARKED
    assert released == [("look again", store.job.wait)]


@pytest.mark.parametrize("stands", [True, False])
def test_a_run_gives_its_slot_back_after_its_settle(clock: Clock, released: Calls, *, stands: bool) -> None:
    store = OneJob(a_job(id="j"))

    carried_out(attempt_at(store, LIMITED, clock, limits=Full(Entered(line_stands=stands))))

    assert released == [("leave", ((TENANT, "j"), stands))]


def test_a_job_that_gets_a_time_has_no_slot_to_give_back(clock: Clock, released: Calls) -> None:
    store = OneJob(a_job())

    assert carried_out(attempt_at(store, LIMITED, clock, limits=Full(NOW + SECOND))).ending is Ending.HELD
    assert (store.job.due, released) == (NOW + SECOND, [])


@pytest.mark.parametrize(
    ("changes", "passed_on"),
    [
        ({"wait": A_WAIT}, True),
        ({"wait": replace(A_WAIT, key=KEY)}, False),
        ({"wait": None}, False),
    ],
)
def test_a_job_that_runs_under_another_limit_than_it_waited_for_passes_its_turn_on(
    clock: Clock, released: Calls, changes: dict[str, Any], *, passed_on: bool
) -> None:
    store = OneJob(a_job(id="j", **changes))

    carried_out(attempt_at(store, LIMITED, clock, limits=Full(Entered())))

    assert (("pass on", "j") in released) is passed_on


def test_a_job_that_dies_before_it_asks_for_its_slot_passes_its_turn_on(clock: Clock, released: Calls) -> None:
    store = OneJob(a_job(id="j", wait=replace(A_WAIT, key=KEY), deadline=NOW - SECOND))

    assert carried_out(attempt_at(store, LIMITED, clock)).ending is Ending.DEAD
    assert released == [("pass on", "j")]


@pytest.mark.parametrize(("wait", "was_released"), [(None, False), (A_WAIT, False), (replace(A_WAIT, key=KEY), True)])
def test_a_slot_is_that_of_the_run_and_says_whether_its_turn_has_come(
    clock: Clock, wait: Any, *, was_released: bool
) -> None:
    limits, store = Full(Entered()), OneJob(a_job(id="j", wait=wait))

    carried_out(attempt_at(store, LIMITED, clock, limits=limits, new_token=lambda: "mine"))

    assert limits.slots == [
        LimitSlot(
            line=Line.for_limit(KEY),
            limit=Limit(concurrency=1),
            token="mine",
            until=NOW + INVOCATION + 2 * SECOND,
            job=(TENANT, "j"),
            released=was_released,
            declared=Limit(concurrency=1),
        )
    ]


def test_an_attempt_that_has_ended_asks_for_no_slot(clock: Clock) -> None:
    limits, store = Full(Entered()), OneJob(a_job())
    attempt = attempt_at(store, LIMITED, clock, limits=limits)
    assert attempt.claim(remaining=INVOCATION)
    attempt.expire()

    with pytest.raises(JobTimeoutError):
        attempt.run()
    assert limits.slots == []

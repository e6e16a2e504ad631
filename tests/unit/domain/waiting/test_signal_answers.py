"""What a job does with a signal: the first rule that fits counts."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, with_changes
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.signal_answers import Answer, answer, waits_for_signal
from tidemill.domain.waiting.signals import Awaited, Signal
from tidemill.domain.waiting.waiting import Cause, Wait

END = NOW + timedelta(hours=1)
AWAITED = Awaited(cause=Cause.SIGNAL, name="approval", since=NOW, until=END)
#: Parked for a signal, and queued for the end of its wait.
PARKED = a_job(state=State.PARKED, due=END, awaited=AWAITED, wait=AWAITED.wait)
QUEUED = replace(PARKED, state=State.QUEUED, wait=None)


def got(*names: str, data: str = "1", used: bool = False) -> tuple[Signal, ...]:
    return tuple(Signal(name=name, at=NOW, data=data, used=used) for name in names)


SIXTEEN = got(*(f"signal-{number}" for number in range(16)))


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (PARKED, Answer.WAKES),
        (QUEUED, Answer.WAKES),
        (with_changes(PARKED, awaited=replace(AWAITED, name="other")), Answer.KEPT),
        # Wake has given it another time, or it was held back.
        (replace(PARKED, due=END + SECOND), Answer.KEPT),
        (with_changes(QUEUED, holds=1, hold_cause=HoldCause.OUTAGE), Answer.KEPT),
        (a_job(), Answer.KEPT),
        (a_job(state=State.RUNNING), Answer.KEPT),
        (with_changes(PARKED, signals=got("approval")), Answer.REPEATED),
        (with_changes(PARKED, signals=got("approval", used=True)), Answer.REPEATED),
        (a_job(state=State.SUCCEEDED, signals=got("approval")), Answer.REPEATED),
        (with_changes(PARKED, signals=got("approval", data="2")), Answer.OTHER_VALUE),
        (with_changes(PARKED, signals=got("approval", data="2", used=True)), Answer.WAKES),
        (with_changes(PARKED, signals=got("other", data="1")), Answer.WAKES),
        (a_job(state=State.SUCCEEDED, signals=got("approval", data="2")), Answer.ENDED),
        *((a_job(state=state), Answer.ENDED) for state in State if state.terminal),
        (a_job(signals=SIXTEEN[1:]), Answer.KEPT),
        (a_job(signals=SIXTEEN), Answer.TOO_MANY),
        (with_changes(PARKED, signals=SIXTEEN), Answer.TOO_MANY),
        (a_job(signals=(*SIXTEEN[1:], *got("approval", data="2"))), Answer.OTHER_VALUE),
    ],
)
def test_a_job_answers_a_signal_by_what_it_has_and_waits_for(job: Job, expected: Answer) -> None:
    assert answer(job, "approval", "1") is expected


@pytest.mark.parametrize("state", State)
def test_only_a_dead_job_keeps_a_signal_for_its_redrive(state: State) -> None:
    ended = state.terminal and state is not State.DEAD

    assert answer(a_job(state=state), "closed", "1", kept_dead=True) is (Answer.ENDED if ended else Answer.KEPT)


@pytest.mark.parametrize(
    ("base", "changes", "waits"),
    [
        (PARKED, {}, True),
        (QUEUED, {}, True),
        (PARKED, {"awaited": None}, False),
        (QUEUED, {"awaited": None}, False),
        # Wake has given it another time.
        (PARKED, {"due": END + SECOND}, False),
        (QUEUED, {"due": END + SECOND}, False),
        # It is parked for something else, or was held back.
        (PARKED, {"wait": None}, False),
        (PARKED, {"wait": Wait(cause=Cause.LIMIT, key="k", since=NOW)}, False),
        (QUEUED, {"wait": AWAITED.wait}, False),
        (QUEUED, {"wait": Wait(cause=Cause.LIMIT, key="k", since=NOW)}, False),
        # It was paused meanwhile, and the pause has ended or has not.
        (QUEUED, {"wait": Wait(cause=Cause.PAUSE, key="type=a", since=NOW)}, True),
        (QUEUED, {"wait": Wait(cause=Cause.PAUSE, key="type=a", since=NOW), "due": END + SECOND}, False),
        (PARKED, {"wait": Wait(cause=Cause.PAUSE, key="type=a", since=NOW)}, False),
        (QUEUED, {"holds": 1, "hold_cause": HoldCause.OUTAGE}, False),
        (PARKED, {"wait": Wait(cause=Cause.INPUT, key="rates", since=NOW)}, True),
        *(
            (base, {"state": state}, False)
            for base in (PARKED, QUEUED)
            for state in State
            if state not in {State.PARKED, State.QUEUED}
        ),
    ],
)
def test_a_job_waits_for_a_signal_until_the_end_of_its_wait_and_for_nothing_else(
    base: Job, changes: dict[str, Any], *, waits: bool
) -> None:
    assert waits_for_signal(with_changes(base, **changes)) is waits

"""What the end of a run writes: waits for a signal, parked jobs, and what a settle keeps of errors and history."""

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, an_error, with_changes
from tidemill.domain.attempt.outcomes import (
    Awaits,
    Continued,
    Expired,
    Failed,
    Held,
    Outcome,
    Parked,
    Settlement,
    Snoozed,
    Stopped,
    Succeeded,
    errors_after,
    history_after,
    new_errors,
    open_runs_after,
    outcome_of,
    rests_on_look,
    settlement,
    state_until,
)
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.errors import MissingInput, PermanentJobError
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import CRASHED, AttemptError, DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import BOUNDED, HoldCause
from tidemill.domain.waiting.signals import Awaited, Signal
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Wait
from tidemill.names import FLOW_TYPE

POLICY = RetryPolicy(max_attempts=3, backoff_seconds=4)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
RUNNING = a_job(state=State.RUNNING, attempt=2, hops=4, owner="mine")
A_LINE = Wait(cause=Cause.LIMIT, key="k", since=NOW)
FAILED = Failed(error_class="ValueError", message="no")


def settled(job: Job, outcome: Outcome, policy: RetryPolicy = POLICY) -> Settlement:
    return settlement(job, outcome, policy, now=NOW, draw=0.5)


#: Each outcome, and whether a flow rests it on what its run has seen of its nodes.
RESTS = [
    (Succeeded(), True),
    (Awaits(cause=Cause.SIGNAL, name="look", after=MINUTE), True),
    (dataclasses.replace(FAILED, death=DeathReason.GAVE_UP), True),
    *(
        (dataclasses.replace(FAILED, death=death), False)
        for death in (None, *DeathReason)
        if death is not DeathReason.GAVE_UP
    ),
    (Snoozed(after=MINUTE), False),
    (Continued(checkpoint=None), False),
    (Held(until=NOW, cause=HoldCause.OUTAGE), False),
    (Parked(A_LINE), False),
    (Stopped(), False),
    (Expired(), False),
]


@pytest.mark.parametrize(("outcome", "rests"), RESTS)
def test_a_flow_that_waits_or_ends_by_its_nodes_rests_on_its_look(outcome: Outcome, *, rests: bool) -> None:
    assert rests_on_look(outcome) is rests
    assert settled(replace(RUNNING, type=FLOW_TYPE), outcome).rests_on_look is rests
    assert not settled(RUNNING, outcome).rests_on_look


def a_signal(name: str = "approval", **changes: Any) -> Signal:
    return replace(Signal(name=name, at=NOW - MINUTE, data="1"), **changes)


def waited_for(name: str = "approval", cause: Cause = Cause.SIGNAL, times: int = 1) -> Awaited:
    return Awaited(cause=cause, name=name, since=NOW - HOUR, until=NOW, times=times)


def awaits(**changes: Any) -> Awaits:
    return replace(Awaits(cause=Cause.SIGNAL, name="approval", after=HOUR), **changes)


#: What every wait of `RUNNING` writes.
WAITING = Settlement(
    state=State.PARKED,
    cause="waits: approval",
    due=NOW + HOUR,
    attempt=1,
    hops=5,
    wait=Wait(cause=Cause.SIGNAL, key="approval", since=NOW),
    awaited=Awaited(cause=Cause.SIGNAL, name="approval", since=NOW, until=NOW + HOUR, times=1),
    signals_known=0,
)


def test_a_run_that_waits_for_a_signal_is_parked_until_the_end_of_its_wait() -> None:
    assert settled(RUNNING, awaits()) == WAITING
    assert settled(RUNNING, awaits(checkpoint="7")) == replace(WAITING, checkpoint="7")


def test_a_short_wait_is_left_to_the_lane() -> None:
    quarter = timedelta(minutes=15)
    short, long = (settled(RUNNING, awaits(after=after)) for after in (quarter, quarter + MILLISECOND))

    assert (short.state, short.due, short.wait) == (State.QUEUED, NOW + quarter, None)
    assert (long.state, long.due, long.wait) == (State.PARKED, NOW + quarter + MILLISECOND, WAITING.wait)
    assert short.awaited == replace(WAITING.awaited or waited_for(), until=NOW + quarter)


def test_a_signal_that_has_come_while_the_job_ran_starts_it_again_at_once() -> None:
    came = (a_signal(),)
    at_once = replace(WAITING, state=State.QUEUED, due=NOW, wait=None, signals_known=1)

    assert settled(RUNNING, awaits(arrived=came)) == at_once
    assert settled(with_changes(RUNNING, signals=came), awaits()) == at_once


@pytest.mark.parametrize(
    "signals",
    [(), (a_signal("other"),), (a_signal(used=True),)],
    ids=["none", "another name", "one that was used"],
)
def test_any_other_signal_leaves_it_waiting(signals: tuple[Signal, ...]) -> None:
    assert settled(RUNNING, awaits(arrived=signals)) == replace(WAITING, signals_known=len(signals))


def test_a_run_that_waits_again_for_the_signal_that_it_has_seen_uses_it() -> None:
    seen = (a_signal(), a_signal("other"))
    job = with_changes(RUNNING, signals=seen, awaited=waited_for())

    written = settled(job, awaits())

    assert written.signals == (a_signal(used=True), a_signal("other"))
    assert (written.state, written.due, written.signals_known) == (State.PARKED, NOW + HOUR, 2)
    assert written.awaited is not None
    assert written.awaited.times == 2


def test_a_run_that_had_waited_for_another_signal_takes_this_one_at_once() -> None:
    job = with_changes(RUNNING, signals=(a_signal(),), awaited=waited_for("other"))

    written = settled(job, awaits())

    assert (written.state, written.due, written.signals) == (State.QUEUED, NOW, None)


@pytest.mark.parametrize(("times", "state"), [(0, State.PARKED), (2, State.PARKED), (3, State.DEAD)])
def test_a_job_dies_after_the_most_waits_for_one_input_in_a_row(times: int, state: State) -> None:
    missing = outcome_of(MissingInput("rates", after=HOUR, most=3))
    job = with_changes(RUNNING, awaited=waited_for("rates", Cause.INPUT, times) if times else None)

    written = settled(job, missing)

    assert (written.state, written.signals_known) == (state, 0)
    if state is State.DEAD:
        assert (written.death, written.cause) == (DeathReason.MISSING_INPUT, "missing input")
        assert written.error == AttemptError(
            attempt=2,
            at=NOW,
            error_class="MissingInput",
            message="the input rates did not come in 3 waits",
            retryable=False,
        )


def test_an_input_that_comes_in_time_saves_a_job_from_its_last_wait() -> None:
    job = with_changes(RUNNING, awaited=waited_for("rates", Cause.INPUT, 3), attempt=1)
    missing = awaits(cause=Cause.INPUT, name="rates", most=3, arrived=(a_signal("rates"),))

    written = settled(job, missing)

    assert (written.state, written.due, written.signals_known) == (State.QUEUED, NOW, 1)
    assert written.awaited is not None
    assert written.awaited.times == 3


def test_a_wait_without_a_bound_may_be_repeated() -> None:
    job = with_changes(RUNNING, awaited=waited_for(times=99))

    assert settled(job, awaits()).state is State.PARKED


@pytest.mark.parametrize("cause", [Cause.LIMIT, Cause.PAUSE, Cause.TYPE, Cause.BREAKER])
def test_a_parked_job_waits_in_its_line_and_is_held_by_its_cause(cause: Cause) -> None:
    wait = Wait(cause=cause, key="k", since=NOW)
    job = with_changes(RUNNING, holds=1, hold_cause=HoldCause(cause))

    assert settled(job, Parked(wait)) == Settlement(
        state=State.PARKED,
        cause=f"held: {cause}",
        due=NOW + LONGEST_PARKED,
        attempt=1,
        holds=2,
        hold_cause=HoldCause(cause),
        wait=wait,
    )


@pytest.mark.parametrize("first", HoldCause)
def test_only_the_count_of_a_bounded_cause_goes_on_after_a_hold_by_another(first: HoldCause) -> None:
    second = HoldCause.VERSION if first is HoldCause.OUTAGE else HoldCause.OUTAGE
    job = with_changes(RUNNING, holds=3, hold_cause=first)

    between = settled(job, Held(until=NOW, cause=second))
    again = settled(with_changes(job, **held_as(between)), Held(until=NOW, cause=first))

    assert (between.holds, between.hold_cause) == (1, second)
    assert (again.holds, again.other_holds) == (4 if first in BOUNDED else 1, ((second, 1),))


def held_as(written: Settlement) -> dict[str, Any]:
    return {name: getattr(written, name) for name in ("holds", "hold_cause", "other_holds")}


def test_a_job_that_is_held_until_its_time_in_a_line_names_the_line() -> None:
    assert settled(RUNNING, Held(until=NOW + SECOND, cause=HoldCause.LIMIT, wait=A_LINE)).wait == A_LINE


def test_the_death_of_a_batch_carries_its_jobs_and_its_checkpoint() -> None:
    failure = dataclasses.replace(FAILED, death=DeathReason.GAVE_UP, follow_ups=(a_job(id="then"),), checkpoint="7")

    written = settled(RUNNING, failure)

    assert ([job.id for job in written.follow_ups], written.checkpoint) == (["then"], "7")


@pytest.mark.parametrize(("attempt", "delay"), [(1, 2), (2, 4)])
def test_a_failure_waits_for_its_backoff_and_its_traceback_is_kept(attempt: int, delay: int) -> None:
    written = settled(replace(RUNNING, attempt=attempt), dataclasses.replace(FAILED, traceback="frames"))

    assert written.due == NOW + delay * SECOND
    assert written.error is not None
    assert written.error.traceback == "frames"


def test_a_last_attempt_that_gives_up_dies_of_that() -> None:
    last = replace(RUNNING, attempt=3)

    assert settled(last, dataclasses.replace(FAILED, death=DeathReason.PERMANENT)).death is DeathReason.PERMANENT
    assert settled(last, FAILED).death is DeathReason.EXHAUSTED


def test_two_failures_with_different_exceptions_of_one_text_are_equal() -> None:
    assert dataclasses.replace(FAILED, cause=ValueError("no")) == dataclasses.replace(FAILED, cause=ValueError("no"))
    assert outcome_of(PermanentJobError("no")) == Failed(
        error_class="PermanentJobError", message="no", death=DeathReason.PERMANENT
    )


#: A job whose second run was lost, and the third one ends.
AFTER_A_LOST_RUN = a_job(state=State.RUNNING, attempt=3, open_runs=2, claimed_at=NOW, errors=(an_error(attempt=1),))


def kept(outcome: Outcome, job: Job = AFTER_A_LOST_RUN) -> list[tuple[int, str]]:
    return [(error.attempt, error.error_class) for error in errors_after(job, settled(job, outcome))]


def test_the_end_of_a_run_adds_the_errors_of_lost_runs_before_its_own() -> None:
    first, lost = (1, "ValueError"), (2, CRASHED)

    assert kept(FAILED) == [first, lost, (3, "ValueError")]
    assert kept(Succeeded()) == kept(Snoozed(after=SECOND)) == [first, lost]


def test_a_hold_leaves_the_errors_of_lost_runs_to_the_next_run() -> None:
    held = settled(AFTER_A_LOST_RUN, Held(until=NOW, cause=HoldCause.OUTAGE))

    assert new_errors(AFTER_A_LOST_RUN, held) == ()
    assert errors_after(AFTER_A_LOST_RUN, held) == AFTER_A_LOST_RUN.errors


def test_a_job_keeps_its_last_ten_errors() -> None:
    job = a_job(state=State.RUNNING, attempt=1, errors=tuple(an_error(attempt=number) for number in range(1, 11)))

    assert [error.attempt for error in errors_after(job, settled(job, FAILED))] == [*range(2, 11), 1]
    assert errors_after(RUNNING, settled(RUNNING, Succeeded())) == ()


@pytest.mark.parametrize(
    ("outcome", "tracebacks"),
    [
        (dataclasses.replace(FAILED, traceback="new"), ["", "", "new"]),
        (Snoozed(after=SECOND), ["", "b"]),
        (Succeeded(), ["", ""]),
    ],
)
def test_only_the_last_error_keeps_its_traceback_until_a_success(outcome: Outcome, tracebacks: list[str]) -> None:
    job = replace(RUNNING, errors=tuple(an_error(attempt=1, traceback=frames) for frames in "ab"))

    assert [error.traceback for error in errors_after(job, settled(job, outcome))] == tracebacks


@pytest.mark.parametrize(
    ("written", "cause"),
    [
        (Settlement(state=State.QUEUED, cause=Why.SNOOZED), "snoozed"),
        (Settlement(state=State.SUCCEEDED), "succeeded"),
    ],
)
def test_the_history_ends_with_the_end_of_the_run(written: Settlement, cause: str) -> None:
    claim = Transition(at=NOW, state=State.RUNNING, cause=Why.CLAIMED)
    job = replace(RUNNING, history=(claim,))

    ended = Transition(at=NOW + SECOND, state=written.state, cause=cause, attempt=2)
    assert history_after(job, written, now=NOW + SECOND) == (claim, ended)


def test_a_hold_takes_its_claim_back_and_any_other_end_is_recorded() -> None:
    held = settled(AFTER_A_LOST_RUN, Held(until=NOW, cause=HoldCause.OUTAGE))

    assert open_runs_after(AFTER_A_LOST_RUN, held) == 1
    assert open_runs_after(AFTER_A_LOST_RUN, settled(AFTER_A_LOST_RUN, FAILED)) == 0


@pytest.mark.parametrize(
    ("ahead", "state"),
    [(timedelta(minutes=15), State.RETRYING), (timedelta(minutes=15, milliseconds=1), State.SCHEDULED)],
)
def test_a_time_beyond_the_delay_of_a_lane_is_left_to_the_scheduler(ahead: timedelta, state: State) -> None:
    assert state_until(NOW + ahead, now=NOW, otherwise=State.RETRYING) is state

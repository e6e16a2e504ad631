"""The pure function from an outcome to its settlement."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, with_changes
from tidemill.domain.attempt.outcomes import (
    LONGEST_MESSAGE_CHARACTERS,
    Continued,
    Expired,
    Failed,
    Held,
    Outcome,
    Settlement,
    Snoozed,
    Stopped,
    Succeeded,
    outcome_before_run,
    outcome_of,
    settlement,
)
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.dispatch.dispatch import LONGEST_LANE_DELAY
from tidemill.domain.errors import CancelRequestedError, PermanentJobError, RetryAfter, TidemillError
from tidemill.domain.history import Why
from tidemill.domain.job import AttemptError, DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.signals import Awaited
from tidemill.domain.waiting.waiting import Cause

POLICY = RetryPolicy(max_attempts=3, backoff_seconds=4)


def _running(attempt: int = 1) -> Job:
    return a_job(state=State.RUNNING, attempt=attempt, owner="mine")


def _settled(outcome: Outcome, *, attempt: int = 1) -> Settlement:
    return settlement(_running(attempt), outcome, POLICY, now=NOW, draw=0.5)


def test_success_carries_its_result_and_its_writes() -> None:
    writes: Any = [{"Put": {}}]

    assert _settled(Succeeded(result="1", writes=writes)) == Settlement(
        state=State.SUCCEEDED, result="1", writes=writes
    )


def test_a_failure_is_retried_after_its_backoff() -> None:
    due = NOW + 4 * SECOND

    assert _settled(Failed(error_class="ValueError", message="no"), attempt=2) == Settlement(
        state=State.RETRYING,
        cause="ValueError",
        due=due,
        error=AttemptError(attempt=2, at=NOW, error_class="ValueError", message="no", retryable=True, next_due=due),
    )


@pytest.mark.parametrize("attempt", [3, 4])
def test_the_last_failure_kills_the_job(attempt: int) -> None:
    written = _settled(Failed(error_class="ValueError", message="no"), attempt=attempt)

    assert (written.state, written.death, written.due) == (State.DEAD, DeathReason.EXHAUSTED, None)
    assert written.error is not None
    assert (written.error.retryable, written.error.next_due) == (True, None)


@pytest.mark.parametrize("death", DeathReason)
def test_a_failure_with_a_reason_to_die_kills_the_job_at_once(death: DeathReason) -> None:
    written = _settled(Failed(error_class="ValueError", message="no", death=death))

    assert (written.state, written.death, written.due) == (State.DEAD, death, None)
    assert written.error is not None
    assert not written.error.retryable


@given(st.text(st.characters(), max_size=2 * LONGEST_MESSAGE_CHARACTERS))
def test_an_error_message_is_cut_and_can_be_stored(message: str) -> None:
    error = _settled(Failed(error_class="ValueError", message=message)).error

    assert error is not None
    assert len(error.message) == min(len(message), LONGEST_MESSAGE_CHARACTERS)
    error.message.encode()


def test_an_error_keeps_the_first_500_characters_of_its_message() -> None:
    """The errors of a job must leave room in its document for the rest."""
    error = _settled(Failed(error_class="ValueError", message="x" * 499 + "yz")).error

    assert error is not None
    assert error.message == "x" * 499 + "y"


def test_half_a_surrogate_pair_in_a_message_is_replaced() -> None:
    error = _settled(Failed(error_class="ValueError", message="caf\ud83d")).error

    assert error is not None
    assert error.message == "caf?"


@pytest.mark.parametrize("error", [PermanentJobError("no"), type("OursError", (PermanentJobError,), {})("no")])
def test_a_permanent_error_and_its_kinds_are_permanent(error: Exception) -> None:
    assert Failed.because(error) == Failed(error_class=type(error).__name__, message="no", death=DeathReason.PERMANENT)


@pytest.mark.parametrize("error", [ValueError("no"), TidemillError("no"), SystemExit("no")])
def test_any_other_error_is_tried_again(error: BaseException) -> None:
    assert Failed.because(error) == Failed(error_class=type(error).__name__, message="no")


def test_an_error_without_readable_text_fails_its_attempt_like_any_other() -> None:
    class SpeechlessError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("speechless")

    assert Failed.because(SpeechlessError()).message == "the text of the error could not be read"


def test_retry_after_sets_its_own_delay_and_counts_as_an_attempt() -> None:
    written = _settled(Failed.because(RetryAfter(77)), attempt=2)

    assert (written.state, written.due, written.attempt) == (State.RETRYING, NOW + 77 * SECOND, None)
    assert _settled(Failed.because(RetryAfter(77)), attempt=3).state is State.DEAD


@pytest.mark.parametrize(
    ("asked", "delay"),
    [(-1, timedelta(0)), (float("inf"), timedelta(days=30)), (float("nan"), timedelta(days=30)), (1.5, 1.5 * SECOND)],
)
def test_retry_after_stays_within_reason(asked: float, delay: timedelta) -> None:
    assert RetryAfter(asked).delay == delay


def test_giving_up_kills_the_job_with_its_reason() -> None:
    written = _settled(Failed(error_class="GiveUp", message="no such address", death=DeathReason.GAVE_UP))

    assert (written.state, written.death) == (State.DEAD, DeathReason.GAVE_UP)


def test_a_snooze_gives_the_attempt_back_and_counts_a_hop() -> None:
    job = with_changes(_running(2), hops=4, holds=3)

    assert settlement(job, Snoozed(after=5 * SECOND), POLICY, now=NOW, draw=0.5) == Settlement(
        state=State.QUEUED, cause=Why.SNOOZED, due=NOW + 5 * SECOND, attempt=1, hops=5
    )


def test_a_continuation_goes_on_from_its_checkpoint_with_all_attempts_before_it() -> None:
    job = replace(_running(3), hops=4)

    assert settlement(job, Continued(checkpoint="[1]"), POLICY, now=NOW, draw=0.5) == Settlement(
        state=State.QUEUED, cause=Why.CONTINUED, due=NOW, attempt=0, hops=5, checkpoint="[1]"
    )


@pytest.mark.parametrize("outcome", [Snoozed(after=SECOND), Continued(checkpoint=None)])
def test_a_run_that_goes_on_without_a_wait_ends_the_row_of_waits(outcome: Outcome) -> None:
    awaited = Awaited(cause=Cause.INPUT, name="page", since=NOW, until=NOW, times=3)
    job = with_changes(_running(1), awaited=awaited)

    written = settlement(job, outcome, POLICY, now=NOW, draw=0.5)
    again = settlement(with_changes(job, awaited=replace(awaited, times=0)), outcome, POLICY, now=NOW, draw=0.5)

    assert written.awaited == replace(awaited, times=0)
    assert again.awaited is None  # It is so already.


def test_a_job_that_is_held_back_keeps_its_attempts_and_its_hops() -> None:
    job = with_changes(_running(3), holds=1, hold_cause=HoldCause.LIMIT)

    held = Held(until=NOW + SECOND, cause=HoldCause.LIMIT)
    assert settlement(job, held, POLICY, now=NOW, draw=0.5) == Settlement(
        state=State.QUEUED, cause="held: limit", due=NOW + SECOND, attempt=2, holds=2, hold_cause=HoldCause.LIMIT
    )


def test_holds_are_counted_anew_when_their_cause_changes() -> None:
    job = with_changes(_running(3), holds=19, hold_cause=HoldCause.LIMIT)

    written = settlement(job, Held(until=NOW, cause=HoldCause.OUTAGE), POLICY, now=NOW, draw=0.5)

    assert (written.holds, written.hold_cause) == (1, HoldCause.OUTAGE)


def test_a_job_that_was_asked_to_stop_and_did_is_cancelled() -> None:
    assert _settled(Stopped()) == Settlement(state=State.CANCELLED)


@pytest.mark.parametrize(
    "outcome",
    [
        Snoozed(after=LONGEST_LANE_DELAY + MILLISECOND),
        Continued(checkpoint=None, after=LONGEST_LANE_DELAY + MILLISECOND),
        Held(until=NOW + LONGEST_LANE_DELAY + MILLISECOND, cause=HoldCause.LIMIT),
        Failed(error_class="ValueError", message="no", delay=LONGEST_LANE_DELAY + MILLISECOND),
    ],
    ids=["snooze", "continue", "held", "retry"],
)
def test_a_delay_beyond_that_of_a_lane_is_left_to_the_scheduler(outcome: Outcome) -> None:
    written = _settled(outcome)

    assert (written.state, written.due) == (State.SCHEDULED, NOW + LONGEST_LANE_DELAY + MILLISECOND)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (CancelRequestedError("stop"), Stopped()),
        (ValueError("no"), Failed(error_class="ValueError", message="no")),
    ],
)
def test_an_exception_of_the_handler_is_an_outcome(error: Exception, outcome: Outcome) -> None:
    assert outcome_of(error) == outcome


def test_a_run_that_is_allowed_begins() -> None:
    job = with_changes(_running(3), hops=POLICY.max_hops, deadline=NOW)

    assert outcome_before_run(job, POLICY, now=NOW) is None


@pytest.mark.parametrize(
    ("changes", "death"),
    [
        ({"attempt": 4, "open_runs": 2}, DeathReason.CRASHED),
        ({"attempt": 4}, DeathReason.EXHAUSTED),
        ({"attempt": 4, "hops": 1_001}, DeathReason.HOPS),
        ({"attempt": 4, "hops": 1_001, "deadline": NOW - MILLISECOND}, DeathReason.DEADLINE),
    ],
)
def test_the_rules_that_refuse_a_run_apply_in_order(changes: Any, death: DeathReason) -> None:
    outcome = outcome_before_run(with_changes(_running(), **changes), POLICY, now=NOW)

    assert isinstance(outcome, Failed)
    assert outcome.death is death
    assert _settled(outcome).state is State.DEAD


def test_a_job_that_is_too_old_expires_without_a_failure() -> None:
    job = with_changes(_running(4), useful_until=NOW - MILLISECOND, hops=1_001)

    assert outcome_before_run(job, POLICY, now=NOW) == Expired()
    assert outcome_before_run(with_changes(_running(), useful_until=NOW), POLICY, now=NOW) is None
    assert _settled(Expired()) == Settlement(state=State.EXPIRED)


def test_a_missed_deadline_is_a_death_also_for_a_job_that_is_too_old() -> None:
    job = with_changes(_running(), useful_until=NOW - SECOND, deadline=NOW - SECOND)

    outcome = outcome_before_run(job, POLICY, now=NOW)

    assert isinstance(outcome, Failed)
    assert outcome.death is DeathReason.DEADLINE


def test_a_cancel_comes_before_every_other_end() -> None:
    job = with_changes(
        _running(4), cancel_requested_at=NOW, deadline=NOW - SECOND, useful_until=NOW - SECOND, hops=2_000
    )

    assert outcome_before_run(job, POLICY, now=NOW) == Stopped()


def test_an_attempt_beyond_the_last_means_that_earlier_ones_crashed() -> None:
    outcome = outcome_before_run(with_changes(_running(4), open_runs=2), POLICY, now=NOW)

    assert isinstance(outcome, Failed)
    assert outcome.message[:12] == "3 runs began"


def test_an_attempt_beyond_the_last_after_reported_failures_means_that_the_type_allows_fewer_now() -> None:
    outcome = outcome_before_run(with_changes(_running(6), open_runs=1), POLICY, now=NOW)

    assert isinstance(outcome, Failed)
    assert (outcome.error_class, outcome.death) == ("NoAttemptLeft", DeathReason.EXHAUSTED)
    assert outcome.message == "5 attempts failed; the job type allows 3 by now"


def test_settle_refuses_to_write_a_state_that_the_table_does_not_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.domain.attempt.outcomes.allowed", lambda *_: False)

    with pytest.raises(AssertionError, match="settle may not write succeeded"):
        _settled(Succeeded())


def test_a_job_is_past_its_time_from_the_instant_at_which_it_expires() -> None:
    job = with_changes(_running(), expires_at=NOW)

    assert job.lifetime.over(NOW)
    assert not job.lifetime.over(NOW - SECOND)
    assert not with_changes(job, expires_at=None).lifetime.over(NOW)

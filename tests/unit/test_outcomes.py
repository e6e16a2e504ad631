"""Outcome → settlement, the one pure function."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.domain.errors import MillraceError, PermanentJobError
from shared.domain.job import AttemptError, DeathReason, Job
from shared.domain.outcomes import (
    LONGEST_MESSAGE_CHARACTERS,
    Failed,
    Settlement,
    Succeeded,
    crash_outcome,
    settlement,
)
from shared.domain.retry import RetryPolicy
from shared.domain.states import State
from tests.support.builders import NOW, SECOND, a_job

POLICY = RetryPolicy(max_attempts=3, backoff_seconds=4)


def _running(attempt: int = 1) -> Job:
    return a_job(state=State.RUNNING, attempt=attempt, owner="mine")


def _settled(outcome: Succeeded | Failed, *, attempt: int = 1) -> Settlement:
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
def test_a_message_is_cut_and_can_be_stored_whatever_it_says(message: str) -> None:
    error = _settled(Failed(error_class="ValueError", message=message)).error

    assert error is not None
    assert len(error.message) == min(len(message), LONGEST_MESSAGE_CHARACTERS)
    error.message.encode()


def test_half_a_surrogate_pair_in_a_message_is_replaced() -> None:
    error = _settled(Failed(error_class="ValueError", message="caf\ud83d")).error

    assert error is not None
    assert error.message == "caf?"


@pytest.mark.parametrize("error", [PermanentJobError("no"), type("OursError", (PermanentJobError,), {})("no")])
def test_a_permanent_error_and_its_kinds_are_permanent(error: Exception) -> None:
    assert Failed.because(error) == Failed(error_class=type(error).__name__, message="no", death=DeathReason.PERMANENT)


@pytest.mark.parametrize("error", [ValueError("no"), MillraceError("no"), SystemExit("no")])
def test_any_other_error_is_tried_again(error: BaseException) -> None:
    assert Failed.because(error) == Failed(error_class=type(error).__name__, message="no")


def test_an_error_that_cannot_say_what_it_is_fails_its_attempt_like_any_other() -> None:
    class SpeechlessError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("speechless")

    assert Failed.because(SpeechlessError()).message == "it could not say what it is"


@pytest.mark.parametrize("attempt", [1, 3])
def test_an_attempt_that_is_allowed_is_no_crash(attempt: int) -> None:
    assert crash_outcome(_running(attempt), POLICY) is None


def test_an_attempt_beyond_the_last_means_that_earlier_ones_crashed() -> None:
    outcome = crash_outcome(_running(4), POLICY)

    assert outcome is not None
    assert (outcome.death, outcome.message[:12]) == (DeathReason.CRASHED, "3 runs began")
    assert _settled(outcome, attempt=4).state is State.DEAD


def test_settle_refuses_to_write_a_state_that_the_table_does_not_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.domain.outcomes.allowed", lambda *_: False)

    with pytest.raises(AssertionError, match="settle may not write succeeded"):
        _settled(Succeeded())


def test_a_job_is_past_its_time_from_the_instant_at_which_it_expires() -> None:
    job = replace(_running(), expires_at=NOW)

    assert job.expired(NOW)
    assert not job.expired(NOW - SECOND)
    assert not replace(job, expires_at=None).expired(NOW)

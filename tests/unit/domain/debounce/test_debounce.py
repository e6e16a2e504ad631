"""What a submission does to the job of its burst: its time, its state, its generation and what it counts."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import A_BURST, A_SIGNAL, MILLISECOND, NOW, SECOND, a_job, with_changes
from tidemill.domain.debounce.debounce import joined_at, longest, moved, quiet_after, takes_submissions, useful_longer
from tidemill.domain.debounce.debounce_record import DebounceWindow
from tidemill.domain.job import Job, Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.steps.steps import Step
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.domain.waiting.holds import HoldCause

MINUTE = timedelta(minutes=1)
#: `NOW` has milliseconds, and times of debounced jobs have none.
WHOLE = NOW.replace(microsecond=0) + SECOND


def a_debounced_job(due: datetime = WHOLE + 30 * SECOND, **changes: Any) -> Job:
    burst = replace(A_BURST, sent_for=due, until=WHOLE + 300 * SECOND)
    return a_job(**{"due": due, "run_at": due, "burst": burst} | changes)


def test_a_time_is_rounded_up_to_whole_seconds() -> None:
    assert quiet_after(NOW, 30 * SECOND) == quiet_after(WHOLE, 30 * SECOND) == WHOLE + 30 * SECOND
    assert quiet_after(NOW + SECOND, 30 * SECOND) == WHOLE + 31 * SECOND
    assert quiet_after(NOW, timedelta(0)) == NOW


def test_the_longest_is_ten_times_the_debounce_and_never_more_than_a_job_may_wait() -> None:
    assert longest(30 * SECOND) == 300 * SECOND
    assert longest(LONGEST_SPAN) == LONGEST_SPAN


def test_a_burst_begins_without_moves_and_with_the_payload_of_its_first_submission() -> None:
    burst = DebounceWindow(name="b", until=NOW, sent_for=NOW, last="first")

    assert (burst.replaces, burst.moves, burst.first_moved_at) == (False, 0, None)
    assert (burst.replacements, burst.first_replaced_at, burst.joined_at) == (0, None, None)


def test_a_submission_that_joins_is_later_than_all_before_it_also_by_a_slow_clock() -> None:
    burst = replace(A_BURST, joined_at=NOW)

    assert joined_at(A_BURST, now=NOW) == NOW
    assert joined_at(burst, now=NOW + SECOND) == NOW + SECOND
    assert joined_at(burst, now=NOW - SECOND) == joined_at(burst, now=NOW) == NOW + MILLISECOND


def test_a_submission_moves_the_job_on() -> None:
    job = a_debounced_job(useful_until=WHOLE + 90 * SECOND)

    later = moved(job, WHOLE + 40 * SECOND, now=NOW + 10 * SECOND)

    assert (later.due, later.run_at, later.state) == (WHOLE + 40 * SECOND, WHOLE + 40 * SECOND, State.QUEUED)
    assert later.lifetime.useful_until == WHOLE + 100 * SECOND
    assert later.burst
    assert (later.burst.moves, later.burst.first_moved_at) == (1, NOW + 10 * SECOND)


def test_the_first_move_is_remembered() -> None:
    job = moved(a_debounced_job(), WHOLE + 31 * SECOND, now=NOW + SECOND)

    later = moved(job, WHOLE + 32 * SECOND, now=NOW + 2 * SECOND)

    assert later.burst
    assert (later.burst.moves, later.burst.first_moved_at) == (2, NOW + SECOND)


def test_a_message_under_way_serves_a_later_time() -> None:
    later = moved(a_debounced_job(), WHOLE + 40 * SECOND, now=NOW + 10 * SECOND)

    assert later.generation == 1
    assert later.burst
    assert later.burst.sent_for == WHOLE + 30 * SECOND


def test_a_message_under_way_serves_a_job_that_comes_back_to_its_first_time() -> None:
    on = moved(a_debounced_job(), WHOLE + 40 * SECOND, now=NOW + 10 * SECOND)

    back = moved(on, WHOLE + 30 * SECOND, now=NOW + 11 * SECOND)

    assert (back.due, back.generation) == (WHOLE + 30 * SECOND, 1)


@pytest.mark.parametrize(
    ("due", "now"),
    [
        # It has come, and was put back.
        (WHOLE + 70 * SECOND, WHOLE + 30 * SECOND),
        # It would come too late.
        (WHOLE + 20 * SECOND, NOW),
    ],
)
def test_another_message_is_sent_where_that_of_the_last_dispatch_does_not_serve(due: datetime, now: datetime) -> None:
    later = moved(a_debounced_job(), due, now=now)

    assert (later.generation, later.due) == (2, due)
    assert later.burst
    assert later.burst.sent_for == due


def test_a_job_is_scheduled_beyond_the_delay_of_its_lane_and_queued_again_before() -> None:
    far = replace(A_BURST, until=WHOLE + 100 * MINUTE, sent_for=WHOLE + 10 * MINUTE)
    job = a_debounced_job(WHOLE + 10 * MINUTE, burst=far)

    scheduled = moved(job, WHOLE + 20 * MINUTE, now=NOW)
    assert (scheduled.state, scheduled.generation) == (State.SCHEDULED, 2)

    on = moved(scheduled, WHOLE + 21 * MINUTE, now=NOW)
    assert (on.state, on.generation) == (State.SCHEDULED, 3)

    near = moved(on, WHOLE + 5 * MINUTE, now=NOW)
    assert (near.state, near.generation) == (State.QUEUED, 4)


def test_a_scheduled_job_has_no_message_under_way_when_its_time_has_come_near() -> None:
    due = WHOLE + 20 * MINUTE
    far = replace(A_BURST, until=WHOLE + 100 * MINUTE, sent_for=due)
    job = a_debounced_job(due, burst=far, state=State.SCHEDULED)

    later = moved(job, due + MINUTE, now=NOW + 10 * MINUTE)

    assert (later.state, later.generation) == (State.QUEUED, 2)
    assert later.burst
    assert later.burst.sent_for == due + MINUTE


def test_no_submission_moves_the_job_beyond_the_end_of_its_burst() -> None:
    later = moved(a_debounced_job(), WHOLE + 400 * SECOND, now=NOW + 20 * SECOND)

    assert later.due == WHOLE + 300 * SECOND
    assert moved(later, WHOLE + 500 * SECOND, now=NOW + 30 * SECOND) == later


def test_a_late_job_keeps_its_time_after_the_end_of_its_burst() -> None:
    job = a_debounced_job()

    assert moved(job, WHOLE + 400 * SECOND, now=WHOLE + 300 * SECOND) == job


@pytest.mark.parametrize(
    "changes", [{"claimed_at": NOW}, {"state": State.PARKED}, {"state": State.RETRYING}, {"burst": None}]
)
def test_a_job_that_a_worker_or_an_operator_held_back_keeps_its_time(changes: dict[str, Any]) -> None:
    job = a_debounced_job(**changes)

    assert moved(job, WHOLE + 60 * SECOND, now=NOW) == job


@pytest.mark.parametrize("state", [State.SCHEDULED, State.QUEUED, State.RETRYING, State.PARKED])
def test_a_job_takes_submissions_until_its_handler_begins(state: State) -> None:
    held: dict[str, Any] = {"claimed_at": NOW, "holds": 2, "hold_cause": HoldCause.LIMIT}

    assert takes_submissions(a_debounced_job(state=state))
    assert takes_submissions(a_debounced_job(state=state, **held))


@pytest.mark.parametrize(
    "changes",
    [
        *({"state": state} for state in State if state.terminal),
        {"state": State.RUNNING, "attempt": 1},
        {"state": State.RUNNING},
        {"state": State.RETRYING, "attempt": 1},
        {"hops": 1},
        {"releases": 1},
        {"redrives": (Redrive(token="t", at=NOW, by="ada"),)},
        {"burst": None},
    ],
)
def test_a_job_that_has_begun_takes_no_submission(changes: dict[str, Any]) -> None:
    assert not takes_submissions(a_debounced_job(**changes))


def test_a_job_with_steps_or_progress_takes_none() -> None:
    """A handler that meets an open breaker uses up no attempt, and leaves them."""
    step = Step(name="charge", at=NOW, attempt=1, result="1")
    assert not takes_submissions(a_debounced_job(state=State.PARKED, steps=(step,)))
    assert not takes_submissions(a_debounced_job(state=State.PARKED, checkpoint_at=NOW))


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("state", [State.SCHEDULED, State.QUEUED, State.RETRYING, State.PARKED])
def test_a_job_that_has_got_a_signal_takes_none(state: State, *, used: bool) -> None:
    assert not takes_submissions(a_debounced_job(state=state, signals=(replace(A_SIGNAL, used=used),)))


def test_a_job_that_is_due_is_not_moved_to_now() -> None:
    job, now = a_debounced_job(WHOLE), WHOLE + SECOND

    assert moved(job, None, now=now) == job
    assert moved(job, now, now=now).generation == 2


def test_a_job_that_waits_is_moved_to_now() -> None:
    job = moved(a_debounced_job(), None, now=WHOLE)

    assert (job.due, job.generation) == (WHOLE, 2)


def test_a_job_that_keeps_its_time_is_of_use_from_the_last_submission_on() -> None:
    age, now = 10 * SECOND, WHOLE + 60 * SECOND
    job = a_debounced_job(WHOLE, useful_until=WHOLE + age, state=State.PARKED)
    submission = a_debounced_job(now + 30 * SECOND, useful_until=now + 30 * SECOND + age)

    assert useful_longer(job, submission, now=now).lifetime.useful_until == now + age
    # The submissions of a second agree.
    assert useful_longer(job, submission, now=now - SECOND / 2).lifetime.useful_until == now + age


def test_a_job_that_was_moved_is_of_use_from_its_new_time_on() -> None:
    age, due = 10 * SECOND, WHOLE + 40 * SECOND
    submission = a_debounced_job(due, useful_until=due + age)
    # A pause has held it back beyond its first age.
    job = moved(a_debounced_job(WHOLE + 30 * SECOND, useful_until=WHOLE), due, now=NOW)

    assert useful_longer(job, submission, now=NOW).lifetime.useful_until == due + age


def test_a_job_that_starts_at_once_is_of_use_from_the_submission_on() -> None:
    job = a_debounced_job(WHOLE, run_at=None, useful_until=WHOLE + SECOND)
    submission = a_debounced_job(WHOLE + MINUTE, useful_until=WHOLE + MINUTE + 5 * SECOND)

    assert useful_longer(job, submission, now=WHOLE + MINUTE).lifetime.useful_until == WHOLE + MINUTE + 5 * SECOND
    assert useful_longer(job, replace(submission, due=None), now=WHOLE + MINUTE) == job


def test_a_job_never_expires_once_one_submission_has_no_age() -> None:
    ageless = a_debounced_job(WHOLE)
    old = with_changes(ageless, useful_until=WHOLE)

    assert useful_longer(ageless, old, now=WHOLE + SECOND) == ageless
    assert useful_longer(old, ageless, now=WHOLE + SECOND) == ageless

"""Decides which change of a document requests which message."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, an_error, reference_to, with_changes
from tidemill.domain.dispatch.dispatch import (
    LONGEST_LANE_DELAY,
    Dispatch,
    dispatch,
    has_begun,
    may_be_sent,
    message_at_once,
)
from tidemill.domain.dispatch.job_message import DeadLetter
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import DISPATCHED_STATES, Lane

QUEUED = a_job()
RUNNING = replace(QUEUED, state=State.RUNNING, attempt=1)
RETRYING = replace(RUNNING, state=State.RETRYING, generation=2)
DEAD = replace(RUNNING, state=State.DEAD, due=None, death=DeathReason.EXHAUSTED, errors=(an_error(),))


def test_a_new_job_is_dispatched() -> None:
    assert dispatch(None, QUEUED, now=NOW) == Dispatch(lane=Lane.DEFAULT, body=reference_to(QUEUED), delay_seconds=0)


def test_a_dead_job_sends_a_dead_letter_message_with_details() -> None:
    dead_letter = DeadLetter(
        reference=reference_to(DEAD), type=DEAD.type, death="attempts used up", error_class="ValueError", attempts=1
    )

    assert dispatch(RUNNING, DEAD, now=NOW) == Dispatch(lane=Lane.DEFAULT, body=dead_letter, delay_seconds=0)


def test_a_dead_letter_message_may_lack_a_reason_and_an_error() -> None:
    sent = dispatch(RUNNING, replace(DEAD, death=None, errors=()), now=NOW)

    assert sent is not None
    assert isinstance(sent.body, DeadLetter)
    assert (sent.body.death, sent.body.error_class) == ("", "")


def test_a_dead_letter_message_names_the_last_error() -> None:
    sent = dispatch(RUNNING, replace(DEAD, errors=(an_error(error_class="KeyError"), *DEAD.errors)), now=NOW)

    assert sent is not None
    assert isinstance(sent.body, DeadLetter)
    assert sent.body.error_class == "ValueError"


def test_a_dead_letter_message_of_an_undeliverable_job_names_no_error() -> None:
    sent = dispatch(RETRYING, replace(DEAD, death=DeathReason.UNDELIVERABLE), now=NOW)

    assert sent is not None
    assert isinstance(sent.body, DeadLetter)
    assert (sent.body.death, sent.body.error_class) == ("undeliverable", "")


@pytest.mark.parametrize(
    ("job", "sent"),
    [
        (QUEUED, True),
        (RETRYING, True),
        (replace(QUEUED, due=None), True),
        (replace(QUEUED, due=NOW - SECOND), True),
        (replace(QUEUED, due=NOW + MILLISECOND), False),
        (replace(RETRYING, due=NOW + SECOND), False),
        # A worker may claim it without a message.
        (with_changes(QUEUED, group="g"), False),
        *((replace(QUEUED, state=state), False) for state in State if state not in {State.QUEUED, State.RETRYING}),
    ],
)
def test_the_writer_of_a_job_may_send_the_message_that_is_due_at_once(job: Job, *, sent: bool) -> None:
    assert message_at_once(job, now=NOW) == (dispatch(None, job, now=NOW) if sent else None)
    assert may_be_sent(None, job, now=NOW) is sent


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        (RUNNING, RETRYING, True),
        (RUNNING, replace(RETRYING, due=NOW + SECOND), False),
        (RUNNING, with_changes(RETRYING, group="g"), False),
        # The run was lost, or no run has ended.
        (RUNNING, replace(RETRYING, generation=1), False),
        (RETRYING, replace(RETRYING, generation=3), False),
        (DEAD, replace(QUEUED, generation=2), False),
        (replace(QUEUED, state=State.SCHEDULED), replace(QUEUED, generation=2), False),
    ],
)
def test_of_changes_only_the_end_of_a_run_may_be_sent_by_its_writer(before: Job, after: Job, *, sent: bool) -> None:
    assert may_be_sent(before, after, now=NOW) is sent


@pytest.mark.parametrize(
    ("current", "begun"),
    [
        (QUEUED, False),
        (with_changes(QUEUED, nudged_at=NOW), False),
        (RUNNING, True),
        (replace(QUEUED, state=State.CANCELLED), True),
        (replace(QUEUED, generation=2), True),
        # An earlier document, which a read that is a little old returns.
        (replace(QUEUED, generation=0), False),
        (replace(RUNNING, generation=0), False),
    ],
)
def test_a_message_has_done_its_work_once_its_job_is_claimed_or_has_moved_on(current: Job, *, begun: bool) -> None:
    assert has_begun(current, QUEUED) is begun


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (RUNNING, RETRYING),
        (DEAD, replace(QUEUED, generation=2)),
        (QUEUED, with_changes(QUEUED, nudged_at=NOW)),
        (with_changes(QUEUED, nudged_at=NOW), with_changes(QUEUED, nudged_at=NOW + SECOND)),
        (RUNNING, with_changes(RUNNING, state=State.RETRYING, nudged_at=NOW)),
        (RETRYING, replace(RETRYING, generation=3)),
        (replace(QUEUED, state=State.SCHEDULED), QUEUED),
        (replace(QUEUED, state=State.WAITING, due=None), QUEUED),
    ],
    ids=["retry", "redrive", "nudge", "another nudge", "nudge of a lost run", "another generation", "wake", "turn"],
)
def test_a_change_that_requests_a_run_is_dispatched_at_its_generation(before: object, after: object) -> None:
    sent = dispatch(before, after, now=NOW)  # type: ignore[arg-type]  # jobs, all of them

    assert sent is not None
    assert sent.body == reference_to(after)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (QUEUED, RUNNING),
        (RUNNING, replace(RUNNING, attempt=2)),
        (RUNNING, replace(RUNNING, state=State.SUCCEEDED, due=None)),
        (DEAD, DEAD),
        (QUEUED, QUEUED),
        (None, replace(QUEUED, state=State.SCHEDULED)),
        (None, replace(QUEUED, state=State.WAITING, due=None)),
        (QUEUED, replace(QUEUED, state=State.CANCELLED, due=None)),
        (RUNNING, with_changes(RUNNING, checkpoint="{}")),
        (DEAD, None),
        (None, None),
    ],
    ids=[
        *("claim", "claim again", "success", "dead still", "no change"),
        *("scheduled", "waiting", "cancel", "checkpoint", "expiry", "nothing"),
    ],
)
def test_any_other_change_owes_no_message(before: object, after: object) -> None:
    assert dispatch(before, after, now=NOW) is None  # type: ignore[arg-type]  # jobs, all of them


@given(st.timedeltas(min_value=timedelta(days=-1), max_value=timedelta(days=1)))
def test_the_delay_is_rounded_up_and_capped_at_the_longest_of_sqs(ahead: timedelta) -> None:
    sent = dispatch(None, replace(QUEUED, due=NOW + ahead), now=NOW)

    assert sent is not None
    assert 0 <= sent.delay_seconds <= LONGEST_LANE_DELAY.total_seconds()
    if timedelta(0) <= ahead <= LONGEST_LANE_DELAY:
        assert ahead <= sent.delay_seconds * SECOND < ahead + SECOND


@pytest.mark.parametrize(
    ("due", "delay_seconds"),
    [(NOW + MILLISECOND, 1), (NOW + SECOND, 1), (NOW + SECOND + MILLISECOND, 2), (NOW + 901 * SECOND, 900), (None, 0)],
)
def test_no_message_is_delivered_early(due: object, delay_seconds: int) -> None:
    sent = dispatch(None, replace(QUEUED, due=due), now=NOW)  # type: ignore[arg-type]

    assert sent is not None
    assert sent.delay_seconds == delay_seconds


def test_the_stream_filter_passes_every_state_that_may_owe_a_message() -> None:
    assert set(DISPATCHED_STATES) == {State.QUEUED, State.RETRYING, State.DEAD}

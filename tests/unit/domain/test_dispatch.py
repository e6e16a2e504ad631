"""Decides which change of a document owes which message."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, an_error, reference_to
from tidemill.domain.dispatch import LONGEST_LANE_DELAY, Dispatch, dispatch
from tidemill.domain.job import DeadLetter, DeathReason
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (RUNNING, RETRYING),
        (DEAD, replace(QUEUED, generation=2)),
        (QUEUED, replace(QUEUED, nudged_at=NOW)),
        (replace(QUEUED, nudged_at=NOW), replace(QUEUED, nudged_at=NOW + SECOND)),
        (RUNNING, replace(RUNNING, state=State.RETRYING, nudged_at=NOW)),
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
        (RUNNING, replace(RUNNING, checkpoint="{}")),
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

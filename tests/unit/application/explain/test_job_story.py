"""The history of a job as sentences: each transition, with what other fields of the document add to it."""

from datetime import timedelta

import pytest

from tests.support.builders import A_BURST, NOW, SECOND, a_job
from tidemill.application.explain.job_story import story
from tidemill.domain.corrections.undo import Undone
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import CRASHED, AttemptError, DeathReason, Job, Redrive
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.waiting import Cause, Wait

WORKER = "0f9a2c1e-request/3f2a91"
OPERATOR = "arn:aws:sts::111122223333:assumed-role/Operator/ada"
ERROR = AttemptError(
    attempt=1,
    at=NOW + 2 * SECOND,
    error_class="ValueError",
    message="no",
    retryable=True,
    next_due=NOW + 9 * SECOND,
)


def at(seconds: float, state: State, cause: str, attempt: int | None = None, worker: str = "") -> Transition:
    return Transition(at=NOW + seconds * SECOND, state=state, cause=cause, attempt=attempt, worker=worker)


def sentences(job: Job) -> list[str]:
    return [what for _, what in story(job)]


def test_each_transition_has_the_details_of_its_error_and_its_redrive() -> None:
    job = a_job(
        state=State.SUCCEEDED,
        attempt=1,
        claimed_at=NOW + 61 * SECOND,
        ready_at=NOW + 60 * SECOND,
        finished_at=NOW + 62 * SECOND,
        errors=(
            ERROR,
            replace(ERROR, attempt=2, at=NOW + 11 * SECOND, retryable=False, error_class="GiveUp", next_due=None),
        ),
        redrives=(
            Redrive(token="t", at=NOW + 60 * SECOND, by=OPERATOR, reason="row added", death=DeathReason.GAVE_UP),
        ),
        history=(
            at(1, State.RUNNING, Why.CLAIMED, worker=WORKER),
            at(2, State.RETRYING, "ValueError", 1),
            at(10, State.RUNNING, Why.CLAIMED, worker=WORKER),
            at(11, State.DEAD, "gave up", 2),
            at(60, State.QUEUED, Why.REDRIVEN),
            at(61, State.RUNNING, Why.CLAIMED, worker="request/77aa00"),
            at(62, State.SUCCEEDED, Why.SUCCEEDED, 1),
        ),
    )
    assert sentences(job) == [
        "submitted to the lane default",
        "attempt 1 began, on version 3f2a91",
        "attempt 1 failed: ValueError: no; the next may begin after 7s",
        "attempt 2 began, on version 3f2a91",
        "attempt 2 failed, for good: GiveUp: no; it died: gave up",
        f"redriven by {OPERATOR}, because: row added, after it had died: gave up",
        "attempt 1 began 1s after it was ready, on version 77aa00",
        "attempt 1 succeeded",
    ]


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (at(5, State.QUEUED, Why.SNOOZED, 0), "its handler asked for a later run: snoozed"),
        (
            at(5, State.RETRYING, Why.CONFLICT, 1),
            "attempt 1 was given back, because other transactions conflicted with it",
        ),
        (
            at(5, State.RETRYING, Why.UNANSWERED),
            "the claim of attempt 1 was given back, because its worker got no answer",
        ),
        (
            at(5, State.QUEUED, Why.RESTORED, 1),
            "attempt 1 was given back, because the table was restored to a moment at which it ran",
        ),
        (at(5, State.QUEUED, Why.LOOK), "it was asked to look at its nodes"),
        (at(5, State.QUEUED, Why.DUE), "its time was near, so wake put it on its lane"),
        (at(5, State.QUEUED, Why.TURN), "it became the head of its group"),
        (at(5, State.QUEUED, Why.ROOM), "it was released from its line"),
        (at(5, State.QUEUED, Why.NUDGED), "its message was lost or late, so it was sent again"),
        (at(5, State.RETRYING, Why.RUN_LOST), "the lease of attempt 0 was over, so its message was sent again"),
        (at(5, State.DEAD, "undeliverable"), "it died: undeliverable"),
        (at(5, State.RETRYING, "held: outage", 0), "attempt 0 was given back, because the store did not respond"),
        (
            at(5, State.PARKED, "held: breaker", 3),
            "attempt 3 was given back, because the breaker of its downstream was open",
        ),
        (at(5, State.RETRYING, "held: by a newer version", 3), "attempt 3 was given back: by a newer version"),
        (at(5, State.RETRYING, "of a newer version", 3), "attempt 3 ended: retrying, of a newer version"),
    ],
)
def test_the_sentence_of_each_cause(entry: Transition, sentence: str) -> None:
    job = a_job(history=(entry,))
    assert sentences(job)[1:] == [sentence]


@pytest.mark.parametrize("cause", HoldCause)
def test_each_cause_of_a_hold_has_words_of_its_own(cause: HoldCause) -> None:
    (sentence,) = sentences(a_job(history=(at(5, State.RETRYING, f"held: {cause}", 1),)))[1:]
    assert sentence.startswith("attempt 1 was given back, because ")


@pytest.mark.parametrize("cause", Why)
def test_each_cause_of_a_transition_has_words_of_its_own(cause: Why) -> None:
    undone = Undone(job_id="v", at=NOW + 9 * SECOND, by="ada", reason="a typo")
    (sentence,) = sentences(a_job(burst=A_BURST, undone=undone, history=(at(5, State.RETRYING, cause, 1),)))[1:2]
    assert not sentence.endswith(f"ended: {State.RETRYING}, {cause}")


def test_a_parked_job_names_what_it_waits_for() -> None:
    wait = Wait(cause=Cause.LIMIT, key="mail#a", since=NOW + SECOND)
    job = a_job(state=State.PARKED, wait=wait, history=(at(1, State.PARKED, "held: limit", 0),))
    assert sentences(job)[1:] == ["it was parked, and waits for its limit mail#a"]


def test_a_cancel_names_its_author_and_reason() -> None:
    job = a_job(
        state=State.CANCELLED,
        cancel_requested_at=NOW + 2 * SECOND,
        cancel=CancelRequest(by=OPERATOR, reason="a typo"),
        finished_at=NOW + 3 * SECOND,
        history=(at(1, State.RUNNING, Why.CLAIMED), at(3, State.CANCELLED, Why.CANCELLED, 1)),
    )
    assert sentences(job)[2:] == [
        f"a cancel was requested while it ran by {OPERATOR}, because: a typo",
        f"cancelled by {OPERATOR}, because: a typo",
    ]


def test_a_cancel_before_a_redrive_does_not_name_the_author_of_a_later_one() -> None:
    job = a_job(
        state=State.CANCELLED,
        cancel=CancelRequest(by=OPERATOR),
        history=(at(2, State.RUNNING, Why.CANCEL_REQUESTED), at(9, State.CANCELLED, Why.CANCELLED)),
    )
    assert sentences(job)[1:] == ["a cancel was requested while it ran", f"cancelled by {OPERATOR}"]


def test_what_the_history_has_dropped_or_never_had_comes_from_the_other_fields() -> None:
    job = a_job(
        state=State.RUNNING,
        attempt=14,
        open_runs=2,
        claimed_at=NOW + 100 * SECOND,
        checkpoint_at=NOW + 101 * SECOND,
        progress_done=3,
        progress_total=10,
        errors=(ERROR,),
        history=(at(100, State.RUNNING, Why.CLAIMED, worker=WORKER),),
    )
    assert [what.partition(":")[0] for what in sentences(job)] == [
        "submitted to the lane default",
        "attempt 1 failed",
        "attempt 14 began, on version 3f2a91",
        "attempt 13 failed",
        "the handler saved a checkpoint, 3 of 10 done",
    ]


def test_a_job_that_crashed_too_often_has_no_further_attempt() -> None:
    message = "2 runs began, and the last did not end: killed, out of memory or out of time"
    lost = replace(ERROR, error_class=CRASHED, message="lost", next_due=None)
    job = a_job(
        state=State.DEAD,
        attempt=3,
        claimed_at=NOW + 9 * SECOND,
        finished_at=NOW + 9 * SECOND,
        errors=(
            replace(lost, attempt=1, at=NOW + SECOND),
            replace(lost, attempt=2, at=NOW + 5 * SECOND),
            replace(lost, attempt=3, at=NOW + 9 * SECOND, message=message, retryable=False),
        ),
        history=(
            at(1, State.RUNNING, Why.CLAIMED),
            at(5, State.RUNNING, Why.CLAIMED),
            at(9, State.RUNNING, Why.CLAIMED),
            at(9, State.DEAD, DeathReason.CRASHED, 3),
        ),
    )
    assert [what for what in sentences(job) if "Crashed: lost" not in what] == [
        "submitted to the lane default",
        "attempt 1 began",
        "attempt 2 began",
        "a worker claimed it",
        f"no further run began: Crashed: {message}; it died: crashed too often",
    ]


def test_a_job_that_came_too_late_was_claimed_and_did_not_begin() -> None:
    history = (at(1, State.RUNNING, Why.CLAIMED), at(2, State.CANCELLED, Why.EXPIRED, 1))
    job = a_job(state=State.CANCELLED, attempt=1, claimed_at=NOW, finished_at=NOW + 2 * SECOND, history=history)
    assert "a worker claimed it" in sentences(job)
    assert not [sentence for sentence in sentences(job) if "attempt 1 began" in sentence]


def test_a_lost_run_is_not_hidden_by_another_transition_of_its_time() -> None:
    claims = (at(1, State.RUNNING, Why.CLAIMED), at(1, State.RETRYING, Why.RUN_LOST))
    job = a_job(state=State.RETRYING, attempt=1, open_runs=1, claimed_at=NOW + SECOND, history=claims)
    assert any(sentence.startswith("attempt 1 failed: Crashed") for sentence in sentences(job))


def test_the_story_of_a_document_without_history_comes_from_its_fields() -> None:
    """A version before the history wrote the document."""
    job = a_job(
        state=State.DEAD,
        created_at=NOW,
        claimed_at=NOW + 10 * SECOND,
        ready_at=NOW + 9 * SECOND,
        nudged_at=NOW + 8.5 * SECOND,
        errors=(ERROR,),
        redrives=(Redrive(token="t", at=NOW + 8 * SECOND, by="operator", death=DeathReason.EXHAUSTED),),
        death=DeathReason.GAVE_UP,
        finished_at=NOW + 11 * SECOND,
    )
    assert sentences(job) == [
        "submitted to the lane default",
        "attempt 1 failed: ValueError: no; the next may begin after 7s",
        "redriven by operator, after it had died: attempts used up",
        "its message was lost or late, so it was sent again",
        "the last run began 1s after it was ready",
        "it died: gave up",
    ]


def test_the_submission_names_group_parent_and_time() -> None:
    job = a_job(group="g", sequence=3, parent="p", run_at=NOW + timedelta(hours=2))
    assert sentences(job) == [
        "submitted to the lane default, to run 2h later, as number 3 of the group g, by the end of job p"
    ]

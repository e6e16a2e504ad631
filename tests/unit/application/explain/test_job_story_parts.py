"""The parts of the story of a job that come from one field of its document each."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import A_BURST, A_STEP, NOW, SECOND, a_job, an_error
from tidemill.application.explain.job_story import story
from tidemill.domain.corrections.undo import Undone
from tidemill.domain.flows.flow_place import FlowPlace
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import DeathReason, Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause, Line, Wait

AT = NOW + 5 * SECOND


def _after_submission(**changes: Any) -> list[str]:
    """What the story says after the submission."""
    return [what for _, what in story(a_job(**changes))][1:]


def _entry(state: State, cause: str, attempt: int | None = None, **changes: Any) -> Transition:
    return replace(Transition(at=AT, state=state, cause=cause, attempt=attempt), **changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"burst": A_BURST}, ", debounced, for 2h at most"),
        # The time of a debounced job is that of its burst.
        ({"burst": A_BURST, "run_at": NOW + SECOND}, ", debounced, for 2h at most"),
        ({"run_at": NOW + 3 * SECOND}, ", to run 3s later"),
        ({"group": "g", "sequence": 3}, ", as number 3 of the group g"),
        ({"batch": "b"}, ", into the batch b"),
        ({"flow": FlowPlace(id="f", node="n")}, ", as the node n of the flow f"),
        ({"parent": "p"}, ", by the end of job p"),
        ({"undoes": "u"}, ", to undo job u"),
        ({"supersedes": "s"}, ", to supersede job s"),
    ],
)
def test_the_submission_says_what_it_was_for(changes: dict[str, Any], says: str) -> None:
    assert [what for _, what in story(a_job(**changes))] == [f"submitted to the lane default{says}"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"checkpoint_at": AT}, "the handler saved a checkpoint"),
        ({"checkpoint_at": AT, "progress_done": 0}, "the handler saved a checkpoint, 0 done"),
        ({"checkpoint_at": AT, "progress_done": 1, "progress_total": 9}, "the handler saved a checkpoint, 1 of 9 done"),
        ({"steps": (replace(A_STEP, at=AT, attempt=2),)}, "attempt 2 recorded the step charge"),
        (
            {"state": State.PARKED, "wait": Wait(cause=Cause.LIMIT, key="mail#a", since=AT)},
            "it was parked, and waits for its limit mail#a",
        ),
        (
            {"state": State.QUEUED, "wait": Wait(cause=Cause.LIMIT, key="mail#a", since=AT)},
            "it had to wait for its limit mail#a",
        ),
        (
            {"state": State.PARKED, "wait": Wait(cause=Cause.PAUSE, key="type=a", since=AT)},
            "it was parked, and waits for the end of its pause type=a",
        ),
        (
            {"state": State.PARKED, "wait": Wait(cause=Cause.LIMIT, key=Line.for_cap("t", "bulk").key, since=AT)},
            "it was parked, and waits for the cap of tenant t in lane bulk",
        ),
        ({"nudged_at": AT}, "its message was lost or late, so it was sent again"),
        ({"finished_at": AT, "state": State.CANCELLED}, "cancelled"),
        ({"finished_at": AT, "state": State.DEAD, "death": DeathReason.GAVE_UP}, "it died: gave up"),
        ({"claimed_at": AT, "state": State.RUNNING, "attempt": 2}, "attempt 2 began"),
        ({"claimed_at": AT, "state": State.RETRYING, "attempt": 2}, "the last run began"),
        ({"claimed_at": AT, "ready_at": NOW, "state": State.RETRYING}, "the last run began 5s after it was ready"),
        (
            {"errors": (an_error(at=AT, retryable=False),)},
            "attempt 1 failed, for good: ValueError: no such thing",
        ),
        ({"redrives": (Redrive(token="t", at=AT, by="ada"),)}, "redriven by ada"),
        (
            {"redrives": (Redrive(token="t", at=AT, by="ada", reason="why", edited=True, death=DeathReason.GAVE_UP),)},
            "redriven with another payload by ada, because: why, after it had died: gave up",
        ),
    ],
)
def test_a_field_without_a_transition_has_a_sentence(changes: dict[str, Any], says: str) -> None:
    assert _after_submission(**changes) == [says]


@pytest.mark.parametrize(
    ("entry", "changes"),
    [
        (_entry(State.RUNNING, Why.CLAIMED, 1), {"claimed_at": AT, "attempt": 1, "state": State.RETRYING}),
        (_entry(State.QUEUED, Why.REDRIVEN), {"redrives": (Redrive(token="t", at=AT, by="ada"),)}),
        (_entry(State.RETRYING, "ValueError", 1), {"errors": (an_error(at=AT),), "attempt": 1}),
        (
            _entry(State.PARKED, "held: limit", 1),
            {"state": State.PARKED, "wait": Wait(cause=Cause.LIMIT, key="m", since=AT), "attempt": 1},
        ),
        (_entry(State.QUEUED, Why.NUDGED), {"nudged_at": AT}),
        (_entry(State.SUCCEEDED, Why.SUCCEEDED, 1), {"finished_at": AT, "state": State.SUCCEEDED, "attempt": 1}),
    ],
)
def test_what_a_transition_shows_is_shown_once(entry: Transition, changes: dict[str, Any]) -> None:
    assert len(_after_submission(history=(entry,), **changes)) == 1


@pytest.mark.parametrize(
    ("entry", "changes", "says"),
    [
        (_entry(State.QUEUED, Why.REDRIVEN), {}, "redriven"),
        (_entry(State.QUEUED, Why.EDITED), {}, "redriven"),
        (_entry(State.CANCELLED, Why.CANCELLED), {}, "cancelled"),
        # An older version noted no attempt.
        (_entry(State.SUCCEEDED, Why.SUCCEEDED), {}, "a run succeeded"),
        (_entry(State.PARKED, Why.PAUSED), {}, "it was parked, because an operator had paused it"),
        (_entry(State.PARKED, "waits: signal pay", 1), {}, "attempt 1 ended, to wait for signal pay"),
        (_entry(State.QUEUED, "signal pay"), {}, "the signal pay came, for which it waited"),
        (_entry(State.DEAD, "signal pay", 1), {}, "it died: signal pay"),
        (
            _entry(State.RUNNING, Why.CLAIMED, 1),
            {"claimed_at": AT + SECOND, "ready_at": NOW, "attempt": 1},
            "attempt 1 began",
        ),
        (
            _entry(State.RUNNING, Why.CLAIMED, 1),
            {"claimed_at": AT, "ready_at": AT - timedelta(minutes=2), "attempt": 1},
            "attempt 1 began 2m after it was ready",
        ),
        (
            _entry(State.DEAD, "attempts used up", 1),
            {"errors": (an_error(at=AT),)},
            "attempt 1 failed: ValueError: no such thing; it died: attempts used up",
        ),
        # A wait that began at another time is another one.
        (
            _entry(State.PARKED, "held: limit", 1),
            {"wait": Wait(cause=Cause.LIMIT, key="m", since=AT + SECOND)},
            "attempt 1 was given back, because its limit left no room",
        ),
        (
            _entry(State.RETRYING, "held: limit", 1),
            {"wait": Wait(cause=Cause.LIMIT, key="m", since=AT)},
            "attempt 1 was given back, because its limit left no room",
        ),
    ],
)
def test_a_transition_has_what_other_fields_add_to_it(entry: Transition, changes: dict[str, Any], says: str) -> None:
    assert _after_submission(history=(entry,), **changes)[0] == says


@pytest.mark.parametrize(("reason", "why"), [("a typo", ", because: a typo"), ("", "")])
def test_an_undo_names_its_job_its_author_and_a_reason_if_there_is_one(reason: str, why: str) -> None:
    undone = Undone(job_id="v", at=AT, by="ada", reason=reason)

    assert _after_submission(state=State.SUCCEEDED, undone=undone) == [f"undone by job v, as ada asked{why}"]


@pytest.mark.parametrize(
    ("cause", "changes", "says"),
    [
        (Why.CLAIMED, {"nudged_at": AT}, "its message was lost or late, so it was sent again"),
        (Why.CLAIMED, {"checkpoint_at": AT, "finished_at": AT, "state": State.CANCELLED}, "cancelled"),
        (Why.NUDGED, {"claimed_at": AT, "state": State.RETRYING}, "the last run began"),
    ],
)
def test_what_happened_at_the_time_of_another_transition_is_shown(
    cause: Why, changes: dict[str, Any], says: str
) -> None:
    history = (_entry(State.RUNNING if cause is Why.CLAIMED else State.QUEUED, cause, 1),)

    assert says in _after_submission(history=history, **changes)


def test_each_redrive_has_its_own_author() -> None:
    redrives = (Redrive(token="t", at=AT, by="ada"), Redrive(token="u", at=AT + SECOND, by="bob"))
    history = (_entry(State.QUEUED, Why.REDRIVEN), _entry(State.QUEUED, Why.REDRIVEN, at=AT + SECOND))

    assert _after_submission(history=history, redrives=redrives) == ["redriven by ada", "redriven by bob"]


def test_a_story_is_in_order_of_time() -> None:
    changes = {"nudged_at": NOW + 2 * SECOND, "checkpoint_at": NOW + SECOND, "finished_at": NOW + 3 * SECOND}

    moments = [at for at, _ in story(a_job(state=State.CANCELLED, **changes))]

    assert moments == [NOW + n * SECOND for n in range(4)]

"""The flight recorder of a job: the numbers of its claims, its texts, and what a reader sees beside it."""

from datetime import datetime

import pytest

from tests.support.builders import A_BURST, NOW, SECOND, a_job
from tidemill.domain.corrections.undo import Undone
from tidemill.domain.history import Transition, Why, version_of, with_attempts
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.history_entries import WRITE_UNIT_BYTES, kept


def an_entry(cause: str, *, at: datetime = NOW, attempt: int | None = None) -> Transition:
    return Transition(at=at, state="running", cause=cause, attempt=attempt)


CLAIMED, LOST, UNANSWERED = (an_entry(cause) for cause in (Why.CLAIMED, Why.RUN_LOST, Why.UNANSWERED))


@pytest.mark.parametrize(
    ("history", "attempt", "numbers"),
    [
        ([], 0, []),
        ([CLAIMED], 1, [1]),
        # Each run was lost, and counts.
        ([CLAIMED, CLAIMED, CLAIMED], 3, [1, 2, 3]),
        ([CLAIMED, LOST, CLAIMED, LOST], 2, [1, 1, 2, 2]),
        # The claim was given back.
        ([CLAIMED, UNANSWERED, CLAIMED], 1, [1, 1, 1]),
        ([CLAIMED, UNANSWERED], 0, [1, 1]),
        # The end of a run says its number; a hold gives it back, and a redrive counts anew.
        ([CLAIMED, an_entry("ValueError", attempt=1), CLAIMED], 2, [1, 1, 2]),
        ([CLAIMED, an_entry("held: limit", attempt=1), CLAIMED], 1, [1, 1, 1]),
        ([CLAIMED, an_entry("dead", attempt=7), an_entry(Why.REDRIVEN), CLAIMED], 1, [7, 7, None, 1]),
        # Entries without a number lie between a claim and the end of its run.
        ([CLAIMED, an_entry(Why.DUE), an_entry("dead", attempt=3)], 3, [3, None, 3]),
    ],
)
def test_each_claim_has_the_number_that_what_follows_it_gives(
    history: list[Transition], attempt: int, numbers: list[int | None]
) -> None:
    numbered = with_attempts(history, attempt=attempt)

    assert [entry.attempt for entry in numbered] == numbers
    assert [replace(entry, attempt=None) for entry in numbered] == [replace(entry, attempt=None) for entry in history]


def test_the_texts_of_an_entry_are_cut() -> None:
    long = Transition(at=NOW, state="dead", cause="c" * 41, worker="w" * 61)
    short = Transition(at=NOW, state="dead", cause="c" * 40, worker="w" * 60)

    assert (long.cause, long.worker) == (short.cause, short.worker) == ("c" * 40, "w" * 60)


@pytest.mark.parametrize(
    ("worker", "version"),
    [("", ""), ("request", ""), ("request/v7", "v7"), ("a/b/c", "b/c"), ("r" * 55 + "/" + "v" * 9, "v" * 4)],
)
def test_the_version_of_a_worker_follows_its_request_and_is_cut_with_it(worker: str, version: str) -> None:
    assert version_of(worker) == version
    assert Transition(at=NOW, state="running", cause=Why.CLAIMED, worker=worker).version == version


@pytest.mark.parametrize(("other", "least"), [("payload", 4), ("errors", 12), ("redrives", 12)])
def test_a_job_keeps_four_transitions_at_any_size_and_twelve_after_a_failure(other: str, least: int) -> None:
    history = tuple(an_entry(f"E{number}") for number in range(20))
    full = {other: {"S": "x" * (WRITE_UNIT_BYTES - len(other))}}

    assert kept(history, full) == history[-least:]
    assert kept(history[:3], full) == history[:3]


def seen(job: Job) -> list[tuple[str, str, float]]:
    return [(entry.state, entry.cause, (entry.at - NOW).total_seconds()) for entry in job.known_history]


def test_a_reader_sees_the_acceptance_before_all_else() -> None:
    assert seen(a_job()) == [("accepted", "accepted", 0)]
    assert seen(a_job(history=(CLAIMED,))) == [("accepted", "accepted", 0), ("running", "claimed", 0)]


def test_a_reader_sees_what_other_fields_say_at_its_time() -> None:
    """Behind the entries of the same time, since their writes came first."""
    history = tuple(an_entry(f"E{number}", at=NOW + number * SECOND) for number in (1, 2, 3))
    undone, cancelled = Undone(job_id="undo", at=NOW + SECOND, by="ada"), NOW + 2 * SECOND
    burst = replace(A_BURST, first_moved_at=NOW + SECOND / 2, first_replaced_at=NOW + 3 * SECOND)
    job = a_job(history=history, cancel_requested_at=cancelled, burst=burst, undone=undone, state=State.SUCCEEDED)

    assert seen(job) == [
        ("accepted", "accepted", 0),
        ("moved", "moved", 0.5),
        ("running", "E1", 1),
        ("running", "E2", 2),
        ("running", "cancel requested", 2),
        ("running", "E3", 3),
        ("payload replaced", "payload replaced", 3),
        ("succeeded", "undone", 1),
    ]


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ([an_entry(Why.MOVED, at=NOW + SECOND)], 1),
        ([an_entry(Why.MOVED, at=NOW)], 2),
        ([an_entry(Why.DUE, at=NOW + SECOND)], 1),
    ],
    ids=["this one", "a later one", "another entry of the same time"],
)
def test_a_first_move_that_the_history_records_is_shown_once(recorded: list[Transition], shown: int) -> None:
    job = a_job(history=tuple(recorded), burst=replace(A_BURST, first_moved_at=NOW + SECOND))

    assert [cause for _, cause, _ in seen(job)].count(Why.MOVED) == shown


def test_a_burst_that_never_moved_adds_nothing() -> None:
    assert seen(a_job(burst=A_BURST)) == [("accepted", "accepted", 0)]


def test_a_lost_run_is_dated_by_its_own_claim() -> None:
    history = tuple(an_entry(Why.CLAIMED, at=NOW + number * SECOND) for number in (1, 2, 3))
    lost = an_entry(Why.RUN_LOST, at=NOW + 9 * SECOND)
    history = (history[0], lost, *history[1:])
    job = a_job(state=State.RUNNING, attempt=3, open_runs=3, history=history, claimed_at=NOW + 3 * SECOND)

    assert [(error.attempt, error.at) for error in job.lost] == [(1, NOW + SECOND), (2, NOW + 2 * SECOND)]

"""What a job document shows of its runs: lost ones, holds, expiry and the end of a run."""

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import A_BURST, NOW, SECOND, a_job, an_error, with_changes
from tidemill.domain.corrections.undo import Undo
from tidemill.domain.dispatch.job_message import DeadLetter, FirstRun, Reference, reference_of, reference_to
from tidemill.domain.flows.ended_nodes import EndedNodes
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import CRASHED, DeathReason, Redrive
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause, known_cause
from tidemill.domain.waiting.signals import Awaited, Signal
from tidemill.domain.waiting.waiting import Cause
from tidemill.names import Lane


@pytest.mark.parametrize(
    ("state", "attempt", "open_runs", "lost"),
    [
        (State.QUEUED, 0, 0, []),
        (State.RUNNING, 1, 1, []),
        (State.RUNNING, 2, 2, [1]),
        (State.RUNNING, 4, 3, [2, 3]),
        (State.RETRYING, 1, 1, [1]),
        (State.RETRYING, 3, 2, [2, 3]),
        (State.RETRYING, 3, 0, []),
        # A continuation has set the attempts back meanwhile.
        (State.RETRYING, 1, 3, [1]),
    ],
)
def test_each_run_without_a_result_is_an_error(state: State, attempt: int, open_runs: int, lost: list[int]) -> None:
    job = a_job(state=state, attempt=attempt, open_runs=open_runs, claimed_at=NOW + SECOND, errors=(an_error(),))

    assert [error.attempt for error in job.lost] == lost
    assert {(error.error_class, error.at, error.retryable) for error in job.lost} <= {(CRASHED, NOW + SECOND, True)}
    assert job.suspect is bool(lost)
    assert job.known_errors == (an_error(), *job.lost)


@pytest.mark.parametrize(
    ("changes", "error_class"),
    [
        ({}, None),
        ({"errors": (an_error(), an_error(error_class="KeyError"))}, "KeyError"),
        ({"errors": (an_error(),), "attempt": 1, "open_runs": 1}, CRASHED),
        ({"errors": (an_error(),), "death": DeathReason.EXHAUSTED}, "ValueError"),
        # No worker claimed it after that error.
        ({"errors": (an_error(),), "death": DeathReason.UNDELIVERABLE}, None),
        ({"attempt": 1, "open_runs": 1, "death": DeathReason.UNDELIVERABLE}, None),
    ],
)
def test_the_last_error_explains_the_state_but_for_a_death_as_undeliverable(
    changes: dict[str, Any], error_class: str | None
) -> None:
    error = a_job(**{"state": State.DEAD} | changes).causing_error

    assert (error and error.error_class) == error_class


def test_an_error_of_a_lost_run_is_dated_by_the_submission_if_no_claim_is_known() -> None:
    (error,) = a_job(state=State.RETRYING, attempt=1, open_runs=1).lost

    assert error.at == NOW
    assert error.message.startswith("the worker exited without reporting a result")


def test_holds_count_only_for_their_cause() -> None:
    job = a_job(holds=3, hold_cause=HoldCause.OUTAGE, other_holds=((HoldCause.VERSION, 7),))

    assert [job.held_by(cause) for cause in (HoldCause.OUTAGE, HoldCause.LIMIT, HoldCause.VERSION)] == [3, 0, 7]


@pytest.mark.parametrize(("attempt", "in_row"), [(2, 5), (3, 0)])
def test_a_lost_run_ends_a_row_of_holds(attempt: int, in_row: int) -> None:
    """A hold gives its attempt back, so the next claim has that number again."""
    held = Transition(at=NOW, state=State.QUEUED, cause=f"held: {HoldCause.SUSPECT}", attempt=2)
    claims = (Transition(at=NOW, state=State.RUNNING, cause=Why.CLAIMED),) * (attempt - 1)
    others = ((HoldCause.OUTAGE, in_row),)
    job = a_job(attempt=attempt, holds=5, hold_cause=HoldCause.SUSPECT, other_holds=others, history=(held, *claims))

    assert (job.held_by(HoldCause.SUSPECT), job.held_by(HoldCause.OUTAGE)) == (in_row, in_row)


def test_a_cause_that_only_another_version_knows_is_left_out() -> None:
    assert known_cause("outage") is HoldCause.OUTAGE
    assert known_cause("eclipse") is None


@pytest.mark.parametrize(("after", "over"), [(-1, False), (0, True), (1, True)])
def test_the_retention_of_a_job_is_over_from_its_last_instant_on(after: int, over: bool) -> None:
    assert a_job(expires_at=NOW).lifetime.over(NOW + after * timedelta(microseconds=1)) is over
    assert not a_job().lifetime.over(NOW + after * SECOND)


def test_the_end_of_a_run_is_known_by_its_owner() -> None:
    run = a_job(owner="one")

    assert run.settled_in(a_job(last_owner="one", owner="two"))
    assert not run.settled_in(a_job(last_owner="two"))
    assert not a_job().settled_in(a_job())


def test_a_release_is_not_another_end_of_the_run() -> None:
    run = a_job(owner="one", releases=1)
    released = a_job(state=State.RETRYING, last_owner="one", releases=2)
    settled = with_changes(released, releases=1)

    assert run.released_in(released)
    assert not run.settled_as(State.RETRYING, released)
    assert not run.released_in(settled)
    assert run.settled_as(State.RETRYING, settled)
    assert not run.released_in(with_changes(released, last_owner="two"))


@pytest.mark.parametrize("state", list(State))
def test_only_a_run_that_was_asked_to_end_ends_by_itself(state: State) -> None:
    assert a_job(state=state, cancel_requested_at=NOW).run_ends is (state is State.RUNNING)
    assert not a_job(state=state).run_ends


def test_a_job_that_was_just_submitted_has_no_past() -> None:
    job = a_job()

    counted = (
        job.lease.open_runs,
        job.hops,
        job.holds.count,
        job.lease.releases,
        job.nudges.count,
        job.flow_state.looks,
        job.flow_state.additions,
    )
    assert counted == (0, 0, 0, 0, 0, 0, 0)
    assert (job.group.blocks, job.errors, job.redrives) == (False, (), ())


def test_what_is_rare_is_said_and_otherwise_left_out() -> None:
    """Older documents lack it, so they are read with these values."""
    assert not Redrive(token="t", at=NOW, by="ada").edited
    assert not Undo(type="test.undo", lane=Lane.BULK, payload="{}").blocks
    assert not EndedNodes(sequence="1").redriven
    assert Awaited(cause=Cause.SIGNAL, name="approval", since=NOW, until=NOW).times == 1
    assert not Signal(name="approval", at=NOW, data="1").used


def test_a_message_stands_for_its_job_whether_it_says_more_or_not() -> None:
    plain = Reference(tenant="a", job_id="j", generation=1, trace="t")

    assert dataclasses.replace(plain, first_run=FirstRun(type="test.job", due=NOW)) == plain
    assert dataclasses.replace(plain, generation=2) != plain


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"generation": 2},
        {"generation": 0},
        {"attempt": 1},
        {"history": (Transition(at=NOW, state="queued", cause=Why.NUDGED),)},
        {"nudged_at": NOW},
        {"due": None},
        {"burst": A_BURST},
        {"group": "g"},
        *({"state": state} for state in State if state is not State.QUEUED),
    ],
)
def test_only_the_message_of_a_job_as_submitted_says_that_it_has_not_begun(changes: dict[str, Any]) -> None:
    job = a_job(**changes)

    reference = reference_to(job)

    assert (reference.tenant, reference.job_id, reference.generation, reference.trace) == (
        job.tenant,
        job.id,
        job.generation,
        job.trace,
    )
    assert reference.first_run == (None if changes else FirstRun(type=job.type, due=NOW))


def test_a_message_of_either_kind_names_its_job() -> None:
    reference = reference_to(a_job())
    letter = DeadLetter(reference=reference, type="test.job", death="", error_class="", attempts=1)

    assert reference_of(reference) is reference_of(letter) is reference

"""`Settler` in memory: what it does after each answer of the store, and the report on each outcome."""

import dataclasses
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import A_SIGNAL, A_WAIT, NOW, SECOND, a_job, types_of, with_changes
from tests.support.settling import RUNNING, World
from tests.support.single_job import Clock, tools
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.attempt.settle import (
    LONGEST_RELEASE_SECONDS,
    MOST_RELEASES,
    SETTLE_TRIES,
)
from tidemill.domain.attempt.outcomes import (
    Awaits,
    Continued,
    Expired,
    Failed,
    Held,
    Outcome,
    Parked,
    Snoozed,
    Stopped,
    Succeeded,
)
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.dispatch.claim_verdict import AHEAD_DELAY, ClaimVerdict, put_back_time
from tidemill.domain.errors import (
    EffectRefusedError,
    KeyReusedError,
    StoreUnavailableError,
    TransactionConflictError,
    TransactionTooLargeError,
    WriteRefusedError,
)
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.waiting import Cause
from tidemill.in_memory.single_job import OneJob
from tidemill.names import FLOW_TYPE

LATER = NOW + 7 * SECOND
CONFLICT = TransactionConflictError("busy")
DOWN = StoreUnavailableError("down")


FAILED = Failed(error_class="OSError", message="no", cause=OSError("no"))
DEAD = dataclasses.replace(FAILED, death=DeathReason.PERMANENT)
AWAITS = Awaits(cause=Cause.SIGNAL, name="approval", after=timedelta(hours=1))


@pytest.mark.parametrize(
    ("outcome", "ending", "state", "error"),
    [
        (Succeeded(result="1"), Ending.SUCCEEDED, State.SUCCEEDED, None),
        (FAILED, Ending.RETRYING, State.RETRYING, "OSError: no"),
        (dataclasses.replace(FAILED, delay=timedelta(hours=1)), Ending.RETRYING, State.SCHEDULED, "OSError: no"),
        (DEAD, Ending.DEAD, State.DEAD, "OSError: no"),
        (Snoozed(after=SECOND), Ending.SNOOZED, State.QUEUED, None),
        (Snoozed(after=timedelta(hours=1)), Ending.SNOOZED, State.SCHEDULED, None),
        (Continued(checkpoint="1"), Ending.CONTINUED, State.QUEUED, None),
        (AWAITS, Ending.AWAITING, State.PARKED, None),
        (replace(AWAITS, most=0), Ending.DEAD, State.DEAD, "MissingInput: the input approval did not come in 0 waits"),
        (Held(until=LATER, cause=HoldCause.LIMIT, error="full"), Ending.HELD, State.QUEUED, "full"),
        (Held(until=LATER, cause=HoldCause.LIMIT), Ending.HELD, State.QUEUED, None),
        (Parked(A_WAIT), Ending.PARKED, State.PARKED, None),
        (Stopped(), Ending.CANCELLED, State.CANCELLED, None),
        (Expired(), Ending.EXPIRED, State.EXPIRED, None),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_each_outcome_has_its_report(outcome: Outcome, ending: Ending, state: State, error: str | None) -> None:
    world = World(())

    report = world.settle(outcome)

    [written] = world.written
    assert (report.ending, report.error, report.job, report.settled_at) == (ending, error, RUNNING, NOW)
    assert (written.state, report.death, report.job_is_terminal) == (state, written.death, state.terminal)
    assert report.cause is (outcome.cause if isinstance(outcome, Failed) else None)
    assert report.errors == (() if written.error is None else (written.error,))
    again = None if state.terminal else replace(RUNNING, state=state, due=written.due, generation=5)
    assert (report.again, report.put_back_until, report.verdict) == (again, None, None)


@pytest.mark.parametrize(
    ("answers", "pauses"),
    [
        ([DOWN], [0.05]),
        ([CONFLICT, DOWN], [0.05, 0.1]),
        ([DOWN, DOWN, CONFLICT], [0.05, 0.1, 0.2]),
    ],
)
def test_a_settle_is_tried_again_with_the_same_content_and_longer_pauses(
    answers: list[Exception], pauses: list[float]
) -> None:
    world = World(*answers, ())
    assert world.settle(FAILED).ending is Ending.RETRYING
    assert all(written is world.written[0] for written in world.written)
    assert world.pauses == pytest.approx(pauses)


def test_an_outage_that_lasts_is_left_to_the_lease() -> None:
    world = World(*[CONFLICT] * (SETTLE_TRIES - 1), DOWN)
    with pytest.raises(StoreUnavailableError, match="down"):
        world.settler.settle(RUNNING, Succeeded(), RetryPolicy())
    assert (world.answers, world.observer.reports, world.released) == ([], [], [])
    assert world.pauses == pytest.approx([0.05, 0.1, 0.2, 0.4])


@pytest.mark.parametrize(
    ("releases", "seconds"), [(0, 0.5), (1, 1), (5, 16), (6, LONGEST_RELEASE_SECONDS / 2), (7, 30)]
)
def test_a_run_whose_conflicts_last_is_given_back_for_a_time_that_doubles(releases: int, seconds: float) -> None:
    world = World(DOWN, *[CONFLICT] * (SETTLE_TRIES - 1), job=with_changes(RUNNING, releases=releases))
    report = world.settle(Succeeded())
    assert (report.ending, report.error, report.job, report.job_is_terminal) == (
        Ending.RELEASED,
        "busy",
        world.job,
        False,
    )
    assert world.released == [(NOW, NOW + timedelta(seconds=seconds))]


def test_conflicts_that_never_end_count_as_a_failure_of_the_job() -> None:
    world = World(*[CONFLICT] * SETTLE_TRIES, (), job=with_changes(RUNNING, releases=MOST_RELEASES))
    report = world.settle(Succeeded())
    assert (report.ending, report.error, world.released) == (Ending.RETRYING, "TransactionConflictError: busy", [])


def test_a_run_that_was_taken_over_is_not_given_back() -> None:
    world = World(*[CONFLICT] * SETTLE_TRIES)
    world.release_error = WriteRefusedError("release", with_changes(RUNNING, owner="other", due=LATER))
    report = world.settle(Succeeded())
    assert (report.ending, report.verdict, report.put_back_until) == (Ending.FENCED, ClaimVerdict.LEASED, LATER)


RELEASED = with_changes(RUNNING, state=State.RETRYING, owner=None, last_owner=RUNNING.lease.owner, releases=1)
ENDED = with_changes(RUNNING, state=State.SUCCEEDED, owner=None, last_owner=RUNNING.lease.owner)


def test_a_run_whose_success_was_written_without_an_answer_has_not_timed_out() -> None:
    world = World(*[DOWN] * SETTLE_TRIES, WriteRefusedError("settle", ENDED))
    with pytest.raises(StoreUnavailableError):
        world.settler.settle(world.job, Succeeded(result="1"), RetryPolicy())

    report = world.settle(FAILED)

    assert (report.ending, report.error, report.job_is_terminal) == (Ending.SUCCEEDED, None, True)


def test_a_run_whose_success_was_written_before_a_conflict_is_not_given_back() -> None:
    world = World(DOWN, *[CONFLICT] * (SETTLE_TRIES - 1))
    world.release_error = WriteRefusedError("release", ENDED)
    assert world.settle(Succeeded(result="1")).ending is Ending.SUCCEEDED


def test_a_run_that_was_given_back_without_an_answer_has_not_failed() -> None:
    world = World(*[CONFLICT] * SETTLE_TRIES, WriteRefusedError("settle", RELEASED))
    world.release_error = DOWN
    with pytest.raises(StoreUnavailableError):
        world.settler.settle(world.job, Succeeded(result="1"), RetryPolicy())

    report = world.settle(FAILED)

    assert (report.ending, report.error, report.job_is_terminal) == (Ending.RELEASED, None, False)


@pytest.mark.parametrize(
    "error", [EffectRefusedError("taken"), KeyReusedError("other body"), TransactionTooLargeError(101, 100)]
)
def test_an_effect_that_can_never_be_written_fails_the_run(error: Exception) -> None:
    world = World(error, ())
    report = world.settle(Succeeded())
    assert report.ending in {Ending.RETRYING, Ending.DEAD}
    assert report.error == f"{type(error).__name__}: {error}"
    assert world.pauses == []


FAULTS = [TypeError("no text"), ValueError("too many digits"), RuntimeError(), RecursionError("deep"), OSError("size")]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("outcome", [Succeeded(result="1"), Continued(checkpoint="1"), AWAITS, Snoozed(after=SECOND)])
def test_what_cannot_be_written_fails_the_run_with_its_own_error(fault: Exception, outcome: Outcome) -> None:
    world = World(fault, ())
    report = world.settle(outcome)
    assert (report.ending, report.error) == (Ending.RETRYING, f"{type(fault).__name__}: {fault}")
    assert (report.cause, world.pauses) == (fault, [])


@pytest.mark.parametrize("outcome", [FAILED, Stopped(), Held(until=LATER, cause=HoldCause.LIMIT)])
def test_an_ending_without_a_value_of_the_handler_is_left_to_the_lease(outcome: Outcome) -> None:
    world = World(TypeError("a bug"))
    with pytest.raises(TypeError, match="a bug"):
        world.settler.settle(RUNNING, outcome, RetryPolicy())


def test_a_success_whose_answer_cannot_be_read_has_not_failed() -> None:
    world = World(TypeError("an answer"), WriteRefusedError("settle", ENDED))
    assert world.settle(Succeeded(result="1")).ending is Ending.SUCCEEDED


@pytest.mark.parametrize(
    ("current", "verdict", "until"),
    [
        (None, ClaimVerdict.GONE, None),
        (with_changes(RUNNING, state=State.SUCCEEDED, owner=None), ClaimVerdict.DUPLICATE, None),
        (with_changes(RUNNING, owner="other", generation=5), ClaimVerdict.STALE, None),
        (with_changes(RUNNING, owner="other", due=LATER), ClaimVerdict.LEASED, LATER),
        (with_changes(RUNNING, owner="other", due=None), ClaimVerdict.LEASED, NOW + AHEAD_DELAY),
        (with_changes(RUNNING, owner=None, state=State.QUEUED, due=LATER), ClaimVerdict.EARLY, LATER),
        (with_changes(RUNNING, owner="other", generation=3, due=LATER), ClaimVerdict.AHEAD, NOW + AHEAD_DELAY),
    ],
)
def test_a_run_that_no_longer_holds_its_job_leaves_the_message_to_the_document(
    current: Job | None, verdict: ClaimVerdict, until: datetime | None
) -> None:
    world = World(WriteRefusedError("settle", current))
    report = world.settle(Succeeded())
    assert (report.ending, report.verdict, report.job, report.put_back_until) == (
        Ending.FENCED,
        verdict,
        RUNNING,
        until,
    )
    assert until is None or put_back_time(verdict, current, NOW) == until


CANCEL = {"cancel_requested_at": NOW}
SIGNAL = {"signals": (A_SIGNAL,)}
FLOW = replace(RUNNING, type=FLOW_TYPE)


@pytest.mark.parametrize(
    ("job", "outcome", "change", "ending"),
    [
        (RUNNING, FAILED, CANCEL, Ending.CANCELLED),
        (RUNNING, Snoozed(after=SECOND), CANCEL, Ending.CANCELLED),
        (RUNNING, AWAITS, CANCEL | SIGNAL, Ending.CANCELLED),
        (FLOW, AWAITS, {"looks": 1}, Ending.CONTINUED),
        (FLOW, Succeeded(), {"looks": 1}, Ending.CONTINUED),
        (FLOW, AWAITS, {"looks": 1} | SIGNAL, Ending.CONTINUED),
        (FLOW, AWAITS, SIGNAL, Ending.AWAITING),
        (RUNNING, AWAITS, SIGNAL, Ending.AWAITING),
        (RUNNING, AWAITS, SIGNAL | {"looks": 1}, Ending.AWAITING),
    ],
)
def test_what_has_come_during_the_run_takes_the_place_of_its_outcome(
    job: Job, outcome: Outcome, change: dict[str, Any], ending: Ending
) -> None:
    world = World(WriteRefusedError("settle", with_changes(job, **change)), (), job=job)
    report = world.settle(outcome)
    assert report.ending is ending
    if ending is Ending.AWAITING:
        # The signal that came starts it at once.
        assert (world.written[1].signals_known, world.written[1].due) == (1, NOW)
    if ending is Ending.CONTINUED:
        assert world.written[1].checkpoint is None


@pytest.mark.parametrize(
    ("outcome", "change"),
    [
        (Stopped(), CANCEL),
        (Succeeded(), {}),
        (Succeeded(), SIGNAL),
        (Succeeded(), {"looks": 1}),
        (AWAITS, {}),
        (AWAITS, CANCEL | SIGNAL | {"owner": "other"}),
        (FAILED, CANCEL | {"owner": None}),
    ],
)
def test_a_refused_outcome_is_not_replaced_without_a_cause(outcome: Outcome, change: dict[str, Any]) -> None:
    world = World(WriteRefusedError("settle", with_changes(RUNNING, **change)))
    assert world.settle(outcome).ending is Ending.FENCED
    assert len(world.written) == 1


ONE, TWO, INLINE = a_job(id="one", payload_at="file/1"), a_job(id="two", payload_at="file/2"), a_job(id="three")
MADE = Succeeded(follow_ups=[ONE, TWO, INLINE])
DIES = dataclasses.replace(DEAD, follow_ups=[ONE])


def test_a_follow_up_that_existed_is_not_reported_and_its_new_payload_goes() -> None:
    world = World([TWO])
    report = world.settle(MADE)
    assert (report.follow_ups, world.payloads.deleted) == ((ONE, INLINE), ["two"])


@pytest.mark.parametrize(
    ("outcome", "current", "existing", "deleted"),
    [
        (MADE, {"last_owner": "mine", "state": State.DEAD}, [], ["one", "two"]),
        (MADE, {"last_owner": "mine", "state": State.RUNNING, "owner": "other"}, [], ["one", "two"]),
        (MADE, {"last_owner": "mine", "state": State.SUCCEEDED}, [ONE, TWO], []),
        (
            MADE,
            {"last_owner": "mine", "state": State.SUCCEEDED},
            [ONE, with_changes(TWO, payload_at="file/0")],
            ["two"],
        ),
        (MADE, {"last_owner": "other", "state": State.DEAD}, [], []),
        (DIES, {"last_owner": "mine", "state": State.DEAD}, [ONE], []),
        (DIES, {"last_owner": "mine", "state": State.DEAD}, [], ["one"]),
        # It died and was redriven, or discarded.
        (DIES, {"last_owner": "mine", "state": State.QUEUED}, [ONE], []),
        (DIES, {"last_owner": "mine", "state": State.CANCELLED}, [ONE], []),
        (dataclasses.replace(DEAD, follow_ups=[INLINE]), {"last_owner": "mine", "state": State.CANCELLED}, [], []),
        (Snoozed(after=SECOND), {"last_owner": "mine", "state": State.CANCELLED}, [], []),
    ],
)
def test_the_payloads_of_follow_ups_go_only_if_the_run_has_ended_and_they_do_not_exist(
    outcome: Outcome,
    current: dict[str, Any],
    existing: list[Job],
    deleted: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(WriteRefusedError("settle", None))
    documents = {job.id: job for job in (with_changes(RUNNING, **current), *existing)}
    monkeypatch.setattr(world.store, "get", lambda _tenant, job_id: documents.get(job_id))
    assert world.settle(outcome).ending is Ending.FENCED
    assert world.payloads.deleted == deleted


@pytest.mark.parametrize("changed", [State.QUEUED, State.RUNNING, State.CANCELLED])
def test_a_death_keeps_the_payloads_of_its_follow_ups_though_the_job_goes_on(changed: State) -> None:
    world = World((), current=with_changes(RUNNING, last_owner="mine", state=changed))
    assert world.settle(DIES).follow_ups == (ONE,)
    assert world.payloads.deleted == []


def test_a_success_keeps_the_payloads_of_its_follow_ups() -> None:
    world = World((), current=with_changes(RUNNING, last_owner="mine", state=State.DEAD))
    world.settle(MADE)
    assert world.payloads.deleted == []


def unreadable() -> Job | None:
    raise DOWN


@pytest.mark.parametrize("read", [unreadable, lambda: None], ids=["outage", "deleted"])
def test_what_is_not_known_to_have_ended_otherwise_keeps_the_payloads_of_its_follow_ups(
    read: Callable[[], Job | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(WriteRefusedError("settle", None))
    monkeypatch.setattr(world.store, "get", lambda _tenant, _job_id: read())
    assert world.settle(MADE).ending is Ending.FENCED
    assert world.payloads.deleted == []


@pytest.mark.parametrize("outcome", [FAILED, Succeeded(follow_ups=[INLINE]), Succeeded()])
def test_without_a_payload_of_its_own_no_follow_up_costs_a_read(
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(WriteRefusedError("settle", None))
    monkeypatch.setattr(world.store, "get", lambda _tenant, _job_id: pytest.fail("read"))
    assert world.settle(outcome).ending is Ending.FENCED


def test_the_claims_and_settles_of_a_batch_with_grouped_commit_go_through_it() -> None:
    context = tools(OneJob(RUNNING), types_of(), Clock())  # type: ignore[arg-type]  # it needs less
    grouped: Any = object()
    assert context.writes is context.store
    assert replace(context, grouped=grouped).writes is grouped


@pytest.mark.parametrize(("draw", "seconds"), [(0.0, 1), (0.5, 6), (0.9, 10)])
def test_a_hold_is_for_a_random_time_of_one_second_to_one_more_than_its_ceiling(draw: float, seconds: float) -> None:
    context = replace(tools(OneJob(RUNNING), types_of(), Clock()), draw=lambda: draw)  # type: ignore[arg-type]
    assert context.held_below(10, HoldCause.LIMIT) == Held(
        until=NOW + timedelta(seconds=seconds), cause=HoldCause.LIMIT
    )

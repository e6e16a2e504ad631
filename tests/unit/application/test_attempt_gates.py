"""Each gate between a claim and its handler: which jobs it lets pass, and what the others get instead of a run."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import INVOCATION, NOW, SECOND, a_job, a_job_type
from tests.support.configurations import configured, overridden, paused
from tests.support.gate_context import GateContext, gates_of
from tidemill.application.job_types import JobTypes
from tidemill.domain.breaker import BreakerPolicy
from tidemill.domain.errors import (
    BreakerOpenError,
    Fault,
    InvalidPayloadError,
    JobFileError,
    JobTimeoutError,
    NewerSchemaError,
    StoreUnavailableError,
    StrayBesideError,
    TransactionConflictError,
    UnloadedJobTypeError,
)
from tidemill.domain.holds import HoldCause
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.limits import Rate
from tidemill.domain.outcomes import Failed, Held, Parked, Stopped
from tidemill.domain.pauses import DRAIN_PER_SECOND
from tidemill.domain.states import State
from tidemill.domain.waiting import Cause, Line, Wait
from tidemill.flow.job import run_flow

KEY = ("t", "j")
JOB = a_job(tenant="t", id="j", owner="token", due=NOW + SECOND, attempt=1)
RATE = Rate(count=DRAIN_PER_SECOND, period=SECOND)


def parked(line: Line) -> Parked:
    return Parked(Wait(cause=line.cause, key=line.key, since=NOW))


def test_the_overrides_of_a_type_hold_for_the_run() -> None:
    gates, _ = gates_of(a_job_type(max_attempts=3), settings=(overridden("test.job.max_attempts", 5),))
    gates.read_type(JOB)
    assert gates.policy.max_attempts == 5
    assert gates.known_type().name == "test.job"
    assert gates.breaker_use is None


def test_an_unknown_type_may_have_the_most_attempts_and_hops_that_any_has() -> None:
    gates, _ = gates_of()
    gates.read_type(JOB)
    assert (gates.policy.max_attempts, gates.policy.max_hops) == (25, 100_000)
    with pytest.raises(AssertionError):
        gates.known_type()


def test_an_attempt_that_has_ended_goes_no_further() -> None:
    gates, _ = gates_of(has_ended=lambda: True)
    with pytest.raises(JobTimeoutError):
        gates.on_time(JOB)
    assert gates_of()[0].on_time(JOB) is None  # type: ignore[func-returns-value]


def test_a_job_that_is_to_be_cancelled_does_not_run() -> None:
    gates, _ = gates_of(a_job_type())
    gates.read_type(JOB)
    assert gates.allowed_to_run(JOB) is None
    assert gates.allowed_to_run(replace(JOB, cancel_requested_at=NOW)) == Stopped()
    assert isinstance(gates.allowed_to_run(replace(JOB, deadline=NOW - SECOND)), Failed)


TYPE_LINE = Line.for_pause("type=test.job")


@pytest.mark.parametrize(
    ("target", "stale", "line", "listed"),
    [
        ("type=test.job", False, TYPE_LINE, False),
        # The line may be lost by now, so the worker lists it.
        ("type=test.job", True, TYPE_LINE, True),
        ("type=another", False, None, False),
        ("type=another", True, None, False),
    ],
)
def test_a_paused_job_waits_in_the_line_of_its_pause(target: str, stale: bool, line: Line | None, listed: bool) -> None:
    gates, context = gates_of(a_job_type())
    context.configured = replace(configured(paused(target)), stale=stale)

    assert gates.not_paused(JOB) == (parked(line) if line else None)
    assert context.calls == ([("list", line, RATE, KEY, NOW)] if listed else [])


def test_a_job_of_a_broken_job_file_waits_for_its_type() -> None:
    broken = JobFileError("jobs.py:1: SyntaxError", names=("test.job",))
    gates, context = gates_of(context=GateContext(JobTypes({}, [broken])))
    gates.read_type(JOB)

    assert gates.type_known(JOB) == parked(Line.for_type("test.job"))
    assert context.calls == [("list", Line.for_type("test.job"), RATE, KEY, NOW)]
    other = UnloadedJobTypeError("mail", (), "SyntaxError")
    assert gates.parked_for_type(JOB, other) == parked(Line.for_type("mail"))


@pytest.mark.parametrize(
    ("holds", "cause", "seconds"),
    [
        (0, None, 2),
        (3, HoldCause.VERSION, 16),
        (8, HoldCause.VERSION, 512),
        (9, HoldCause.VERSION, 900),
        (19, HoldCause.VERSION, 900),
        (20, HoldCause.VERSION, None),
        # Another cause must not use up the holds of this one.
        (20, HoldCause.PAUSE, 2),
    ],
)
def test_a_type_that_only_another_version_knows_is_left_to_it_for_an_hour_and_a_half(
    holds: int, cause: HoldCause | None, seconds: int | None
) -> None:
    gates, _ = gates_of(a_job_type(name="another"))
    gates.read_type(JOB)

    outcome = gates.type_known(replace(JOB, holds=holds, hold_cause=cause))

    if seconds is None:
        assert isinstance(outcome, Failed)
        assert (outcome.death, outcome.error_class) == (DeathReason.PERMANENT, "UnknownJobTypeError")
        return
    assert isinstance(outcome, Held)
    assert (outcome.until, outcome.cause) == (NOW + seconds * SECOND, HoldCause.VERSION)
    assert (outcome.error or "").startswith("UnknownJobTypeError: unknown job type 'test.job'")


def test_a_known_type_passes() -> None:
    gates, _ = gates_of(a_job_type())
    gates.read_type(JOB)
    assert gates.type_known(JOB) is None


#: A run before this one has not come back.
SUSPECT = replace(JOB, state=State.RUNNING, attempt=2, open_runs=2)


@pytest.mark.parametrize(
    ("job", "alone", "held", "deadline"),
    [
        (JOB, None, False, INVOCATION),
        (SUSPECT, None, True, INVOCATION),
        (SUSPECT, NOW + 7 * SECOND, False, 7 * SECOND),
        (replace(SUSPECT, holds=4, hold_cause=HoldCause.SUSPECT), None, True, INVOCATION),
        (replace(SUSPECT, holds=5, hold_cause=HoldCause.SUSPECT), None, False, INVOCATION),
        (replace(SUSPECT, holds=5, hold_cause=HoldCause.STRAY), None, True, INVOCATION),
    ],
)
def test_a_job_that_may_have_killed_its_worker_runs_alone_or_later(
    job: Job, alone: datetime | None, held: bool, deadline: timedelta
) -> None:
    asked: list[datetime] = []

    def wait_until_alone(until: datetime) -> datetime | None:
        asked.append(until)
        return alone

    gates, _ = gates_of(a_job_type(), wait_until_alone=wait_until_alone)

    expected = Held(until=NOW + 3 * SECOND, cause=HoldCause.SUSPECT) if held else None
    assert gates.alone_if_suspect(job) == expected
    assert gates.deadline == NOW + deadline
    assert asked == ([NOW + INVOCATION] if held or alone else [])


def test_a_suspect_job_runs_where_no_other_can() -> None:
    gates, _ = gates_of(a_job_type())
    assert gates.alone_if_suspect(SUSPECT) is None


@pytest.mark.parametrize(
    ("timeout", "deadline", "moved"),
    [(None, INVOCATION, 0), (4 * SECOND, 4 * SECOND, 1), (INVOCATION + SECOND, INVOCATION, 1)],
)
@pytest.mark.parametrize("told", [True, False])
def test_a_type_may_allow_less_time_than_its_lane(
    timeout: timedelta | None, deadline: timedelta, moved: int, told: bool
) -> None:
    moves: list[int] = []
    hooks: dict[str, Any] = {"deadline_moved": lambda: moves.append(1)} if told else {}
    gates, _ = gates_of(replace(a_job_type(), timeout=timeout), **hooks)
    gates.read_type(JOB)

    gates.time_of_type(JOB)

    assert (gates.deadline, gates.type_timeout) == (NOW + deadline, timeout)
    assert len(moves) == (moved if told else 0)


def test_a_payload_that_the_model_refuses_is_left_to_another_version() -> None:
    def parse(payload: Any) -> Any:
        if "n" not in payload:
            raise InvalidPayloadError([Fault("/payload/n", "is missing")])
        return payload["n"]

    gates, _ = gates_of(a_job_type(parse=parse))
    gates.read_type(JOB)
    assert gates.payload_fits(replace(JOB, payload='{"n": 7}')) is None
    assert gates.payload == 7

    held = gates.payload_fits(JOB)
    assert isinstance(held, Held)
    assert held.error == "InvalidPayloadError: /payload/n: is missing"


def test_the_run_of_a_flow_reads_no_payload() -> None:
    """Ten flows of 1 MB, parsed at once in one worker, take more than its memory."""
    gates, _ = gates_of(run_flow)
    gates.read_type(replace(JOB, type=run_flow.name))
    assert gates.payload_fits(replace(JOB, payload="one that no model reads")) is None
    assert gates.payload is None


PAY = BreakerPolicy(name="pay")


def calling(*opened: str, wait: Wait | None = None, **arguments: Any) -> tuple[Any, GateContext, Job]:
    """The gates of a job whose type calls the downstream `pay`."""
    job_type = replace(a_job_type(), depends_on=(PAY,))
    context = GateContext(JobTypes({"test.job": job_type}), opened={*opened}, counts_calls=True)
    gates, _ = gates_of(context=context, **arguments)
    job = replace(JOB, wait=wait)
    gates.read_type(job)
    return gates, context, job


def test_a_job_whose_downstream_is_open_waits_in_its_line() -> None:
    gates, context, job = calling("pay")
    context.opened.add("never asked")
    with pytest.raises(BreakerOpenError):
        gates.downstreams_work(job)

    assert gates.parked_for_breaker(job, "pay") == parked(Line.for_breaker("pay"))
    assert context.calls == [("list", Line.for_breaker("pay"), RATE, KEY, NOW)]


def test_a_job_whose_downstream_has_opened_since_does_not_call_it() -> None:
    gates, context, job = calling()
    gates.downstreams_work(job)
    context.opened.add("pay")
    with pytest.raises(BreakerOpenError):
        gates.may_call_downstreams(job)


def test_a_worker_that_counts_no_calls_has_no_breakers() -> None:
    gates, _ = gates_of(replace(a_job_type(), depends_on=(PAY,)))
    gates.read_type(JOB)
    gates.downstreams_work(JOB)
    gates.may_call_downstreams(JOB)
    assert gates.record_call_result(ConnectionError()) is None


@pytest.mark.parametrize(("over", "blamed"), [(False, "pay"), (True, None)])
def test_the_error_of_a_run_that_has_ended_already_blames_no_breaker(over: bool, blamed: str | None) -> None:
    gates, context, job = calling(has_ended=lambda: over)
    context.failed = lambda *_, **__: True  # type: ignore[attr-defined]
    gates.may_call_downstreams(job)
    context.opened.add("pay")

    assert gates.record_call_result(ConnectionError("down")) == blamed


@pytest.mark.parametrize(
    ("hooks", "held"),
    [({}, False), ({"stray_beside": lambda: False}, False), ({"stray_beside": lambda: True}, True)],
    ids=["no other", "none", "one"],
)
def test_a_job_does_not_run_beside_a_stray_thread(hooks: dict[str, Any], held: bool) -> None:
    gates, _ = gates_of(a_job_type(), **hooks)

    with pytest.raises(StrayBesideError) if held else nullcontext():
        gates.without_stray(JOB)
    assert gates.held_for_stray() == Held(until=NOW + 3 * SECOND, cause=HoldCause.STRAY)


@pytest.mark.parametrize(
    ("wait", "drains"),
    [
        (None, True),
        (Wait(cause=Cause.PAUSE, key="x", since=NOW), True),
        # A probe out of the line passes on its own turn.
        (Wait(cause=Cause.BREAKER, key="pay", since=NOW), False),
    ],
)
def test_a_probe_that_closed_its_breaker_lets_the_line_move(wait: Wait | None, drains: bool) -> None:
    gates, context, job = calling("pay", wait=wait)
    context.admits = lambda policy, job: True  # type: ignore[method-assign]
    gates.may_call_downstreams(job)
    gates.record_call_result(None)

    gates.release_slot(job, lambda *_: None)

    assert [call for call in context.calls if call[0] == "pass on"] == ([("pass on", "j")] if wait else [])
    assert [call for call in context.calls if call[0] == "drain"] == (
        [("drain", Line.for_breaker("pay"))] if drains else []
    )


@pytest.mark.parametrize(
    ("undone", "supersedes", "seconds"),
    [
        (None, "k", None),
        (False, None, None),
        (True, "k", None),
        (False, "k", 1),
        (TransactionConflictError("busy"), "k", 1),
    ],
)
def test_a_correction_waits_for_the_undo_of_what_it_supersedes(
    undone: Any, supersedes: str | None, seconds: int | None
) -> None:
    gates, context = gates_of(a_job_type())
    context.undone = undone
    held = None if seconds is None else Held(until=NOW + seconds * SECOND, cause=HoldCause.UNDO)
    assert gates.after_undo(replace(JOB, supersedes=supersedes)) == held


@pytest.mark.parametrize(
    ("holds", "cause", "seconds"),
    [
        (0, None, 1),
        (3, HoldCause.UNDO, 8),
        (8, HoldCause.UNDO, 256),
        (9, HoldCause.UNDO, 300),
        (2_000, HoldCause.UNDO, 300),
        (3, HoldCause.PAUSE, 1),
    ],
)
def test_a_correction_looks_less_often_the_longer_it_waits(holds: int, cause: HoldCause | None, seconds: int) -> None:
    gates, context = gates_of(a_job_type())
    context.undone = False
    found = gates.after_undo(replace(JOB, supersedes="k", holds=holds, hold_cause=cause))
    assert found == Held(until=NOW + seconds * SECOND, cause=HoldCause.UNDO)


def test_what_a_newer_version_wrote_is_left_to_it() -> None:
    gates, context = gates_of(a_job_type())
    context.undone = NewerSchemaError("document", 9, 8)
    found = gates.after_undo(replace(JOB, supersedes="k"))
    assert isinstance(found, Held)
    assert found.cause is HoldCause.VERSION
    context.undone = StoreUnavailableError("down")
    with pytest.raises(StoreUnavailableError):
        gates.after_undo(replace(JOB, supersedes="k"))


def test_an_elected_job_that_did_not_call_leaves_the_probe_to_another() -> None:
    gates, context, job = calling("pay", wait=Wait(cause=Cause.BREAKER, key="pay", since=NOW))
    gates.release_slot(job, lambda *_: None)
    assert context.calls == [("give up", "pay", "j"), ("pass on", "j")]

"""Each gate between a claim and its handler: which jobs it lets pass, and what the others get instead of a run."""

import dataclasses
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import INVOCATION, NOW, SECOND, a_job, a_job_type, with_changes
from tests.support.configurations import configured, overridden, paused
from tests.support.gate_context import GateAttempt, GateContext, run_of
from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.application.attempt.process_gates import StrayGate, SuspectGate
from tidemill.application.attempt.type_gates import PayloadGate, TimeGate, TypeGate
from tidemill.application.breakers.breaker_gates import BreakerGate, ProbeGate, use_of
from tidemill.application.corrections.undo_gate import UndoGate
from tidemill.application.features.attempt_features import gates_of
from tidemill.application.job_types import JobTypes
from tidemill.application.waiting.pause_gate import PauseGate
from tidemill.domain.attempt.outcomes import Failed, Held, Parked
from tidemill.domain.breakers.breaker import BreakerPolicy
from tidemill.domain.errors import (
    BreakerOpenError,
    Fault,
    InvalidPayloadError,
    JobFileError,
    JobTimeoutError,
    NewerSchemaError,
    StoreUnavailableError,
    StrayThreadError,
    TransactionConflictError,
    UnknownJobTypeError,
    UnloadedJobTypeError,
)
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.limits.limits import Rate
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.pauses import DRAIN_PER_SECOND
from tidemill.domain.waiting.waiting import Cause, Line, Wait
from tidemill.flow.job import run_flow

KEY = ("t", "j")
JOB = a_job(tenant="t", id="j", owner="token", due=NOW + SECOND, attempt=1)
RATE = Rate(count=DRAIN_PER_SECOND, period=SECOND)


def parked(line: Line) -> Parked:
    return Parked(Wait(cause=line.cause, key=line.key, since=NOW))


def test_the_overrides_of_a_type_hold_for_the_run() -> None:
    run, _ = run_of(JOB, a_job_type(max_attempts=3), settings=(overridden("test.job.max_attempts", 5),))
    assert run.policy.max_attempts == 5
    assert run.job_type.name == "test.job"
    assert use_of(run) is None


def test_an_unknown_type_may_have_the_most_attempts_and_hops_that_any_has() -> None:
    run, _ = run_of(JOB)
    assert (run.policy.max_attempts, run.policy.max_hops) == (25, 100_000)
    with pytest.raises(AssertionError):
        run.job_type.name  # noqa: B018 - the property raises


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
    run, context = run_of(JOB, a_job_type())
    context.configured = dataclasses.replace(configured(paused(target)), stale=stale)

    assert PauseGate(run).enter() == (parked(line) if line else None)
    assert context.calls == ([("list", line, RATE, KEY, NOW)] if listed else [])


def test_a_job_of_a_broken_job_file_waits_for_its_type() -> None:
    broken = JobFileError("jobs.py:1: SyntaxError", names=("test.job",))
    run, context = run_of(JOB, context=GateContext(JobTypes({}, [broken])))

    assert TypeGate(run).enter() == parked(Line.for_type("test.job"))
    assert context.calls == [("list", Line.for_type("test.job"), RATE, KEY, NOW)]
    other = UnloadedJobTypeError("mail", (), "SyntaxError")
    assert TypeGate(run).instead_of(other) == parked(Line.for_type("mail"))
    assert TypeGate(run).instead_of(UnknownJobTypeError("mail", ())) is None


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
    run, _ = run_of(with_changes(JOB, holds=holds, hold_cause=cause), a_job_type(name="another"))

    outcome = TypeGate(run).enter()

    if seconds is None:
        assert isinstance(outcome, Failed)
        assert (outcome.death, outcome.error_class) == (DeathReason.PERMANENT, "UnknownJobTypeError")
        return
    assert isinstance(outcome, Held)
    assert (outcome.until, outcome.cause) == (NOW + seconds * SECOND, HoldCause.VERSION)
    assert (outcome.error or "").startswith("UnknownJobTypeError: unknown job type 'test.job'")


def test_a_known_type_passes() -> None:
    run, _ = run_of(JOB, a_job_type())
    assert TypeGate(run).enter() is None


#: A run before this one has not come back.
SUSPECT = with_changes(JOB, state=State.RUNNING, attempt=2, open_runs=2)


@pytest.mark.parametrize(
    ("job", "alone", "held", "deadline"),
    [
        (JOB, None, False, INVOCATION),
        (SUSPECT, None, True, INVOCATION),
        (SUSPECT, NOW + 7 * SECOND, False, 7 * SECOND),
        (with_changes(SUSPECT, holds=4, hold_cause=HoldCause.SUSPECT), None, True, INVOCATION),
        (with_changes(SUSPECT, holds=5, hold_cause=HoldCause.SUSPECT), None, False, INVOCATION),
        (with_changes(SUSPECT, holds=5, hold_cause=HoldCause.STRAY), None, True, INVOCATION),
    ],
)
def test_a_job_that_may_have_killed_its_worker_runs_alone_or_later(
    job: Job, alone: datetime | None, held: bool, deadline: timedelta
) -> None:
    asked: list[datetime] = []

    def wait_until_alone(until: datetime) -> datetime | None:
        asked.append(until)
        return alone

    run, _ = run_of(job, a_job_type(), wait_until_alone=wait_until_alone)

    expected = Held(until=NOW + 3 * SECOND, cause=HoldCause.SUSPECT) if held else None
    assert SuspectGate(run).enter() == expected
    assert run.deadline == NOW + deadline
    assert asked == ([NOW + INVOCATION] if held or alone else [])


def test_a_suspect_job_runs_where_no_other_can() -> None:
    run, _ = run_of(SUSPECT, a_job_type())
    assert SuspectGate(run).enter() is None


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
    run, _ = run_of(JOB, replace(a_job_type(), timeout=timeout), **hooks)

    TimeGate(run).enter()

    assert (run.deadline, run.type_timeout) == (NOW + deadline, timeout)
    assert len(moves) == (moved if told else 0)


def test_a_payload_that_the_model_refuses_is_left_to_another_version() -> None:
    def parse(payload: Any) -> Any:
        if "n" not in payload:
            raise InvalidPayloadError([Fault("/payload/n", "is missing")])
        return payload["n"]

    run, _ = run_of(with_changes(JOB, payload='{"n": 7}'), a_job_type(parse=parse))
    assert PayloadGate(run).enter() is None
    assert run.payload == 7

    run, _ = run_of(JOB, a_job_type(parse=parse))
    held = PayloadGate(run).enter()
    assert isinstance(held, Held)
    assert held.error == "InvalidPayloadError: /payload/n: is missing"


def test_the_run_of_a_flow_reads_no_payload() -> None:
    """Ten flows of 1 MB, parsed at once in one worker, take more than its memory."""
    run, _ = run_of(with_changes(JOB, type=run_flow.name, payload="one that no model reads"), run_flow)
    assert PayloadGate(run).enter() is None
    assert run.payload is None


PAY = BreakerPolicy(name="pay")


@dataclass
class Calling:
    """A run of a type that calls the downstream `pay`, with its gates of breakers."""

    context: GateContext
    run: ClaimedRun
    depends: BreakerGate
    probe: ProbeGate

    def call(self, error: Exception | None = None) -> None:
        """Call a handler that raises the error, if any."""
        with self.probe.around_call():
            if error:
                raise error


def calling(*opened: str, wait: Wait | None = None, ended: bool = False) -> Calling:
    job_type = replace(a_job_type(), depends_on=(PAY,))
    context = GateContext(JobTypes({"test.job": job_type}), opened={*opened}, counts_calls=True)
    run, _ = run_of(replace(JOB, wait=wait), context=context, attempt=GateAttempt(ended=ended, in_handler=True))
    use = use_of(run)
    return Calling(context, run, BreakerGate(run, use), ProbeGate(run, use))


def test_a_job_whose_downstream_is_open_waits_in_its_line() -> None:
    made = calling("pay")
    made.context.opened.add("never asked")
    with pytest.raises(BreakerOpenError) as raised:
        made.depends.enter()

    assert made.probe.instead_of(raised.value) == parked(Line.for_breaker("pay"))
    assert made.context.calls == [("list", Line.for_breaker("pay"), RATE, KEY, NOW)]


def test_a_job_whose_downstream_has_opened_since_does_not_call_it() -> None:
    made = calling()
    made.depends.enter()
    made.context.opened.add("pay")
    with pytest.raises(BreakerOpenError):
        made.probe.enter()


def test_a_worker_that_counts_no_calls_has_no_breakers() -> None:
    run, _ = run_of(JOB, replace(a_job_type(), depends_on=(PAY,)), attempt=GateAttempt(in_handler=True))
    gate = ProbeGate(run, use_of(run))
    BreakerGate(run, None).enter()
    gate.enter()
    with pytest.raises(ConnectionError), gate.around_call():
        raise ConnectionError
    assert gate.instead_of(JobTimeoutError("slow")) is None
    BreakerGate(run, None).leave()


@pytest.mark.parametrize(("over", "raises"), [(False, BreakerOpenError), (True, ConnectionError)])
def test_the_error_of_a_run_that_has_ended_already_blames_no_breaker(over: bool, raises: type[Exception]) -> None:
    made = calling(ended=over)
    made.context.failed = lambda *_, **__: True  # type: ignore[attr-defined]
    made.probe.enter()
    made.context.opened.add("pay")

    with pytest.raises(raises):
        made.call(ConnectionError("down"))


def test_a_run_out_of_time_waits_for_an_open_breaker_only_if_its_handler_was_called() -> None:
    for in_handler in (True, False):
        made = calling()
        made.context.failed = lambda *_, **__: True  # type: ignore[attr-defined]
        made.probe.enter()
        made.context.opened.add("pay")
        made.run.attempt = GateAttempt(in_handler=in_handler)
        found = made.probe.instead_of(JobTimeoutError("slow"))
        assert found == (parked(Line.for_breaker("pay")) if in_handler else None)


def test_a_run_out_of_time_fails_if_the_line_of_its_breaker_cannot_be_listed() -> None:
    def lose(*_line: Any, **_job: Any) -> None:
        raise StoreUnavailableError("down")

    made = calling()
    made.context.failed = lambda *_, **__: True  # type: ignore[attr-defined]
    made.context.list_line = lose  # type: ignore[method-assign]
    made.probe.enter()
    made.context.opened.add("pay")
    assert made.probe.instead_of(JobTimeoutError("slow")) is None


def test_one_open_breaker_decides_a_group_of_errors() -> None:
    made = calling()
    with pytest.raises(BreakerOpenError, match="sms"):
        made.call(ExceptionGroup("two", [BreakerOpenError("sms"), BreakerOpenError("mail")]))


@pytest.mark.parametrize(
    ("hooks", "held"),
    [({}, False), ({"stray_beside": lambda: False}, False), ({"stray_beside": lambda: True}, True)],
    ids=["no other", "none", "one"],
)
def test_a_job_does_not_run_beside_a_stray_thread(hooks: dict[str, Any], held: bool) -> None:
    gate = StrayGate(run_of(JOB, a_job_type(), **hooks)[0])

    for act in (gate.enter, gate.begin):
        with pytest.raises(StrayThreadError) if held else nullcontext():
            act()
    assert gate.instead_of(StrayThreadError()) == Held(until=NOW + 3 * SECOND, cause=HoldCause.STRAY)
    assert gate.instead_of(JobTimeoutError("slow")) is None


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
    made = calling("pay", wait=wait)
    made.context.admits = lambda policy, job: True  # type: ignore[method-assign]
    made.probe.enter()
    made.call()
    made.probe.returned("done")

    made.depends.leave()

    assert made.context.calls == ([("drain", Line.for_breaker("pay"))] if drains else [])


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
    run, context = run_of(with_changes(JOB, supersedes=supersedes), a_job_type())
    context.undone = undone
    held = None if seconds is None else Held(until=NOW + seconds * SECOND, cause=HoldCause.UNDO)
    assert UndoGate(run).enter() == held


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
    run, context = run_of(with_changes(JOB, supersedes="k", holds=holds, hold_cause=cause), a_job_type())
    context.undone = False
    assert UndoGate(run).enter() == Held(until=NOW + seconds * SECOND, cause=HoldCause.UNDO)


def test_what_a_newer_version_wrote_is_left_to_it() -> None:
    run, context = run_of(with_changes(JOB, supersedes="k"), a_job_type())
    context.undone = NewerSchemaError("document", 9, 8)
    found = UndoGate(run).enter()
    assert isinstance(found, Held)
    assert found.cause is HoldCause.VERSION
    context.undone = StoreUnavailableError("down")
    with pytest.raises(StoreUnavailableError):
        UndoGate(run).enter()


def test_an_elected_job_that_did_not_call_leaves_the_probe_to_another() -> None:
    made = calling("pay", wait=Wait(cause=Cause.BREAKER, key="pay", since=NOW))
    for gate in reversed(gates_of(made.run)):
        gate.leave()
    assert made.context.calls == [("give up", "pay", "j"), ("pass on", "j")]

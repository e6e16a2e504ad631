"""The gate of limits: which slot a run takes, what a full or paused limit means for it, and what it gives back."""

import dataclasses
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, a_job_type
from tests.support.configurations import capped, configured, overridden, paused
from tests.support.gate_context import GateContext, run_of
from tidemill.application.attempt.attempt_report import Unobserved
from tidemill.application.attempt.run import observe_nothing
from tidemill.application.job_types import JobType
from tidemill.application.limits.limit_gate import LimitGate, TurnGate
from tidemill.application.ports import Entered, LimitSlot
from tidemill.domain.attempt.outcomes import Failed, Held, Parked, Succeeded
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive, Trouble
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.pauses import DRAIN_PER_SECOND
from tidemill.domain.waiting.waiting import Cause, Line, Wait

KEY = ("t", "j")
JOB = a_job(tenant="t", id="j", owner="token", due=NOW + SECOND, attempt=1)
RATE = Rate(count=DRAIN_PER_SECOND, period=SECOND)


def parked(line: Line) -> Parked:
    return Parked(Wait(cause=line.cause, key=line.key, since=NOW))


def limited(**changes: Any) -> Any:
    return replace(a_job_type(), **{"limit": Limit(concurrency=2)} | changes)


def entering(job: Job, job_type: JobType, **given: Any) -> tuple[LimitGate, GateContext]:
    run, context = run_of(job, job_type, **given)
    return LimitGate(run), context


def slot_of(context: GateContext) -> LimitSlot:
    ((name, slot, now),) = context.calls
    assert (name, now) == ("acquire", NOW)
    assert isinstance(slot, LimitSlot)
    return slot


@pytest.mark.parametrize(
    ("job", "changes"),
    [
        (JOB, {"token": "token", "until": NOW + SECOND, "released": False}),
        (replace(JOB, due=None), {"token": "token", "until": NOW, "released": False}),
        (replace(JOB, wait=Wait(cause=Cause.PAUSE, key="x", since=NOW)), {"released": False}),
    ],
)
def test_a_run_takes_a_slot_of_the_limit_of_its_type(job: Job, changes: dict[str, Any]) -> None:
    gate, context = entering(job, limited())

    assert gate.enter() is None

    slot = slot_of(context)
    assert (slot.job, slot.limit, slot.declared) == (KEY, Limit(concurrency=2), Limit(concurrency=2))
    assert {name: getattr(slot, name) for name in changes} == changes
    waited = replace(job, wait=Wait(cause=slot.line.cause, key=slot.line.key, since=NOW))
    again, context = entering(waited, limited())
    again.enter()
    assert slot_of(context).released, "its turn in this line has come"


def test_an_override_of_the_limit_counts_and_wake_learns_what_was_declared() -> None:
    gate, context = entering(JOB, limited(), settings=(overridden("test.job.concurrency_per_key", 9),))
    gate.enter()
    assert (slot_of(context).limit, slot_of(context).declared) == (Limit(concurrency=9), Limit(concurrency=2))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ((), None),
        ((capped("caps.t", 3),), Line.for_cap("t", "default")),
        ((capped("caps.another", 3),), None),
    ],
)
def test_a_job_without_a_limit_counts_for_the_cap_of_its_tenant(settings: Any, line: Line | None) -> None:
    gate, context = entering(JOB, a_job_type(), settings=settings)

    assert gate.enter() is None
    if line is None:
        assert context.calls == []
    else:
        assert (slot_of(context).line, slot_of(context).limit) == (line, Limit(concurrency=3))
        assert slot_of(context).declared is None


@pytest.mark.parametrize(("entered", "outcome"), [("line", "parked"), ("time", "held")])
def test_a_full_limit_parks_the_job_or_gives_it_a_time(entered: str, outcome: str) -> None:
    gate, context = entering(JOB, limited())
    other = Line.for_limit("another")
    context.entered = other if entered == "line" else NOW + 9 * SECOND

    found = gate.enter()

    wait = parked(slot_of(context).line).wait
    full = Parked(wait)
    timed = Held(until=NOW + 9 * SECOND, cause=HoldCause.LIMIT, wait=wait)
    assert found == (full if outcome == "parked" else timed)
    context.calls.clear()
    gate.leave()
    assert context.calls == [], "it has no slot to give back"


def test_a_paused_limit_key_parks_the_job_before_it_asks_for_a_slot() -> None:
    gate, context = entering(JOB, limited())
    gate.enter()
    key = slot_of(context).line.key
    for stale in (False, True):
        gate, context = entering(JOB, limited())
        context.configured = dataclasses.replace(configured(paused(f"limit={key}")), stale=stale)
        line = Line.for_pause(f"limit={key}")
        assert gate.enter() == parked(line)
        assert context.calls == ([("list", line, RATE, KEY, NOW)] if stale else [])


ADAPTED = Adapted(allowed=2)


class Observer(Unobserved):
    def __init__(self) -> None:
        self.told: list[tuple[Job, Line, Any]] = []

    def lowered(self, job: Job, line: Line, change: Any) -> None:
        self.told.append((job, line, change))


def test_a_run_under_an_adaptive_limit_is_measured_and_its_first_outcome_counts() -> None:
    adaptive, observer = Limit(adaptive=Adaptive(floor=1, ceiling=9, target_seconds=1)), Observer()
    gate, context = entering(JOB, limited(limit=adaptive), observer=observer)
    context.entered = Entered(adapted=ADAPTED, taken=1, line_stands=True)
    gate.enter()
    with gate.around_call():
        gate.run.observe(0.5, True)
    gate.ended(Succeeded())
    gate.ended(Failed(error_class="E", message="late"))
    context.calls.clear()

    gate.leave()

    ((name, slot, stands),) = context.calls
    assert (name, stands, slot.sample.trouble, slot.sample.seconds) == ("leave", True, Trouble.THROTTLED, 0.5)
    assert observer.told == [(JOB, slot.line, "change")]


def test_a_run_whose_handler_was_not_called_tells_nothing_of_its_downstream() -> None:
    gate, context = entering(JOB, limited(limit=Limit(adaptive=Adaptive(floor=1, ceiling=9, target_seconds=1))))
    context.entered = Entered(adapted=ADAPTED, taken=1)
    gate.enter()
    gate.ended(Succeeded())
    context.calls.clear()
    gate.leave()
    ((_, slot, _),) = context.calls
    assert slot.sample is None


def test_a_fixed_limit_measures_nothing() -> None:
    gate, context = entering(JOB, limited())
    gate.enter()
    with gate.around_call():
        pass
    gate.ended(Succeeded())
    context.calls.clear()
    gate.leave()
    ((_, slot, _),) = context.calls
    assert slot.sample is None
    assert gate.run.observe is observe_nothing


def test_the_end_of_a_run_leaves_its_slot_but_a_rate_has_none() -> None:
    for limit, leaves in ((Limit(concurrency=2), ["leave"]), (Limit(rate=Rate(count=1, period=SECOND)), [])):
        gate, context = entering(JOB, limited(limit=limit))
        gate.enter()
        context.calls.clear()
        gate.leave()
        assert [call[0] for call in context.calls] == leaves


def test_a_turn_that_the_job_did_not_use_is_passed_on() -> None:
    gate, context = entering(JOB, limited())
    gate.enter()
    line = slot_of(context).line
    for waited_in, passes_on in ((line, False), (Line.for_pause("x"), True), (None, False)):
        wait = Wait(cause=waited_in.cause, key=waited_in.key, since=NOW) if waited_in else None
        gate, context = entering(replace(JOB, wait=wait), limited())
        gate.enter()
        context.calls.clear()
        TurnGate(gate.run).leave()
        assert context.calls == ([("pass on", "j")] if passes_on else []), "it has asked for a slot of this line"


def test_a_run_with_a_limit_of_its_own_does_not_count_for_the_cap() -> None:
    gate, context = entering(JOB, limited(), settings=(capped("caps.t", 3),))
    gate.enter()
    assert slot_of(context).limit == Limit(concurrency=2)


def test_a_slot_whose_answer_is_lost_is_given_back() -> None:
    gate, context = entering(JOB, limited())

    def lose(slot: LimitSlot, **_now: Any) -> Entered:
        raise StoreUnavailableError("the answer was lost")

    context.acquire = lose  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailableError):
        gate.enter()
    gate.leave()
    ((name, slot, stands),) = context.calls
    assert (name, slot.job, stands) == ("leave", KEY, False)

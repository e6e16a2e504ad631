"""The gate of limits: which slot a run takes, what a full or paused limit means for it, and what it gives back."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, a_job_type
from tests.support.configurations import capped, configured, overridden, paused
from tests.support.gate_context import GateContext, gates_of
from tidemill.application.ports import Entered, LimitSlot
from tidemill.domain.adaptive_limit import Adapted, Adaptive
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.holds import HoldCause
from tidemill.domain.job import Job
from tidemill.domain.limits import Limit, Rate
from tidemill.domain.outcomes import Failed, Held, Parked, Succeeded
from tidemill.domain.pauses import DRAIN_PER_SECOND
from tidemill.domain.waiting import Cause, Line, Wait

KEY = ("t", "j")
JOB = a_job(tenant="t", id="j", owner="token", due=NOW + SECOND, attempt=1)
RATE = Rate(count=DRAIN_PER_SECOND, period=SECOND)


def parked(line: Line) -> Parked:
    return Parked(Wait(cause=line.cause, key=line.key, since=NOW))


def limited(**changes: Any) -> Any:
    return replace(a_job_type(), **{"limit": Limit(concurrency=2)} | changes)


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
    gates, context = gates_of(limited())
    gates.read_type(job)

    assert gates.within_limits(job) is None

    slot = slot_of(context)
    assert (slot.job, slot.limit, slot.declared) == (KEY, Limit(concurrency=2), Limit(concurrency=2))
    assert {name: getattr(slot, name) for name in changes} == changes
    again, context = gates_of(limited())
    waited = replace(job, wait=Wait(cause=slot.line.cause, key=slot.line.key, since=NOW))
    again.read_type(waited)
    again.within_limits(waited)
    assert slot_of(context).released, "its turn in this line has come"


def test_an_override_of_the_limit_counts_and_wake_learns_what_was_declared() -> None:
    gates, context = gates_of(limited(), settings=(overridden("test.job.concurrency_per_key", 9),))
    gates.read_type(JOB)
    gates.within_limits(JOB)
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
    gates, context = gates_of(a_job_type(), settings=settings)
    gates.read_type(JOB)

    assert gates.within_limits(JOB) is None
    if line is None:
        assert context.calls == []
    else:
        assert (slot_of(context).line, slot_of(context).limit) == (line, Limit(concurrency=3))
        assert slot_of(context).declared is None


@pytest.mark.parametrize(("entered", "outcome"), [("line", "parked"), ("time", "held")])
def test_a_full_limit_parks_the_job_or_gives_it_a_time(entered: str, outcome: str) -> None:
    gates, context = gates_of(limited())
    gates.read_type(JOB)
    other = Line.for_limit("another")
    context.entered = other if entered == "line" else NOW + 9 * SECOND

    found = gates.within_limits(JOB)

    wait = parked(slot_of(context).line).wait
    full = Parked(wait)
    timed = Held(until=NOW + 9 * SECOND, cause=HoldCause.LIMIT, wait=wait)
    assert found == (full if outcome == "parked" else timed)
    context.calls.clear()
    gates.release_slot(JOB, lambda *_: None)
    assert context.calls == [], "it has no slot to give back"


def test_a_paused_limit_key_parks_the_job_before_it_asks_for_a_slot() -> None:
    gates, context = gates_of(limited())
    gates.read_type(JOB)
    gates.within_limits(JOB)
    key = slot_of(context).line.key
    for stale in (False, True):
        gates, context = gates_of(limited())
        context.configured = replace(configured(paused(f"limit={key}")), stale=stale)
        gates.read_type(JOB)
        line = Line.for_pause(f"limit={key}")
        assert gates.within_limits(JOB) == parked(line)
        assert context.calls == ([("list", line, RATE, KEY, NOW)] if stale else [])


ADAPTED = Adapted(allowed=2)


def test_a_run_under_an_adaptive_limit_is_measured_and_its_first_outcome_counts() -> None:
    adaptive = Limit(adaptive=Adaptive(floor=1, ceiling=9, target_seconds=1))
    gates, context = gates_of(limited(limit=adaptive))
    gates.read_type(JOB)
    context.entered = Entered(adapted=ADAPTED, taken=1, line_stands=True)
    gates.within_limits(JOB)
    assert gates.measured is not None
    gates.measured.begin()
    gates.measured.end()
    gates.ended_with(Succeeded())
    gates.ended_with(Failed(error_class="E", message="late"))
    told: list[Any] = []
    context.calls.clear()

    gates.release_slot(JOB, lambda line, change: told.append((line, change)))

    ((name, slot, stands),) = context.calls
    assert (name, stands, slot.sample.trouble) == ("leave", True, None)
    assert told == [(slot.line, "change")]


def test_a_fixed_limit_measures_nothing() -> None:
    gates, _ = gates_of(limited())
    gates.read_type(JOB)
    gates.within_limits(JOB)
    gates.ended_with(Succeeded())
    assert gates.measured is None


def test_the_end_of_a_run_leaves_its_slot_but_a_rate_has_none() -> None:
    for limit, leaves in ((Limit(concurrency=2), ["leave"]), (Limit(rate=Rate(count=1, period=SECOND)), [])):
        gates, context = gates_of(limited(limit=limit))
        gates.read_type(JOB)
        gates.within_limits(JOB)
        context.calls.clear()
        gates.release_slot(JOB, lambda *_: None)
        assert [call[0] for call in context.calls] == leaves


def test_a_turn_that_the_job_did_not_use_is_passed_on() -> None:
    gates, context = gates_of(limited())
    gates.read_type(JOB)
    gates.within_limits(JOB)
    line = slot_of(context).line
    context.calls.clear()
    gates.release_slot(replace(JOB, wait=Wait(cause=line.cause, key=line.key, since=NOW)), lambda *_: None)
    assert [call[0] for call in context.calls] == ["leave"], "it has asked for a slot of this line"

    context.calls.clear()
    gates.release_slot(replace(JOB, wait=Wait(cause=Cause.PAUSE, key="x", since=NOW)), lambda *_: None)
    assert [call[0] for call in context.calls] == ["leave", "pass on"]


def test_a_run_with_a_limit_of_its_own_does_not_count_for_the_cap() -> None:
    gates, context = gates_of(limited(), settings=(capped("caps.t", 3),))
    gates.read_type(JOB)
    gates.within_limits(JOB)
    assert slot_of(context).limit == Limit(concurrency=2)


def test_a_slot_whose_answer_is_lost_is_given_back() -> None:
    gates, context = gates_of(limited())
    gates.read_type(JOB)

    def lose(slot: LimitSlot, **_now: Any) -> Entered:
        raise StoreUnavailableError("the answer was lost")

    context.acquire = lose  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailableError):
        gates.within_limits(JOB)
    gates.release_slot(JOB, lambda *_: None)
    ((name, slot, stands),) = context.calls
    assert (name, slot.job, stands) == ("leave", KEY, False)

"""Publish: which causes of a wait let a message pass a pause, and what it does for flows."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.builders import A_WAIT, NOW, SECOND, TENANT, a_job, reference_to, with_changes
from tests.support.configurations import configured, paused
from tests.support.publish_world import World
from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.dispatch.publish import FailedStep
from tidemill.application.dispatch.reactions import PublishStep
from tidemill.application.ports import Refusal
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.errors import StoreUnavailableError, WriteRefusedError
from tidemill.domain.flows.flow_place import FlowPlace
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause

WORK = Work(kind=Kind.DISPATCH, tenant=TENANT, name="j")


@pytest.mark.parametrize("step", PublishStep)
def test_a_failed_step_names_its_job_or_its_group(step: PublishStep) -> None:
    named = FailedStep("1", step, WORK, "no", handed_over=True).named
    assert named == ("group" if step is PublishStep.ADVANCE else "job_id")


@pytest.mark.parametrize("cause", Cause)
def test_only_a_turn_at_a_limit_or_the_probe_of_a_breaker_passes_a_pause(cause: Cause) -> None:
    world = World(configuration=configured(paused("type=test.job")))
    job = a_job(wait=replace(A_WAIT, cause=cause))

    published = world.publish(Change("1", None, job))

    passes = cause in {Cause.LIMIT, Cause.BREAKER}
    assert [sent.body for sent in published.sent] == [reference_to(job)] * passes
    assert [parked for parked, _ in world.groups.parks] == [job] * (not passes)


def test_a_job_that_was_asked_to_end_and_lost_its_run_passes_a_pause() -> None:
    """A worker ends it. Its group would stand for as long as the pause."""
    world = World(configuration=configured(paused("type=test.job")))
    job = a_job(state=State.RETRYING, cancel_requested_at=NOW)

    assert [sent.body for sent in world.publish(Change("1", None, job)).sent] == [reference_to(job)]
    assert world.groups.parks == []


@pytest.mark.parametrize(
    ("after", "looks"), [(a_job(), 1), (a_job(state=State.DEAD, due=None), 0), (a_job(state=State.SUCCEEDED), 0)]
)
def test_only_for_a_job_that_may_run_the_configuration_is_asked_for(after: Any, looks: int) -> None:
    world = World()
    world.publish(Change("1", a_job(state=State.RUNNING), after))
    assert world.looks == looks


NODE = a_job(state=State.RUNNING, flow=FlowPlace(id="f", node="n"))
ENDED = Change("7", NODE, replace(NODE, state=State.SUCCEEDED, due=None, finished_at=NOW))


def test_a_flow_advances_when_one_of_its_nodes_ends() -> None:
    calls: list[Any] = []
    flow: Any = SimpleNamespace(advance=lambda *flow, redriven: calls.append((*flow, redriven)))

    published = World(flows=lambda: flow).publish(ENDED)

    assert calls == [(TENANT, "f", frozenset({"n"}), False)]
    assert (published.failed_steps, published.advanced) == ([], [])


def test_where_no_flow_advances_the_end_of_a_node_needs_nothing() -> None:
    world = World()
    assert world.publish(ENDED).failed_steps == []
    assert world.owed.stored == {}


def test_a_flow_that_cannot_advance_is_owed() -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise StoreUnavailableError("busy")

    flow: Any = SimpleNamespace(advance=fail)
    world = World(flows=lambda: flow)

    (step,) = world.publish(ENDED).failed_steps

    work = Work(kind=Kind.FLOW, tenant=TENANT, name="f")
    assert (step.sequence, step.step, step.work, step.handed_over) == ("7", PublishStep.FLOW, work, True)
    assert list(world.owed.stored) == [work]


JOB = a_job(id="j", generation=2)
LATER = NOW + 40 * SECOND


@pytest.mark.parametrize(
    ("change", "parks"),
    [
        ({"due": LATER}, 2),
        ({}, 1),
        ({"due": LATER, "state": State.RUNNING}, 1),
        ({"due": LATER, "generation": 3}, 1),
        # Another job that has its id, since the first one has expired.
        ({"due": LATER, "created_at": NOW + SECOND}, 1),
    ],
    ids=["moved", "unchanged", "running", "queued anew", "another job"],
)
def test_a_job_that_could_not_be_parked_is_tried_again_only_if_nothing_but_its_time_has_changed(
    change: dict[str, Any], parks: int
) -> None:
    world = World(configuration=configured(paused("type=test.job")))
    park = world.groups.park

    def refuse_once(job: Any, wait: Any, *, now: Any) -> Any:
        if not world.groups.parks:
            world.groups.parks.append((job, wait))
            raise WriteRefusedError("park", with_changes(JOB, **change))
        return park(job, wait, now=now)

    world.groups.park = refuse_once  # type: ignore[method-assign]  # for once

    world.publish(Change("1", None, JOB))

    assert len(world.groups.parks) == parks


def test_a_refused_message_says_why_and_names_its_step() -> None:
    world = World()
    world.lanes.refuses = [Refusal(0, sender_fault=True, error="too long")]

    (step,) = world.publish(Change("1", None, JOB)).failed_steps

    assert step == FailedStep("1", PublishStep.SEND, WORK, "too long", handed_over=True)


def test_a_job_of_a_group_that_only_begins_to_run_advances_nothing() -> None:
    queued = a_job(group="parcels")
    world = World()
    world.publish(Change("1", queued, replace(queued, state=State.RUNNING)))
    assert world.groups.calls == []


def test_a_deleted_job_whose_document_held_its_payload_leaves_nothing_to_delete() -> None:
    world = World()
    world.publish(Change("1", a_job(state=State.SUCCEEDED, due=None), None))
    assert world.payloads.deleted == []

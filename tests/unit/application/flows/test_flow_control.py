"""The nodes that are added to a flow, and its cancel: the documents, and what is refused."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, TENANT, a_job, a_job_type, with_changes
from tests.support.in_memory_flows import FLOW_ID, InMemoryFlows
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.control.control import Control
from tidemill.application.flows import flows as use_cases
from tidemill.application.flows.flow_nodes import FlowParts
from tidemill.application.flows.flows import FlowControl
from tidemill.application.job_types import JobType
from tidemill.application.submission.submit import Admit
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.errors import (
    Fault,
    FlowRefusedError,
    InvalidPayloadError,
    PayloadTooLargeError,
    SignalRefusedError,
    SubmissionPausedError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.flows.flows import MOST_ADDED, MOST_ADDITIONS, Edge, Node
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.domain.waiting.signals import Signal
from tidemill.names import Lane


class Flows(InMemoryFlows):
    """Flows whose writes are refused as a test says, and whose signals are kept."""

    def __init__(self) -> None:
        super().__init__([{"name": "a"}, {"name": "b", "after": ["a"]}])
        self.refusals: list[Exception] = []
        self.pauses: list[float] = []
        self.types: tuple[JobType, ...] = (a_job_type(name="test.node"),)
        self.admits: tuple[Admit, ...] = ()

    @property
    def with_types(self) -> FlowParts:
        return replace(self.parts, submit=InMemoryJobs().submit(*self.types))

    @property
    def control(self) -> FlowControl:
        control = Control(store=self, clock=lambda: NOW, new_token=lambda: "token")
        return FlowControl(control, self.with_types, pause_below=self.pauses.append, admits=self.admits)

    def add(self, flow: Job, addition: str, *, now: Any) -> Job:
        if self.refusals:
            raise self.refusals.pop(0)
        assert now == NOW
        return super().add(flow, addition, now=now)

    def signal(self, job: Job, *signal: Any, **_wakes: Any) -> Job:
        (given,) = signal
        self.documents[job.id] = with_changes(job, signals=(*job.signals.received, given))
        return self.documents[job.id]

    def change(self, **changes: Any) -> None:
        self.documents[FLOW_ID] = with_changes(self.flow, **changes)


def a_node(name: str, *after: str | Edge, **submission: Any) -> Node:
    return Node(name, Submission(**{"type": "test.node"} | submission), after=after)


def test_added_nodes_follow_each_other_and_those_of_the_flow() -> None:
    flows = Flows()
    flows.types = (replace(a_job_type(name="test.node"), lane=Lane.BULK),)

    flow = flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c", "b", "d"), a_node("d", "a")])

    assert flow == flows.flow
    assert flow is not None
    assert flow.flow_state.additions == 1
    assert [json.loads(each) for each in flows.additions] == [
        {
            "nodes": [
                {"name": "c", "type": "test.node", "after": ["b", "d"]},
                {"name": "d", "type": "test.node", "after": ["a"]},
            ],
            "types": {"test.node": {"lane": "bulk"}},
        }
    ]
    assert flows.control.size(flow) == 4


def test_an_added_node_may_not_be_of_a_type_whose_jobs_are_unique() -> None:
    flows = Flows()
    flows.types = (replace(a_job_type(name="test.node"), unique=timedelta(hours=1)),)

    with pytest.raises(InvalidPayloadError) as refused:
        flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c")])

    assert [fault.path for fault in refused.value.faults] == ["/nodes/0/type"]
    assert flows.additions == []


@pytest.mark.parametrize(
    ("again", "added"),
    [
        ([a_node("a")], 0),
        ([a_node("a"), a_node("b", "a")], 0),
        ([a_node("c")], 1),
    ],
)
def test_the_same_nodes_again_change_nothing(again: Sequence[Node], added: int) -> None:
    flows = Flows()
    flow = flows.control.add_nodes(TENANT, FLOW_ID, again)
    assert flow == flows.flow
    assert len(flows.additions) == added
    flows.control.add_nodes(TENANT, FLOW_ID, again)
    assert len(flows.additions) == added

    # Also if the flow takes no others.
    flows.change(state=State.SUCCEEDED)
    assert flows.control.add_nodes(TENANT, FLOW_ID, again) == flows.flow


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ([], ["/nodes"]),
        ([a_node("b")], ["/nodes/0/name"]),
        ([a_node("a"), a_node("c")], ["/nodes/0/name"]),
        ([a_node("c", "none"), a_node("d e")], ["/nodes/0/after/0", "/nodes/1/name"]),
        ([a_node("c", type="none")], ["/nodes/0/type"]),
        ([a_node("c"), a_node("d", payload={"n": float("nan")})], ["/nodes/1/payload"]),
    ],
)
def test_each_fault_of_an_added_node_has_its_path(given: list[Node], paths: list[str]) -> None:
    flows = Flows()
    # A flow that has ended says so only of nodes without faults.
    flows.change(state=State.SUCCEEDED)

    with pytest.raises(InvalidPayloadError) as refused:
        flows.control.add_nodes(TENANT, FLOW_ID, given)

    assert [fault.path for fault in refused.value.faults] == paths
    assert flows.additions == []


@pytest.mark.parametrize(
    ("added", "additions", "fault"),
    [
        (MOST_ADDED, MOST_ADDITIONS - 1, None),
        (MOST_ADDED + 1, 0, f"must be at most {MOST_ADDED} nodes; add the others in another call"),
        (1, MOST_ADDITIONS, f"nodes were added {MOST_ADDITIONS} times; a flow allows no more"),
    ],
)
def test_a_flow_takes_so_many_nodes_at_once_and_so_often(added: int, additions: int, fault: str | None) -> None:
    flows = Flows()
    flows.additions = ['{"nodes": [], "types": {}}'] * additions
    flows.change(additions=additions)
    given = [a_node(f"n{number}") for number in range(added)]

    if fault is None:
        flows.control.add_nodes(TENANT, FLOW_ID, given)
        assert len(flows.additions) == additions + 1
        return
    with pytest.raises(InvalidPayloadError) as refused:
        flows.control.add_nodes(TENANT, FLOW_ID, given)
    assert refused.value.faults == (Fault("/nodes", fault),)


CANCEL = (Signal(name=CANCELLED, at=NOW, data="true"),)


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"state": State.DEAD}, "has ended"), ({"signals": CANCEL}, "was cancelled")],
)
def test_a_flow_that_starts_no_nodes_takes_none(changes: dict[str, Any], why: str) -> None:
    flows = Flows()
    flows.change(**changes)
    with pytest.raises(FlowRefusedError, match=f"the flow {FLOW_ID} {why}"):
        flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c")])


@pytest.mark.parametrize("fits", [True, False])
def test_an_addition_is_as_large_as_a_body_at_most(fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    flows = Flows()
    flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c", payload={"text": "x" * 99})])
    size = len(flows.additions[0])
    monkeypatch.setattr(use_cases, "LARGEST_BODY_BYTES", size if fits else size - 1)

    if fits:
        assert flows.control.add_nodes(TENANT, FLOW_ID, [a_node("d", payload={"text": "x" * 99})])
        return
    with pytest.raises(PayloadTooLargeError) as refused:
        flows.control.add_nodes(TENANT, FLOW_ID, [a_node("d", payload={"text": "x" * 99})])
    assert (refused.value.size_bytes, refused.value.limit_bytes) == (size, size - 1)


@pytest.mark.parametrize("fits", [True, False])
def test_all_nodes_of_a_flow_together_are_bounded(fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    flows = Flows()
    for name in ("c", "d"):
        flows.control.add_nodes(TENANT, FLOW_ID, [a_node(name, payload={"text": "x" * 99})])
    size = len(flows.flow.payload.text or "") + 2 * len(flows.additions[0])
    monkeypatch.setattr(use_cases, "LARGEST_FLOW_BYTES", size if fits else size - 1)
    flows.change(additions=1)
    del flows.additions[1]

    if fits:
        assert flows.control.add_nodes(TENANT, FLOW_ID, [a_node("e", payload={"text": "x" * 99})])
        return
    with pytest.raises(PayloadTooLargeError, match="the flow with these nodes is") as refused:
        flows.control.add_nodes(TENANT, FLOW_ID, [a_node("e", payload={"text": "x" * 99})])
    assert (refused.value.size_bytes, refused.value.limit_bytes) == (size, size - 1)


@pytest.mark.parametrize("refusal", [WriteRefusedError("add", None), TransactionConflictError("busy")])
@pytest.mark.parametrize(("times", "added"), [(19, True), (20, False)])
def test_an_addition_is_tried_twenty_times_while_others_change_the_flow(
    refusal: Exception, times: int, added: bool
) -> None:
    flows = Flows()
    flows.refusals = [refusal] * times

    if added:
        assert flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c")]) == flows.flow
        return
    with pytest.raises(TransactionConflictError, match="20 times"):
        flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c")])


def test_the_pauses_of_an_addition_double_up_to_the_longest() -> None:
    flows = Flows()
    flows.refusals = [TransactionConflictError("busy")] * 7
    flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c")])
    assert flows.pauses == [0.02, 0.04, 0.08, 0.16, 0.25, 0.25, 0.25]


def test_an_addition_that_meets_no_other_does_not_pause() -> None:
    flows = Flows()
    flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c")])
    assert flows.pauses == []


def test_only_a_flow_of_the_tenant_takes_nodes_or_a_cancel() -> None:
    flows = Flows()
    flows.documents["job"] = a_job(id="job")
    for name in ("job", "none"):
        assert flows.control.add_nodes(TENANT, name, [a_node("c")]) is None
        assert flows.control.cancel(TENANT, name) is None
    assert (flows.additions, flows.looks, flows.documents["job"].signals.received) == ([], 0, ())


def test_a_cancel_is_a_signal_that_lets_the_flow_look() -> None:
    flows = Flows()

    cancelled = flows.control.cancel(TENANT, FLOW_ID)

    assert cancelled == flows.flow
    assert (flows.flow.signals.received, flows.looks) == (CANCEL, 1)
    assert flows.control.cancel(TENANT, FLOW_ID) == flows.flow, "it may be repeated"
    assert (flows.flow.signals.received, flows.looks) == (CANCEL, 2)


def test_a_flow_that_has_ended_takes_no_cancel() -> None:
    flows = Flows()
    flows.change(state=State.SUCCEEDED)
    with pytest.raises(SignalRefusedError):
        flows.control.cancel(TENANT, FLOW_ID)
    assert flows.looks == 0


def test_each_added_node_is_asked_for_once_however_often_the_write_is_tried() -> None:
    flows, asked = Flows(), list[tuple[str, str, str | None]]()

    def admit(job: Job) -> Job:
        asked.append((job.tenant, job.type, job.group.key))
        return job

    flows.admits = (admit,)
    flows.refusals = [WriteRefusedError("add", flows.flow)] * 3
    flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c", group="g"), a_node("d")])
    flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c", group="g"), a_node("d")])

    assert asked == [(TENANT, "test.node", "g"), (TENANT, "test.node", None)]


def test_a_node_that_is_refused_adds_nothing_and_leaves_the_others_uncounted() -> None:
    flows, counted = Flows(), list[Job]()

    def refuse(job: Job) -> Job:
        if job.group.key:
            raise SubmissionPausedError("group", timedelta(minutes=1))
        return job

    def count(job: Job) -> Job:
        counted.append(job)
        return job

    flows.admits = (refuse, count)
    with pytest.raises(SubmissionPausedError):
        flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c"), a_node("d", group="g")])

    assert (counted, flows.flow.flow_state.additions) == ([], 0)

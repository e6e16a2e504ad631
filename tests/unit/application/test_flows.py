"""The start of a flow, the nodes that are added to it, and its cancel: the documents, and what is refused."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT, a_job, a_job_type
from tests.support.in_memory_flows import FLOW_ID, InMemoryFlows
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application import flows as use_cases
from tidemill.application.control import Control
from tidemill.application.flow_nodes import FlowParts
from tidemill.application.flows import FlowControl, start_flow
from tidemill.application.job_ids import keyed_job_id
from tidemill.application.job_types import JobType
from tidemill.domain.errors import (
    Fault,
    FlowRefusedError,
    InvalidPayloadError,
    JobFileError,
    KeyReusedError,
    PayloadTooLargeError,
    SignalRefusedError,
    TransactionConflictError,
    UnloadedJobTypeError,
    WriteRefusedError,
)
from tidemill.domain.flow_place import NODE_GROUP
from tidemill.domain.flows import CANCELLED, MOST_ADDED, MOST_ADDITIONS, Edge, Flow, Node, OnFailure
from tidemill.domain.job import Job
from tidemill.domain.signals import Signal
from tidemill.domain.states import State
from tidemill.domain.submission import Submission, Unique
from tidemill.names import FLOW_TYPE, Lane


def strict(payload: Any) -> Any:
    if payload.get("n", 0) < 0:
        raise InvalidPayloadError([Fault("/payload/n", "must not be negative")])
    return payload


PLAIN = a_job_type(name="plain", parse=strict)
RICH = replace(
    a_job_type(name="rich"),
    lane=Lane.CRITICAL,
    blocks=True,
    max_age=timedelta(minutes=1),
    retention=timedelta(days=2),
)
FLOW = a_job_type(name=FLOW_TYPE)
TYPES = (FLOW, PLAIN, RICH)


def node(name: str = "a", *after: str | Edge, **submission: Any) -> Node:
    return Node(name, Submission(**{"type": "plain"} | submission), after=after)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (node(), {"name": "a", "type": "plain"}),
        (node(payload={"n": 1}), {"name": "a", "type": "plain", "payload": {"n": 1}}),
        (node(lane=Lane.BULK), {"name": "a", "type": "plain", "lane": "bulk"}),
        (node(group="g"), {"name": "a", "type": "plain", "group": "g"}),
        (node(tags=("b", "a")), {"name": "a", "type": "plain", "tags": ["a", "b"]}),
        (node(max_age=timedelta(seconds=1.5)), {"name": "a", "type": "plain", "max_age_seconds": 1.5}),
    ],
)
def test_a_flow_keeps_each_node_as_it_was_asked_for(given: Node, stored: dict[str, Any]) -> None:
    jobs = InMemoryJobs()

    accepted = start_flow(Flow(nodes=[given]), jobs.submit(*TYPES), tenant="t", trace="pia")

    types = {"plain": {"lane": "default"}}
    assert json.loads(accepted.job.payload or "") == {"nodes": [stored], "types": types}
    assert (accepted.job.type, accepted.job.trace, accepted.replayed) == (FLOW_TYPE, "pia", False)
    assert jobs.writes == [("insert", accepted.job.id, None)]


def test_a_flow_keeps_its_edges_and_the_facts_of_its_types() -> None:
    edges = ("a", Edge(node="b", on_failure=OnFailure.SKIP), Edge(node="c"))
    given = [node("a"), node("b", type="rich"), node("c", type="rich"), node("d", *edges)]

    job = start_flow(Flow(nodes=given, tags=("x",)), InMemoryJobs().submit(*TYPES), tenant="t", trace="pia").job

    stored = json.loads(job.payload or "")
    assert stored["nodes"][3]["after"] == ["a", {"node": "b", "on_failure": "skip"}, "c"]
    assert stored["types"] == {
        "plain": {"lane": "default"},
        "rich": {"lane": "critical", "blocks": True, "max_age_seconds": 60, "retention_seconds": 172_800},
    }
    assert job.tags == ("x",)


def test_the_same_key_starts_one_flow_also_after_a_type_has_changed() -> None:
    jobs = InMemoryJobs()
    flow = Flow(nodes=[node()], key="k")
    first = start_flow(flow, jobs.submit(*TYPES), tenant="t", trace="pia")
    assert first.job.id == keyed_job_id("t", "flow/k"), "no job of the key k has it"

    other_facts = replace(PLAIN, lane=Lane.BULK)
    again = start_flow(flow, jobs.submit(FLOW, other_facts), tenant="t", trace="joe")
    assert (again.job, again.replayed) == (first.job, True)
    # The type is gone, and the answer is the same.
    gone = start_flow(flow, jobs.submit(FLOW), tenant="t", trace="joe")
    assert (gone.job, gone.replayed) == (first.job, True)
    with pytest.raises(KeyReusedError):
        start_flow(Flow(nodes=[node("b")], key="k"), jobs.submit(*TYPES), tenant="t", trace="joe")
    with pytest.raises(KeyReusedError):
        start_flow(Flow(nodes=[node("b")], key="k"), jobs.submit(FLOW), tenant="t", trace="joe")
    with pytest.raises(InvalidPayloadError):
        start_flow(replace(flow, key="another"), jobs.submit(FLOW), tenant="t", trace="joe")


def test_each_flow_without_a_key_is_another() -> None:
    jobs = InMemoryJobs()
    for _ in range(2):
        assert not start_flow(Flow(nodes=[node()]), jobs.submit(*TYPES), tenant="t", trace="pia").replayed
    assert len(jobs.writes) == 2


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ([], ["/nodes"]),
        ([node("a b")], ["/nodes/0/name"]),
        ([node("a"), node("a")], ["/nodes/1/name"]),
        ([node("a", "none")], ["/nodes/0/after/0"]),
        ([node(group=NODE_GROUP)], ["/nodes/0/group"]),
        ([node(type="none")], ["/nodes/0/type"]),
        ([node(), node("b", payload={"n": -1})], ["/nodes/1/payload/n"]),
        ([node(payload={"text": "x" * 300_000})], ["/nodes/0/payload"]),
        ([node(group=NODE_GROUP, type="none")], ["/nodes/0/group", "/nodes/0/type"]),
        ([node(type="rich", lane=Lane.CRITICAL, tags=("NO",))], ["/nodes/0/tags/0"]),
        ([node(key="k")], ["/nodes/0/idempotency_key"]),
        ([node(unique=Unique(period=SECOND))], ["/nodes/0/unique"]),
        ([node(delay=SECOND)], ["/nodes/0/delay_seconds"]),
        ([node(run_at=NOW)], ["/nodes/0/run_at"]),
        ([node(deadline=NOW)], ["/nodes/0/deadline"]),
        ([node(supersedes="k")], ["/nodes/0/supersedes"]),
        ([node(batch="b")], ["/nodes/0/batch"]),
        ([node(debounce=SECOND)], ["/nodes/0/debounce_seconds"]),
        # What a node may not have is named alone.
        ([node(key="k", delay=SECOND, type="none")], ["/nodes/0/idempotency_key", "/nodes/0/delay_seconds"]),
    ],
)
def test_each_fault_of_a_node_has_its_path(given: list[Node], paths: list[str]) -> None:
    jobs = InMemoryJobs()

    with pytest.raises(InvalidPayloadError) as refused:
        start_flow(Flow(nodes=given), jobs.submit(*TYPES), tenant="t", trace="pia")

    assert [fault.path for fault in refused.value.faults] == paths
    assert jobs.writes == []


def test_a_flow_waits_for_a_broken_job_file() -> None:
    broken = JobFileError("jobs.py:1: SyntaxError", names=("mail",))
    with pytest.raises(UnloadedJobTypeError):
        start_flow(
            Flow(nodes=[node(type="mail"), node("b", key="k")]),
            InMemoryJobs().submit(*TYPES, faults=[broken]),
            tenant="t",
            trace="pia",
        )


class Flows(InMemoryFlows):
    """Flows whose writes are refused as a test says, and whose signals are kept."""

    def __init__(self) -> None:
        super().__init__([{"name": "a"}, {"name": "b", "after": ["a"]}])
        self.refusals: list[Exception] = []
        self.pauses: list[float] = []
        self.types: tuple[JobType, ...] = (a_job_type(name="test.node"),)

    @property
    def with_types(self) -> FlowParts:
        return replace(self.parts, submit=InMemoryJobs().submit(*self.types))

    @property
    def control(self) -> FlowControl:
        control = Control(store=self, clock=lambda: NOW, new_token=lambda: "token")
        return FlowControl(control, self.with_types, pause_below=self.pauses.append)

    def add(self, flow: Job, addition: str, *, now: Any) -> Job:
        if self.refusals:
            raise self.refusals.pop(0)
        assert now == NOW
        return super().add(flow, addition, now=now)

    def signal(self, job: Job, *signal: Any, **_wakes: Any) -> Job:
        (given,) = signal
        self.documents[job.id] = replace(job, signals=(*job.signals, given))
        return self.documents[job.id]

    def change(self, **changes: Any) -> None:
        self.documents[FLOW_ID] = replace(self.flow, **changes)


def a_node(name: str, *after: str | Edge, **submission: Any) -> Node:
    return node(name, *after, **{"type": "test.node"} | submission)


def test_added_nodes_follow_each_other_and_those_of_the_flow() -> None:
    flows = Flows()
    flows.types = (replace(a_job_type(name="test.node"), lane=Lane.BULK),)

    flow = flows.control.add_nodes(TENANT, FLOW_ID, [a_node("c", "b", "d"), a_node("d", "a")])

    assert flow == flows.flow
    assert flow is not None
    assert flow.additions == 1
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
    size = len(flows.flow.payload or "") + 2 * len(flows.additions[0])
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
    assert (flows.additions, flows.looks, flows.documents["job"].signals) == ([], 0, ())


def test_a_cancel_is_a_signal_that_lets_the_flow_look() -> None:
    flows = Flows()

    cancelled = flows.control.cancel(TENANT, FLOW_ID)

    assert cancelled == flows.flow
    assert (flows.flow.signals, flows.looks) == (CANCEL, 1)
    assert flows.control.cancel(TENANT, FLOW_ID) == flows.flow, "it may be repeated"
    assert (flows.flow.signals, flows.looks) == (CANCEL, 2)


def test_a_flow_that_has_ended_takes_no_cancel() -> None:
    flows = Flows()
    flows.change(state=State.SUCCEEDED)
    with pytest.raises(SignalRefusedError):
        flows.control.cancel(TENANT, FLOW_ID)
    assert flows.looks == 0


def test_a_payload_that_is_not_json_is_refused_also_with_a_key() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"n": deep}
    for payload in ({"n": float("nan")}, deep):
        flow = Flow(nodes=[node(payload=payload)], key="k")
        with pytest.raises(InvalidPayloadError):
            start_flow(flow, InMemoryJobs().submit(*TYPES), tenant="t", trace="pia")

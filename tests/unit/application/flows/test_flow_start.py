"""The start of a flow: its document, and what is refused."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job_type
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.flows.flows import start_flow
from tidemill.application.submission.job_ids import keyed_job_id
from tidemill.domain.errors import (
    Fault,
    InvalidPayloadError,
    JobFileError,
    KeyReusedError,
    UnloadedJobTypeError,
)
from tidemill.domain.flows.flow_place import NODE_GROUP
from tidemill.domain.flows.flows import Edge, Flow, Node, OnFailure
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission, Unique
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
    assert json.loads(accepted.job.payload.text or "") == {"nodes": [stored], "types": types}
    assert (accepted.job.type, accepted.job.trace, accepted.replayed) == (FLOW_TYPE, "pia", False)
    assert jobs.writes == [("insert", accepted.job.id, None)]


def test_a_flow_keeps_its_edges_and_the_facts_of_its_types() -> None:
    edges = ("a", Edge(node="b", on_failure=OnFailure.SKIP), Edge(node="c"))
    given = [node("a"), node("b", type="rich"), node("c", type="rich"), node("d", *edges)]

    job = start_flow(Flow(nodes=given, tags=("x",)), InMemoryJobs().submit(*TYPES), tenant="t", trace="pia").job

    stored = json.loads(job.payload.text or "")
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
        ([node(), node("")], ["/nodes/1/name"]),
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


def test_a_repeated_start_finds_its_flow_though_a_type_is_not_loaded() -> None:
    jobs = InMemoryJobs()
    flow = Flow(nodes=[node(type="rich")], key="order-7")
    first = start_flow(flow, jobs.submit(*TYPES), tenant="t", trace="pia")
    broken = JobFileError("jobs.py:1: SyntaxError", names=("rich",))

    again = start_flow(flow, jobs.submit(FLOW, PLAIN, faults=[broken]), tenant="t", trace="pia")

    assert (again.job, again.replayed) == (first.job, True)


def test_the_same_nodes_in_another_order_are_the_same_flow() -> None:
    submit = InMemoryJobs().submit(*TYPES)
    given = [node("b", "a"), node("a"), node("c", "a", "b")]
    first = start_flow(Flow(nodes=given, key="order-7"), submit, tenant="t", trace="pia")

    again = start_flow(Flow(nodes=given[::-1], key="order-7"), submit, tenant="t", trace="pia")

    assert (again.job, again.replayed) == (first.job, True)
    parents_swapped = [*given[:2], node("c", "b", "a")]
    with pytest.raises(KeyReusedError):
        # A handler gets the results of its parents in this order.
        start_flow(Flow(nodes=parents_swapped, key="order-7"), submit, tenant="t", trace="pia")


def test_a_node_without_name_and_a_payload_that_is_not_json_are_refused_also_with_a_key() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"n": deep}
    with pytest.raises(InvalidPayloadError):
        start_flow(Flow(nodes=[node("")], key="k"), InMemoryJobs().submit(*TYPES), tenant="t", trace="pia")
    for payload in ({"n": float("nan")}, deep):
        flow = Flow(nodes=[node(payload=payload)], key="k")
        with pytest.raises(InvalidPayloadError):
            start_flow(flow, InMemoryJobs().submit(*TYPES), tenant="t", trace="pia")

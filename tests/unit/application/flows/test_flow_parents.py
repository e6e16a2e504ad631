"""The results of the parents of a node, as its handler reads them."""

import pytest

from tests.support.builders import SECOND, a_job
from tests.support.in_memory_flows import FLOW_ID, InMemoryFlows
from tidemill.application.flows.flow_parents import ParentResults
from tidemill.application.submission.job_ids import node_job_id
from tidemill.domain.errors import PermanentJobError
from tidemill.domain.flows.flow_place import FlowPlace
from tidemill.domain.job import Job
from tidemill.domain.records import replace


def a_flow(count: int = 3) -> tuple[InMemoryFlows, Job]:
    """And the job of a node that follows the others, of which each has its number as its result."""
    names = [f"p{number}" for number in range(count)]
    flows = InMemoryFlows([*({"name": name} for name in names), {"name": "child", "after": list(reversed(names))}])
    flows.look_at_all()
    for number, name in enumerate(names):
        job = flows.node(name)
        assert job is not None
        flows.documents[job.id] = replace(job, result=str(number))
    flows.calls.clear()
    place = FlowPlace(id=FLOW_ID, node="child")
    return flows, a_job(id=node_job_id(flows.flow, "child"), tenant=flows.flow.tenant, flow=place)


def results(flows: InMemoryFlows, node: Job) -> ParentResults:
    return ParentResults(node, flows, flows.parts.graphs)


def test_they_come_by_name_in_the_order_of_the_edges() -> None:
    flows, node = a_flow()
    found = results(flows, node)

    assert list(found) == ["p2", "p1", "p0"]
    assert (len(found), found["p1"], "p0" in found, "none" in found) == (3, 1, True, False)
    assert list(found.items()) == [("p2", 2), ("p1", 1), ("p0", 0)]
    assert list(found.values()) == [2, 1, 0]
    with pytest.raises(KeyError):
        found["none"]


def test_a_parent_without_a_result_has_none() -> None:
    flows, node = a_flow()
    for name, result in (("p0", None), ("p1", "null")):
        job = flows.node(name)
        assert job is not None
        flows.documents[job.id] = replace(job, result=result)
    flows.documents.pop(node_job_id(flows.flow, "p2"))

    assert dict(results(flows, node).items()) == {"p0": None, "p1": None, "p2": None}


def test_nothing_is_read_before_it_is_asked_for_and_the_graph_once() -> None:
    flows, node = a_flow(150)
    found = results(flows, node)
    assert flows.calls.total() == 0

    assert len(found) == 150
    assert found["p149"] == 149
    assert (flows.calls["get"], flows.calls["documents"]) == (1, 1)
    flows.calls.clear()
    first, *_ = found.items()
    assert first == ("p149", 149)
    assert (flows.calls["get"], flows.calls["get_many"], flows.calls["documents"]) == (0, 2, 150)


def test_the_first_hundred_are_read_together() -> None:
    flows, node = a_flow(150)

    next(iter(results(flows, node).items()))

    assert (flows.calls["get_many"], flows.calls["documents"]) == (1, 100)


def test_a_job_outside_of_a_flow_has_no_parents() -> None:
    flows, node = a_flow()
    found = results(flows, replace(node, flow=None))
    assert (dict(found.items()), len(found), flows.calls.total()) == ({}, 0, 0)


_DELETED = "the flow flow of this node is deleted, so the results of its parents cannot be found"


def test_a_node_whose_flow_is_deleted_dies_when_it_asks_for_its_parents() -> None:
    flows, node = a_flow()
    flows.documents.pop(FLOW_ID)
    with pytest.raises(PermanentJobError, match=_DELETED):
        len(results(flows, node))


def test_the_parents_of_a_node_are_not_those_of_a_later_flow_of_the_same_key() -> None:
    flows, node = a_flow()
    flows.documents[FLOW_ID] = replace(flows.flow, created_at=flows.flow.created_at + SECOND)
    flows.look_at_all()
    for name in ("p0", "p1", "p2"):
        later = flows.node(name)
        assert later
        flows.documents[later.id] = replace(later, result='"of the later flow"')
    with pytest.raises(PermanentJobError, match=_DELETED):
        dict(results(flows, node))

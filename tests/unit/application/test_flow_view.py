"""A flow as its owner reads it: JSON, and a flowchart."""

import json
from dataclasses import replace

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.in_memory_flows import FLOW_ID, InMemoryFlows, nodes
from tidemill.application.flow_nodes import NodeDocuments
from tidemill.application.flow_view import LARGEST_PAGE_BYTES, flow_view, graph_view, mermaid, page_of
from tidemill.application.job_ids import node_job_id
from tidemill.domain.flows import MOST_EDGES, MOST_NODES
from tidemill.domain.signals import Signal
from tidemill.domain.states import State
from tidemill.names import LARGEST_EVENT_BYTES


def test_a_flowchart_has_each_node_and_each_edge_by_its_rule() -> None:
    ship = {"name": "ship", "state": "dead", "after": []}
    edges = [{"node": "ship", "on_failure": rule} for rule in ("fail", "skip", "continue", "a later rule")]

    lines = list(mermaid([ship, {"name": "tell", "state": "pending", "after": edges}]))

    assert lines == [
        "flowchart TD",
        '    n0["ship<br/>dead"]:::dead',
        '    n1["tell<br/>pending"]:::pending',
        "    n0 --> n1",
        "    n0 -. skip .-> n1",
        "    n0 -. continue .-> n1",
        "    n0 --> n1",
    ]


AT = "2045-03-04T05:06:07.891Z"


def test_a_flow_is_shown_without_its_nodes() -> None:
    flow = replace(InMemoryFlows(nodes(a=[])).flow, tags=("x",))
    shown = {
        "id": FLOW_ID,
        "state": "parked",
        "size": 7,
        "created_at": AT,
        "cancel_requested_at": None,
        "finished_at": None,
        "expires_at": None,
        "tags": ["x"],
    }
    assert flow_view(flow, 7) == shown
    asked = replace(flow, signals=(Signal(name="cancelled", at=NOW + SECOND, data="true"),))
    ended = replace(asked, finished_at=NOW + 2 * SECOND, expires_at=NOW + 3 * SECOND)
    assert flow_view(ended, 7) == shown | {
        "cancel_requested_at": "2045-03-04T05:06:08.891Z",
        "finished_at": "2045-03-04T05:06:09.891Z",
        "expires_at": "2045-03-04T05:06:10.891Z",
    }


def test_each_node_is_shown_with_what_has_become_of_it() -> None:
    tolerant = {"node": "dead", "on_failure": "skip"}
    six = [f"p{number}" for number in range(6)]
    flows = InMemoryFlows(
        [
            *nodes(done=[], dead=[], live=["done"], skipped=[tolerant], blocked=["dead"], later=["done", "live"]),
            *nodes(**{name: [] for name in six}),
            *nodes(last=six),
        ]
    )
    flows.look_at_all()
    flows.end("done")
    flows.end("dead", State.DEAD)
    flows.look_at_all()
    flow = flows.flow

    shown = graph_view(NodeDocuments(flow, flows.parts))

    assert {key: shown[key] for key in ("id", "size")} == {"id": FLOW_ID, "size": 13}
    assert shown["counts"] == {"blocked": 1, "dead": 1, "pending": 2, "queued": 7, "skipped": 1, "succeeded": 1}
    assert list(shown["counts"]) == sorted(shown["counts"])
    by_name = {node["name"]: node for node in shown["nodes"]}
    assert list(by_name) == ["done", "dead", "live", "skipped", "blocked", "later", *six, "last"]
    states = {name: by_name[name]["state"] for name in ("done", "dead", "live", "skipped", "blocked", "later")}
    assert states == {
        "done": "succeeded",
        "dead": "dead",
        "live": "queued",
        "skipped": "skipped",
        "blocked": "blocked",
        "later": "pending",
    }
    with_jobs = {name for name, node in by_name.items() if node["job_id"]}
    assert with_jobs == {"done", "dead", "live", *six}
    assert by_name["live"] == {
        "name": "live",
        "type": "test.node",
        "state": "queued",
        "job_id": node_job_id(flow, "live"),
        "after": [{"node": "done", "on_failure": "fail"}],
        "waits_for": [],
    }
    assert by_name["skipped"]["after"] == [tolerant]
    assert by_name["later"]["waits_for"] == ["live"]
    assert by_name["last"]["waits_for"] == six[:5], "the first five"
    assert by_name["blocked"]["waits_for"] == []


def test_a_node_that_has_started_waits_for_no_parent_that_is_redriven() -> None:
    flows = InMemoryFlows(nodes(a=[], b=[{"node": "a", "on_failure": "continue"}]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    flows.look_at_all()
    job = flows.node("a")
    assert job is not None
    flows.redrive(job)

    shown = graph_view(NodeDocuments(flows.flow, flows.parts))["nodes"]

    assert [(node["state"], node["waits_for"]) for node in shown] == [("queued", []), ("queued", [])]


def test_the_largest_flow_comes_in_pages_that_fit_into_an_answer_of_lambda() -> None:
    name = "n" * 64
    edges = [{"node": name, "on_failure": "continue"}] * (MOST_EDGES // MOST_NODES)
    node = {"name": name, "type": "t" * 100, "state": "pending", "job_id": None, "after": edges}
    flow = {"counts": {"pending": MOST_NODES}, "nodes": [node | {"waits_for": [name] * 5}] * MOST_NODES}

    pages = [page_of(flow, 0)]
    while cursor := pages[-1]["cursor"]:
        pages.append(page_of(flow, int(cursor)))

    assert [each for page in pages for each in page["nodes"]] == flow["nodes"]
    assert {page["counts"]["pending"] for page in pages} == {MOST_NODES}
    answers = [len(json.dumps({"body": json.dumps(page)})) for page in pages]
    assert max(answers) < LARGEST_EVENT_BYTES < sum(answers)


def test_a_node_that_fills_a_page_alone_is_shown() -> None:
    wide = {"name": "wide", "after": ["n" * 64] * 100_000}

    assert page_of({"nodes": [wide, wide]}, 1) == {"nodes": [wide], "cursor": None}
    assert page_of({"nodes": [wide, wide]}, 0) == {"nodes": [wide], "cursor": "1"}
    assert page_of({"nodes": [wide]}, 7) == {"nodes": [], "cursor": None}


@pytest.mark.parametrize(("more", "cursor"), [(0, None), (1, "1")])
def test_a_page_holds_the_nodes_that_fit_into_it(more: int, cursor: str | None) -> None:
    first = {"name": "n" * (LARGEST_PAGE_BYTES // 2 - len('{"name":""}'))}
    second = {"name": first["name"] + "n" * more}

    assert page_of({"nodes": [first, second]}, 0)["cursor"] == cursor

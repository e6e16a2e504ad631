"""A flow as its owner reads it, as JSON."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, with_changes
from tests.support.in_memory_flows import FLOW_ID, InMemoryFlows, nodes
from tidemill.application.flows import flow_view as flow_views
from tidemill.application.flows.flow_nodes import NodeDocuments
from tidemill.application.flows.flow_view import (
    LARGEST_PAGE_BYTES,
    MOST_ON_PAGE,
    counts_of,
    fitting,
    flow_view,
    graph_view,
    page_view,
)
from tidemill.application.submission.job_ids import node_job_id
from tidemill.domain.flows.flows import MOST_EDGES
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Signal
from tidemill.names import LARGEST_EVENT_BYTES

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
    asked = with_changes(flow, signals=(Signal(name="cancelled", at=NOW + SECOND, data="true"),))
    ended = with_changes(asked, finished_at=NOW + 2 * SECOND, expires_at=NOW + 3 * SECOND)
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


def test_the_widest_page_fits_into_an_answer_of_lambda() -> None:
    name = "n" * 64
    edges = [{"node": name, "on_failure": "continue"}] * (MOST_EDGES // MOST_ON_PAGE)
    node = {"name": name, "type": "t" * 100, "state": "pending", "job_id": None, "after": edges}

    shown = fitting([node | {"waits_for": [name] * 5}] * MOST_ON_PAGE)

    assert 0 < len(shown) < MOST_ON_PAGE
    assert len(json.dumps({"body": json.dumps({"nodes": shown})})) < LARGEST_EVENT_BYTES


def test_a_node_that_fills_a_page_alone_is_shown() -> None:
    wide = {"name": "wide", "after": ["n" * 64] * 100_000}
    assert fitting([wide, wide]) == [wide]


@pytest.mark.parametrize(("more", "shown"), [(0, 2), (1, 1)])
def test_a_page_holds_the_nodes_that_fit_into_it(more: int, shown: int) -> None:
    first = {"name": "n" * (LARGEST_PAGE_BYTES // 2 - len('{"name":""}'))}
    second = {"name": first["name"] + "n" * more}

    assert len(fitting([first, second])) == shown


class Read(InMemoryFlows):
    """Notes which documents are read."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.read: list[str] = []

    def get_many(self, keys: Sequence[tuple[str, str]], **options: Any) -> list[Job]:
        self.read += [job_id for _, job_id in keys]
        return super().get_many(keys, **options)


def pages_of(flows: Read, first: int = 0) -> list[dict[str, Any]]:
    pages = [page_view(NodeDocuments(flows.flow, flows.parts), first)]
    while cursor := pages[-1]["cursor"]:
        pages.append(page_view(NodeDocuments(flows.flow, flows.parts), int(cursor)))
    return pages


def test_a_page_reads_the_documents_of_the_nodes_that_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_views, "MOST_ON_PAGE", 10)
    names = [f"n{number}" for number in range(35)]
    flows = Read(nodes(**{name: [] for name in names}))
    whole = graph_view(NodeDocuments(flows.flow, flows.parts))
    flows.read.clear()

    pages = pages_of(flows)

    assert [len(page["nodes"]) for page in pages] == [10, 10, 10, 5]
    assert [node for page in pages for node in page["nodes"]] == whole["nodes"]
    assert [(page["size"], page["counts"]) for page in pages] == [(35, {"pending": 10})] * 3 + [(35, {"pending": 5})]
    assert len(flows.read) == len(set(flows.read)) == 35, "each document once, for all pages"
    flows.read.clear()
    assert pages_of(flows, first=35)[0]["nodes"] == pages_of(flows, first=99_999)[0]["nodes"] == []
    assert flows.read == [], "nothing is read beyond the end"


def test_a_page_reads_as_many_parents_of_its_nodes_as_it_may_show_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_views, "MOST_ON_PAGE", 3)
    parents = [f"n{number}" for number in range(7)]
    flows = Read(nodes(**{name: [] for name in parents}, last=parents))
    flows.look_at_all()
    flows.end("n0")
    flows.read.clear()

    (page,) = pages_of(flows, first=7)

    assert page["nodes"][0]["waits_for"] == ["n1", "n2"], "of the three that were read, one has ended"
    assert len(flows.read) == 4


def test_counts_of_nodes_are_by_state() -> None:
    assert counts_of([{"state": "b"}, {"state": "a"}, {"state": "b"}]) == {"a": 1, "b": 2}

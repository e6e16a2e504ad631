"""The graphs of flows that an environment keeps."""

import json
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, with_changes
from tests.support.in_memory_flows import InMemoryFlows, nodes
from tests.support.one_at_a_time import OneAtATime
from tidemill.application.flows import flow_graphs
from tidemill.application.flows.flow_graphs import FlowGraphs, FlowNodes, edges_of
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError
from tidemill.domain.flows.flows import Edge, OnFailure
from tidemill.domain.job import Job
from tidemill.names import FLOW_TYPE


@dataclass
class Loads(InMemoryFlows):
    """Counts what is loaded."""

    loaded: list[str] = field(default_factory=list)
    asked: list[Sequence[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(nodes(a=[], b=["a"]))

    def load(self, job: Job) -> str:
        self.loaded.append(job.id)
        return super().load(job)

    def added(self, flow: Job, numbers: Sequence[int]) -> Sequence[str]:
        self.asked.append(numbers)
        return super().added(flow, numbers)


def test_the_graphs_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Loads()
    size_bytes = FlowGraphs(store=store, payloads=store).of(store.flow).held_bytes
    store.loaded.clear()
    monkeypatch.setattr(flow_graphs, "_GRAPH_BYTES", 4 * size_bytes)
    graphs = FlowGraphs(store=store, payloads=store)
    flows = {name: a_job(id=name, type=FLOW_TYPE, payload=store.flow.payload.text) for name in "12345"}

    for name in "12341512":
        graphs.of(flows[name])

    # Only the second flow had to go, for the fifth.
    assert store.loaded == [*"12345", "2"]


def test_the_graph_of_a_flow_is_kept_when_its_payloads_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Loads()
    monkeypatch.setattr(flow_graphs, "_TEXT_BYTES", 0)
    graphs = FlowGraphs(store=store, payloads=store)
    flow = added_to(store, "c", "d")
    known = graphs.of(flow)
    store.loaded.clear()
    store.asked.clear()

    assert graphs.of(flow) is known
    assert (store.loaded, store.asked) == ([], [])
    assert graphs.stored(flow, known, 3) == {"name": "d", "type": "type.d", "after": ["a"]}
    assert graphs.stored(flow, known, 1)["name"] == "b"
    assert (store.loaded, store.asked) == ([flow.id], [range(1)]), "each node reads only the part that has it"


@pytest.mark.parametrize("item", ["[]", "{}", '"ab"', "1.5", '{"":0}', '"\\u20ac"', "[[[[]]]]"])
def test_a_graph_takes_little_more_memory_than_its_text(item: str) -> None:
    """Parsed at once, the text takes up to 30 times its size. A function holds the graphs of several tenants."""
    payload = f'{{"a":[{",".join([item] * (20_000 // (len(item) + 1)))}]}}'
    texts = [f'{{"name":"n{number}","type":"t","payload":{payload}}}' for number in range(50)]
    store = Loads()
    flow = a_job(type=FLOW_TYPE, payload=f'{{"nodes":[{",".join(texts)}],"types":{{"t":{{}}}}}}')
    graphs = FlowGraphs(store=store, payloads=store)

    tracemalloc.start()
    try:
        known = graphs.of(flow)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # The text itself belongs to the flow. A parsed node takes 30 fiftieths of it, and the next one is read beside it.
    assert kept < 0.1 * known.size_bytes
    assert peak < 2 * known.size_bytes
    assert graphs.stored(flow, known, 49)["payload"] == json.loads(payload)


def test_what_a_graph_takes_is_not_above_what_it_counts() -> None:
    named = [{"name": f"node-{number}", "type": "t", "after": [f"node-{number % 7}"] * 5} for number in range(2_000)]
    flow = a_job(type=FLOW_TYPE, payload=json.dumps({"nodes": named, "types": {}}))
    tracemalloc.start()
    try:
        known = FlowNodes().extended({0: flow.payload.text or ""})
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.5 * known.held_bytes < kept < known.held_bytes


@pytest.mark.parametrize("text", ['{"nodes" : [ {"name":"a","type":"t"} , {"name":"b","type":"t"} ] , "types":{} }'])
def test_a_flow_may_be_stored_with_spaces(text: str) -> None:
    assert FlowNodes().extended({0: text}).graph.names == ("a", "b")


@pytest.mark.parametrize("text", ['{"nodes" [', '{"nodes":[{"name":"a","type":"t"} {', '["nodes"]'])
def test_a_flow_that_is_not_json_is_malformed(text: str) -> None:
    with pytest.raises(MalformedDocumentError, match="are not JSON"):
        FlowNodes().extended({0: text})


def added_to(store: Loads, *names: str) -> Job:
    """The flow after one more addition of these nodes."""
    addition = {"nodes": [{"name": name, "type": f"type.{name}", "after": ["a"]} for name in names]}
    return store.add(store.flow, json.dumps(addition | {"types": {f"type.{name}": {} for name in names}}), now=NOW)


def test_only_the_nodes_that_were_added_since_are_read() -> None:
    store = Loads()
    graphs = FlowGraphs(store=store, payloads=store)
    old = store.flow
    assert graphs.of(old).graph.names == ("a", "b")
    assert store.asked == []

    first = added_to(store, "c")
    assert graphs.of(first).graph.names == ("a", "b", "c")
    second = added_to(store, "d", "e")
    known = graphs.of(second)

    assert known.graph.names == ("a", "b", "c", "d", "e")
    assert (known.additions, sorted(known.types)) == (2, ["type.c", "type.d", "type.e"])
    assert known.job_types[2:] == ["type.c", "type.d", "type.e"]
    assert store.asked == [range(1), range(1, 2)]
    assert graphs.of(second) is known
    assert graphs.of(old) is known, "an older document of the flow may find nodes that were added later"
    assert store.loaded == [store.flow.id]
    texts = [store.flow.payload.text or "", *store.additions]
    assert known.size_bytes == sum(map(len, texts))


def test_a_graph_whose_additions_cannot_be_read_in_full_is_read_again() -> None:
    store = Loads()
    flow = with_changes(added_to(store, "c"), additions=3)
    graphs = FlowGraphs(store=store, payloads=store)

    with pytest.raises(StoreUnavailableError, match="2 additions to the flow flow are missing"):
        graphs.of(flow)
    added_to(store, "d")
    assert graphs.of(added_to(store, "e")).graph.names == ("a", "b", "c", "d", "e")


@pytest.mark.parametrize("change", [{"tenant": "another"}, {"id": "another"}, {"created_at": NOW + SECOND}])
def test_another_flow_has_a_graph_of_its_own(change: dict[str, Any]) -> None:
    store = Loads()
    graphs = FlowGraphs(store=store, payloads=store)
    graphs.of(store.flow)
    graphs.of(with_changes(store.flow, **change))
    assert len(store.loaded) == 2


def test_an_edge_is_the_name_of_a_parent_or_has_a_rule() -> None:
    stored = {"after": ["a", {"node": "b", "on_failure": "skip"}]}
    assert edges_of(stored) == [Edge(node="a"), Edge(node="b", on_failure=OnFailure.SKIP)]
    assert edges_of({}) == []


def test_threads_note_the_graphs_that_they_have_used_one_after_another() -> None:
    """Two that let go of the oldest graph at once would fail."""
    noting = OneAtATime()

    class Values(dict[Any, Any]):
        def pop(self, key: Any, default: Any = None) -> Any:
            noting.visit()
            return super().pop(key, default)

    store = Loads()
    graphs = FlowGraphs(store=store, payloads=store)
    graphs._known._values = Values()
    flow = store.flow
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(graphs.of, [flow] * 20))

"""Graphs of flows: numbers, order, and the path of each fault."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.counted_instructions import counting
from tidemill.domain.flows import flow_graph
from tidemill.domain.flows.flow_graph import LAST, Graph, graph_faults
from tidemill.domain.flows.flows import Edge

Nodes = Sequence[tuple[str, Sequence[Edge]]]


def nodes(**after: Sequence[str]) -> Nodes:
    return [(name, [Edge(node=parent) for parent in parents]) for name, parents in after.items()]


def paths(given_nodes: Nodes, known: Graph | None = None) -> list[str]:
    return [fault.path for fault in graph_faults(given_nodes, known=known)]


def test_a_graph_knows_parents_children_and_ends() -> None:
    graph = Graph(nodes(d=["b", "c"], b=["a"], c=["a"], a=[], e=[]))
    names = graph.names
    assert [names[each.number] for each in graph.parents_of(0)] == ["b", "c"]
    assert [names[each] for each in graph.children_of(names.index("a"))] == ["b", "c"]
    assert graph.children_of(names.index("d")) == (LAST,)
    assert [names[each.number] for each in graph.parents_of(LAST)] == ["d", "e"]
    assert [names[each] for each in graph.order] == ["a", "e", "b", "c", "d"]


@pytest.mark.parametrize(
    ("given_nodes", "found"),
    [
        (nodes(), ["/nodes"]),
        (nodes(a=["a"]), ["/nodes/0/after/0"]),
        (nodes(a=[], b=["a", "none", "a"]), ["/nodes/1/after/1", "/nodes/1/after/2"]),
        ([*nodes(a=[]), *nodes(a=[])], ["/nodes/1/name"]),
        (nodes(a=["b"], b=["a"]), ["/nodes/1/after/0"]),
        (nodes(a=["c"], b=["a"], c=["b"], x=["y"], y=["x"], z=["x", "a"]), ["/nodes/1/after/0", "/nodes/4/after/0"]),
        (nodes(a=["b"], b=[]), []),
    ],
)
def test_each_fault_has_its_path(given_nodes: Nodes, found: list[str]) -> None:
    assert paths(given_nodes) == found


def test_each_fault_says_what_is_wrong() -> None:
    given_nodes = [*nodes(a=["a"], b=["none", "c", "c"], c=[]), *nodes(c=[])]
    known = Graph(nodes(c=[]))

    assert [str(fault) for fault in graph_faults(given_nodes)] == [
        "/nodes/3/name: the same name as that of the node at /nodes/2",
        "/nodes/0/after/0: a node cannot follow itself",
        "/nodes/1/after/0: no node has the name 'none'",
        "/nodes/1/after/2: names the parent 'c' a second time",
    ]
    assert [str(fault) for fault in graph_faults(nodes(c=[]), known=known)] == [
        "/nodes/0/name: the flow has a node 'c' already"
    ]
    assert [str(fault) for fault in graph_faults([])] == ["/nodes: must hold a node"]


def test_a_fault_names_the_cycle() -> None:
    (fault,) = graph_faults(nodes(a=["c"], b=["a"], c=["b"]))
    assert fault.message == "closes a cycle: a after c after b after a"


@pytest.mark.parametrize(("names", "rest"), [("abcdefgh", ""), ("abcdefghi", "… after ")])
def test_a_fault_names_eight_nodes_of_a_cycle(names: str, rest: str) -> None:
    (fault,) = graph_faults(nodes(**dict(zip(names, [*names[1:], names[0]], strict=True))))
    assert fault.message == f"closes a cycle: {' after '.join('abcdefgh')} after {rest}a"


def test_added_nodes_may_follow_those_that_are_there() -> None:
    known = Graph(nodes(a=[], b=["a"]))
    assert paths(nodes(c=["a", "b"], d=["c"]), known) == []
    assert paths(nodes(a=["b"], d=["x"]), known) == ["/nodes/0/name", "/nodes/1/after/0"]


def test_sizes_are_bounded_with_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_graph, "MOST_NODES", 3)
    monkeypatch.setattr(flow_graph, "MOST_EDGES", 2)
    known = Graph(nodes(a=[], b=["a"]))
    assert paths(nodes(c=["a"]), known) == []
    assert paths(nodes(c=["a", "b"]), known) == ["/nodes"]
    assert paths(nodes(c=[], d=[]), known) == ["/nodes"]


def test_a_long_chain_needs_no_recursion() -> None:
    chain = [(f"n{number}", [Edge(node=f"n{number + 1}")] if number < 4_999 else []) for number in range(5_000)]
    assert paths(chain) == []
    closed = [*chain[:-1], ("n4999", [Edge(node="n0")])]
    assert paths(closed) == ["/nodes/4999/after/0"]


@st.composite
def graphs(draw: st.DrawFn) -> Nodes:
    count = draw(st.integers(1, 8))
    names = [f"n{number}" for number in range(count)]
    parents = st.lists(st.sampled_from(names), unique=True, max_size=3)
    return [(name, [Edge(node=parent) for parent in draw(parents)]) for name in names]


@given(graphs())
def test_a_graph_is_sound_if_and_only_if_it_has_an_order(given_nodes: Nodes) -> None:
    faults = paths(given_nodes)
    graph = Graph(given_nodes)
    position = {number: at for at, number in enumerate(graph.order)}
    assert (len(position) == len(graph)) is not bool(faults)
    for child, at in position.items():
        assert all(position[each.number] < at for each in graph.parents[child])
    if faults and not any(edge.node == name for name, edges in given_nodes for edge in edges):
        # Without the edges that close cycles, it is sound.
        kept = [
            (name, [edge for index, edge in enumerate(edges) if f"/nodes/{number}/after/{index}" not in faults])
            for number, (name, edges) in enumerate(given_nodes)
        ]
        assert paths(kept) == []


def test_each_edge_that_closes_a_cycle_takes_the_same_work() -> None:
    def work(count: int) -> int:
        """A chain, and from each of its nodes the edges back to the five before it."""
        chain = [Edge(node=f"n{number}") for number in range(count + 1)]
        given_nodes = [(f"n{at}", [chain[at + 1], *chain[max(at - 5, 0) : at]]) for at in range(count)]
        given_nodes.append((f"n{count}", chain[:1]))
        counts: Counter[str] = Counter()
        with counting(counts):
            faults = list(graph_faults(given_nodes))
        assert len(faults) > 4 * count
        return counts.total()

    assert work(1_000) < 2.1 * work(500)

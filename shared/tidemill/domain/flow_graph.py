"""The graph of a flow: which node follows which, in numbers. Pure.

A node keeps its number: those that are added later get the next ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tidemill.domain.errors import Fault
from tidemill.domain.flows import MOST_EDGES, MOST_NODES, Edge, OnFailure

#: The number of the implicit last node, which follows each node that no other one follows.
LAST: Final = -1
_NAMES_OF_CYCLE: Final = 8


@dataclass(frozen=True, slots=True)
class Parent:
    """An edge, seen from its child."""

    number: int
    on_failure: OnFailure


class Graph:
    """Of sound nodes, each given by its name and its edges."""

    def __init__(self, nodes: Sequence[tuple[str, Sequence[Edge]]]) -> None:
        self.names = tuple(name for name, _ in nodes)
        self.numbers: Mapping[str, int] = {name: number for number, name in enumerate(self.names)}
        self.parents = tuple(
            tuple(Parent(self.numbers[edge.node], edge.on_failure) for edge in edges) for _, edges in nodes
        )
        children: list[list[int]] = [[] for _ in nodes]
        for child, parents in enumerate(self.parents):
            for parent in parents:
                children[parent.number].append(child)
        self._children = tuple(map(tuple, children))

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def last_parents(self) -> tuple[Parent, ...]:
        """The parents of the last node. Its edges do not matter: it only waits until all have ended."""
        ends = (number for number, children in enumerate(self._children) if not children)
        return tuple(Parent(number, OnFailure.CONTINUE) for number in ends)

    def parents_of(self, node: int) -> tuple[Parent, ...]:
        return self.last_parents if node == LAST else self.parents[node]

    def children_of(self, node: int) -> tuple[int, ...]:
        """With the last node, if no other one follows."""
        return self._children[node] or (LAST,)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Each node after its parents."""
        open_parents = [len(parents) for parents in self.parents]
        ready = [number for number, count in enumerate(open_parents) if not count]
        for number in ready:
            for child in self._children[number]:
                open_parents[child] -= 1
                if not open_parents[child]:
                    ready.append(child)
        return tuple(ready)


#: The nodes of which a graph is made, each by its name and its edges.
_Nodes = Sequence[tuple[str, Sequence[Edge]]]
#: The path of the nodes in a request.
_NODES: Final = "/nodes"


def graph_faults(nodes: _Nodes, *, known: Graph | None = None) -> list[Fault]:
    """Each fault of names, edges and sizes, at its path. `known` is the graph to which the nodes are added."""
    known = known or Graph([])
    faults = [*_sizes(nodes, known), *_names(nodes, known), *_edges(nodes, known)]
    return faults or list(_cycles(nodes))


def _sizes(nodes: _Nodes, known: Graph) -> Iterator[Fault]:
    if not nodes:
        yield Fault(_NODES, "must hold a node")
    if (count := len(known) + len(nodes)) > MOST_NODES:
        yield Fault(_NODES, f"a flow has at most {MOST_NODES} nodes; with these it has {count}")
    edges = sum(map(len, known.parents)) + sum(len(parents) for _, parents in nodes)
    if edges > MOST_EDGES:
        yield Fault(_NODES, f"a flow has at most {MOST_EDGES} edges; with these it has {edges}")


def _names(nodes: _Nodes, known: Graph) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for number, (name, _) in enumerate(nodes):
        if name in known.numbers:
            yield Fault(f"{_NODES}/{number}/name", f"the flow has a node {name!r} already")
        elif name in first:
            yield Fault(f"{_NODES}/{number}/name", f"the same name as that of the node at {_NODES}/{first[name]}")
        first.setdefault(name, number)


def _edges(nodes: _Nodes, known: Graph) -> Iterator[Fault]:
    names = {*known.numbers, *(name for name, _ in nodes)}
    for number, (name, parents) in enumerate(nodes):
        seen: set[str] = set()
        for index, edge in enumerate(parents):
            path = f"{_NODES}/{number}/after/{index}"
            if edge.node == name:
                yield Fault(path, "a node cannot follow itself")
            elif edge.node not in names:
                yield Fault(path, f"no node has the name {edge.node!r}")
            elif edge.node in seen:
                yield Fault(path, f"names the parent {edge.node!r} a second time")
            seen.add(edge.node)


def _cycles(nodes: _Nodes) -> Iterator[Fault]:
    """One fault for each edge that closes a cycle, found by a walk from each node to its parents."""
    number_of: Callable[[str], int | None] = {name: number for number, (name, _) in enumerate(nodes)}.get
    done = [False] * len(nodes)
    for start in range(len(nodes)):
        # Each step of the walk: a node, and the index of the next of its parents. No recursion: a chain may be long.
        walk: list[tuple[int, int]] = [] if done[start] else [(start, 0)]
        on_walk = {start}
        while walk:
            number, index = walk.pop()
            parents = nodes[number][1]
            if index == len(parents):
                done[number] = True
                continue
            walk.append((number, index + 1))
            parent = number_of(parents[index].node)
            if parent is None or done[parent]:
                continue
            if parent in on_walk:
                steps = [step for step, _ in walk]
                cycle = [nodes[step][0] for step in steps[steps.index(parent) :]]
                yield Fault(f"{_NODES}/{number}/after/{index}", f"closes a cycle: {_shown(cycle)}")
                continue
            on_walk.add(parent)
            walk.append((parent, 0))


def _shown(cycle: Sequence[str]) -> str:
    named = [*cycle[:_NAMES_OF_CYCLE], *(["…"] if len(cycle) > _NAMES_OF_CYCLE else []), cycle[0]]
    return " after ".join(named)

"""The graph of a flow: which node follows which, in numbers. Pure.

A node keeps its number: those that are added later get the next ones.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from typing import Any, Final, overload

from msgspec import Struct

from tidemill.domain.errors import Fault
from tidemill.domain.flows.flows import MOST_EDGES, MOST_NODES, Edge, OnFailure

#: The number of the implicit last node, which follows each node that no other one follows.
LAST: Final = -1
_NAMES_OF_CYCLE: Final = 8
_RULES: Final = tuple(OnFailure)
#: The children of a node that no other one follows.
_NONE: Final = array("L")


class Parent(Struct, frozen=True):
    """An edge, seen from its child."""

    number: int
    on_failure: OnFailure


class Parents(Sequence[tuple[Parent, ...]]):
    """The parents of each node, by number. Kept as whole numbers: the objects of 50,000 edges would take 5 MB."""

    def __init__(self) -> None:
        self._edges = array("L")
        #: Where the edges of each node end.
        self._ends = array("L")

    def append(self, parents: Iterable[Parent]) -> None:
        self._edges.extend(each.number * len(_RULES) + _RULES.index(each.on_failure) for each in parents)
        self._ends.append(len(self._edges))

    def __copy__(self) -> "Parents":
        copied = Parents()
        copied._edges, copied._ends = self._edges[:], self._ends[:]
        return copied

    @property
    def edges(self) -> int:
        return len(self._edges)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, node: int) -> tuple[Parent, ...]: ...
    @overload
    def __getitem__(self, node: slice) -> Sequence[tuple[Parent, ...]]: ...
    def __getitem__(self, node: int | slice) -> Any:
        if isinstance(node, slice):
            return [self[each] for each in range(*node.indices(len(self)))]
        begins = self._ends[node - 1] if node else 0
        return tuple(
            Parent(edge // len(_RULES), _RULES[edge % len(_RULES)]) for edge in self._edges[begins : self._ends[node]]
        )


class Graph:
    """The graph of sound nodes, each given by its name and its edges. `known` has those to which they are added."""

    def __init__(self, nodes: Iterable[tuple[str, Iterable[Edge]]], *, known: "Graph | None" = None) -> None:
        given = list(nodes)
        self.names: tuple[str, ...] = (*(known.names if known else ()), *(name for name, _ in given))
        self.numbers: Mapping[str, int] = {name: number for number, name in enumerate(self.names)}
        self.parents: Parents = copy(known.parents) if known else Parents()
        for _, edges in given:
            self.parents.append(Parent(self.numbers[edge.node], edge.on_failure) for edge in edges)
        self._children = _children(self.parents)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def last_parents(self) -> tuple[Parent, ...]:
        """The parents of the last node. Its edges do not matter: it only waits until all have ended."""
        ends = (number for number in range(len(self)) if not self._children[number])
        return tuple(Parent(number, OnFailure.CONTINUE) for number in ends)

    def parents_of(self, node: int) -> tuple[Parent, ...]:
        return self.last_parents if node == LAST else self.parents[node]

    def children_of(self, node: int) -> tuple[int, ...]:
        """With the last node, if no other one follows."""
        return tuple(self._children[node]) or (LAST,)

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


def _children(parents: Parents) -> Sequence[Sequence[int]]:
    children = [_NONE] * len(parents)
    for child, some in enumerate(parents):
        for parent in some:
            if children[parent.number] is _NONE:
                children[parent.number] = array("L")
            children[parent.number].append(child)
    return children


#: The nodes of which a graph is made, each by its name and its edges.
_Nodes = Sequence[tuple[str, Sequence[Edge]]]
#: The path of the nodes in a request.
_NODES: Final = "/nodes"


def graph_faults(nodes: _Nodes, *, known: Graph | None = None) -> Iterator[Fault]:
    """Each fault of names, edges and sizes, at its path. `known` is the graph to which the nodes are added."""
    known = known or Graph([])
    faults = chain(_sizes(nodes, known), _names(nodes, known), _edges(nodes, known))
    first = next(faults, None)
    yield from _cycles(nodes) if first is None else chain([first], faults)


def _sizes(nodes: _Nodes, known: Graph) -> Iterator[Fault]:
    if not nodes:
        yield Fault(_NODES, "must hold a node")
    if (count := len(known) + len(nodes)) > MOST_NODES:
        yield Fault(_NODES, f"a flow has at most {MOST_NODES} nodes; with these it has {count}")
    edges = known.parents.edges + sum(len(parents) for _, parents in nodes)
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
    """One fault for each edge that closes a cycle, found by a walk from each node to its parents.

    Each edge takes the same time, also one that closes a long cycle: a request may have 50,000 of them.
    """
    number_of: Callable[[str], int | None] = {name: number for number, (name, _) in enumerate(nodes)}.get
    done = [False] * len(nodes)
    for start in range(len(nodes)):
        # Each step of the walk: a node, and the index of the next of its parents. No recursion: a chain may be long.
        walk: list[tuple[int, int]] = [] if done[start] else [(start, 0)]
        #: The place of each node on the walk.
        on_walk = {start: 0}
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
                begins = on_walk[parent]
                named = [nodes[step][0] for step, _ in walk[begins : begins + _NAMES_OF_CYCLE]]
                dots = ["…"] if len(walk) - begins > _NAMES_OF_CYCLE else []
                cycle = " after ".join([*named, *dots, named[0]])
                yield Fault(f"{_NODES}/{number}/after/{index}", f"closes a cycle: {cycle}")
                continue
            on_walk[parent] = len(walk)
            walk.append((parent, 0))

"""Reads the graphs of flows. A graph never changes, except that nodes are added, so a process keeps the last ones.

The payloads of nodes are kept as text, apart from the graph, and parsed one by one: tenants choose them, and JSON that
is parsed may take 30 times its text.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from json.decoder import WHITESPACE  # type: ignore[attr-defined]  # the stubs lack it
from typing import Any, Final

from msgspec import Struct, field

from tidemill.application.flows.bounded_cache import BoundedCache
from tidemill.application.ports import FlowStore, Payloads
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError
from tidemill.domain.flows.flow_graph import Graph
from tidemill.domain.flows.flows import Edge, OnFailure
from tidemill.domain.job import Job

#: The bounds of all graphs that a process keeps, and of their texts. The graph of 10,000 nodes takes 4 to 9 MB, and
#: their text at most 8 MiB.
_GRAPH_BYTES: Final = 48 * 1024 * 1024
_TEXT_BYTES: Final = 24 * 1024 * 1024
#: About what a graph takes for each node, besides its name and its group, and for each edge.
_NODE_BYTES: Final = 400
_EDGE_BYTES: Final = 24
_DECODER: Final = json.JSONDecoder()


class FlowNodes(Struct, frozen=True, kw_only=True):
    """The graph of a flow, and what its looks need of each node, by number."""

    graph: Graph = field(default_factory=lambda: Graph([]))
    job_types: Sequence[str] = ()
    #: The groups of the nodes that have one.
    groups: Mapping[int, str] = field(default_factory=dict)
    #: Where each node is stored: the number of the addition, 0 for the start of the flow, and its place in the text.
    places: Sequence[tuple[int, int, int]] = ()
    #: The facts of their types when they were accepted, by type.
    types: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: How often nodes had been added.
    additions: int = 0
    #: The size of the JSON text in which the nodes are stored.
    size_bytes: int = 0

    @property
    def held_bytes(self) -> int:
        """About what it takes in memory."""
        texts = sum(map(len, self.graph.names)) + sum(map(len, self.groups.values()))
        return texts + _NODE_BYTES * len(self.graph) + _EDGE_BYTES * self.graph.parents.edges

    def extended(self, texts: Mapping[int, str]) -> "FlowNodes":
        """With the nodes of these parts, by the number of the addition."""
        named: list[tuple[str, Sequence[Edge]]] = []
        job_types, groups, places = list(self.job_types), dict(self.groups), list(self.places)
        types = dict(self.types)
        for part, text in texts.items():
            for node, begins, ends in _nodes(text, types):
                if "group" in node:
                    groups[len(places)] = node["group"]
                named.append((node["name"], edges_of(node)))
                job_types.append(sys.intern(node["type"]))
                places.append((part, begins, ends))
        return FlowNodes(
            graph=Graph(named, known=self.graph),
            job_types=job_types,
            groups=groups,
            places=places,
            types=types,
            additions=max(texts),
            size_bytes=self.size_bytes + sum(map(len, texts.values())),
        )


class FlowGraphs:
    """Threads may share one."""

    def __init__(self, *, store: FlowStore, payloads: Payloads) -> None:
        self._store = store
        self._payloads = payloads
        self._known = BoundedCache[FlowNodes](_GRAPH_BYTES)
        self._texts = BoundedCache[str](_TEXT_BYTES)

    def of(self, flow: Job) -> FlowNodes:
        """With all nodes that `flow` has, and perhaps with some that were added later.

        Raises `StoreUnavailableError` while they cannot be read, and `MalformedDocumentError` if they are gone.
        """
        key = _key(flow)
        # Two threads may read the same.
        known = self._known.get(key)
        if known is None:
            known = FlowNodes().extended(self._read(flow, [0]))
        if known.additions < flow.flow_state.additions:
            known = known.extended(self._read(flow, range(known.additions + 1, flow.flow_state.additions + 1)))
        self._known.put(key, known, known.held_bytes)
        return known

    def stored(self, flow: Job, nodes: FlowNodes, number: int) -> Mapping[str, Any]:
        """The submission of a node as it is stored. Raises as `of`."""
        part, begins, ends = nodes.places[number]
        text = self._texts.get((*_key(flow), part)) or self._read(flow, [part])[part]
        node: Mapping[str, Any] = json.loads(text[begins:ends])
        return node

    def _read(self, flow: Job, parts: Sequence[int]) -> Mapping[int, str]:
        if parts[0] == 0:
            texts = [self._payloads.load(flow)]
        else:
            texts = list(self._store.added(flow, range(parts[0] - 1, parts[-1])))
        if len(texts) < len(parts):
            # A read of several items is not isolated from the transaction that wrote them. Or an operator deleted some.
            raise StoreUnavailableError(f"{len(parts) - len(texts)} additions to the flow {flow.id} are missing")
        for part, text in zip(parts, texts, strict=True):
            self._texts.put((*_key(flow), part), text, len(text))
        return dict(zip(parts, texts, strict=True))


def node_count(text: str) -> int:
    """The number of nodes in the text of a flow."""
    return sum(1 for _ in _nodes(text, {}))


def edges_of(stored: Mapping[str, Any]) -> list[Edge]:
    """The edges of a node as it is stored: the name of a parent, or its name and the rule."""
    return [
        Edge(node=each) if isinstance(each, str) else Edge(node=each["node"], on_failure=OnFailure(each["on_failure"]))
        for each in stored.get("after", ())
    ]


def _key(flow: Job) -> tuple[str, ...]:
    return (flow.tenant, flow.id, flow.created_at.isoformat())


def _nodes(text: str, types: dict[str, Any]) -> Iterator[tuple[Mapping[str, Any], int, int]]:
    """Each node of one part, with its place in the text. One after another, so that one at a time takes memory.

    Adds the facts of their types to `types`. Raises `MalformedDocumentError`.
    """
    at = _skipped(text, 0, "{")
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        at = _skipped(text, at, ":")
        if name == "nodes":
            at = _skipped(text, at, "[")
            while text[at] != "]":
                node, ends = _DECODER.raw_decode(text, at)
                yield node, at, ends
                at = _skipped(text, ends, ",", unless="]")
            at += 1
        else:
            value, at = _DECODER.raw_decode(text, at)
            types |= value if name == "types" else {}
        at = _skipped(text, at, ",", unless="}")


def _skipped(text: str, at: int, mark: str, *, unless: str = "") -> int:
    """The place behind this mark and the spaces around it; that of the mark `unless` if it is there instead."""
    at = WHITESPACE.match(text, at).end()
    if text[at : at + 1] == unless:
        return at
    if text[at : at + 1] != mark:
        raise MalformedDocumentError(f"the nodes of a flow are not JSON: no {mark} at {at}")
    at = WHITESPACE.match(text, at + 1).end()
    return int(at)

"""Reads the graphs of flows. A graph never changes, except that nodes are added, so a process keeps the last ones."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidemill.application.ports import FlowStore, Payloads
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.flow_graph import Graph
from tidemill.domain.flows import Edge, OnFailure
from tidemill.domain.job import Job

#: The graphs that a process keeps. One of 10,000 nodes takes some 20 MB.
_KEPT: Final = 4


@dataclass(frozen=True, slots=True)
class FlowNodes:
    """The graph of a flow, and the submissions of its nodes as they are stored, by number."""

    graph: Graph
    stored: Sequence[Mapping[str, Any]]
    #: The facts of their types when they were accepted, by type.
    types: Mapping[str, Mapping[str, Any]]
    #: How often nodes had been added.
    additions: int
    #: Of the JSON text in which they are stored.
    size_bytes: int


class FlowGraphs:
    """Threads may share one."""

    def __init__(self, *, store: FlowStore, payloads: Payloads) -> None:
        self._store = store
        self._payloads = payloads
        self._known: dict[tuple[str, ...], FlowNodes] = {}
        self._lock = threading.Lock()

    def of(self, flow: Job) -> FlowNodes:
        """With all nodes that `flow` has, and perhaps with some that were added later.

        Raises `StoreUnavailableError` while they cannot be read, and `MalformedDocumentError` if they are gone.
        """
        key = (flow.tenant, flow.id, flow.created_at.isoformat())
        with self._lock:
            known = self._known.get(key)
        # Without the lock: the other threads need not wait for these reads. Two of them may read the same.
        if known is None:
            known = _with(FlowNodes(Graph([]), (), {}, 0, 0), [self._payloads.load(flow)], additions=0)
        if known.additions < flow.additions:
            known = self._extended(known, flow)
        with self._lock:
            # The last one that was used is the last one to go.
            self._known.pop(key, None)
            self._known[key] = known
            while len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]
            return known

    def _extended(self, known: FlowNodes, flow: Job) -> FlowNodes:
        numbers = range(known.additions, flow.additions)
        texts = self._store.added(flow, numbers)
        if len(texts) < len(numbers):
            # A read of several items is not isolated from the transaction that wrote them. Or an operator deleted some.
            raise StoreUnavailableError(f"{len(numbers) - len(texts)} additions to the flow {flow.id} are missing")
        return _with(known, texts, additions=flow.additions)


def edges_of(stored: Mapping[str, Any]) -> list[Edge]:
    """The edges of a node as it is stored: the name of a parent, or its name and the rule."""
    return [
        Edge(node=each) if isinstance(each, str) else Edge(node=each["node"], on_failure=OnFailure(each["on_failure"]))
        for each in stored.get("after", ())
    ]


def _with(known: FlowNodes, texts: Sequence[str], *, additions: int) -> FlowNodes:
    added = [json.loads(text) for text in texts]
    stored = [*known.stored, *(node for each in added for node in each["nodes"])]
    types = dict(known.types)
    for each in added:
        types |= each["types"]
    graph = Graph([(node["name"], edges_of(node)) for node in stored])
    return FlowNodes(graph, stored, types, additions, known.size_bytes + sum(map(len, texts)))

"""A flow as its owner and operators read it: JSON, and Mermaid."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tidemill.application.flow_nodes import NodeDocuments, waits_for
from tidemill.application.job_view import time_text
from tidemill.domain.flows import OnFailure
from tidemill.domain.job import Job
from tidemill.domain.whole_cancels import cancelled_at

#: The parents that a node is shown to wait for.
_MOST_SHOWN: Final = 5
#: The nodes of one page, as JSON. The answer is a JSON string in the one of Lambda, whose 6 MiB its quotes take twice.
LARGEST_PAGE_BYTES: Final = 4 * 1024 * 1024
_ARROWS: Final[Mapping[str, str]] = {"fail": "-->", "skip": "-. skip .->", "continue": "-. continue .->"}


def flow_view(flow: Job, nodes: int) -> dict[str, Any]:
    """Without the nodes: `size` says how many there are."""
    return {
        "id": flow.id,
        "state": flow.state,
        "size": nodes,
        "created_at": time_text(flow.created_at),
        "cancel_requested_at": time_text(cancelled_at(flow)),
        "finished_at": time_text(flow.finished_at),
        "expires_at": time_text(flow.expires_at),
        "tags": list(flow.tags),
    }


def graph_view(documents: NodeDocuments) -> dict[str, Any]:
    """With the nodes, each with what has become of it, in the order in which they were given."""
    nodes = [_node(documents, number) for number in range(len(documents.nodes.graph))]
    counts: dict[str, int] = {}
    for node in nodes:
        counts[node["state"]] = counts.get(node["state"], 0) + 1
    shown = flow_view(documents.flow, len(nodes))
    return shown | {"counts": dict(sorted(counts.items())), "nodes": nodes}


def page_of(graph: Mapping[str, Any], first: int) -> dict[str, Any]:
    """The graph with the nodes from this number on that fit into one answer; the cursor is the number of the next."""
    left = LARGEST_PAGE_BYTES
    shown: list[Any] = []
    for node in graph["nodes"][first:]:
        left -= len(json.dumps(node, separators=(",", ":")))
        if shown and left < 0:
            return {**graph, "nodes": shown, "cursor": str(first + len(shown))}
        shown.append(node)
    return {**graph, "nodes": shown, "cursor": None}


def _node(documents: NodeDocuments, number: int) -> dict[str, Any]:
    nodes, document = documents.nodes, documents.document(number)
    names, parents = nodes.graph.names, nodes.graph.parents[number]
    return {
        "name": names[number],
        "type": nodes.job_types[number],
        "state": "pending" if document is None else _state(document),
        "job_id": None if document is None or _mark(document) else document.id,
        "after": [{"node": names[each.number], "on_failure": each.on_failure} for each in parents],
        "waits_for": waits_for(documents, number, most=_MOST_SHOWN) if document is None else [],
    }


def _state(document: Job) -> str:
    """That of its job, unless the document says that it has none."""
    return _mark(document) or document.state


def _mark(document: Job) -> str | None:
    return document.flow.mark if document.flow else None


def mermaid(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of a flowchart of the `nodes` of a view.

    https://mermaid.js.org/syntax/flowchart.html
    """
    yield "flowchart TD"
    numbers = {node["name"]: number for number, node in enumerate(nodes)}
    for number, node in enumerate(nodes):
        yield f'    n{number}["{node["name"]}<br/>{node["state"]}"]:::{node["state"]}'
    for number, node in enumerate(nodes):
        for edge in node["after"]:
            arrow = _ARROWS.get(edge["on_failure"], _ARROWS[OnFailure.FAIL])
            yield f"    n{numbers[edge['node']]} {arrow} n{number}"

"""A flow as its owner and operators read it, as JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from tidemill.application.flows.flow_nodes import NodeDocuments, waits_for
from tidemill.application.time_text import time_text
from tidemill.domain.batches.composite_cancels import cancelled_at
from tidemill.domain.job import Job

#: The parents that a node is shown to wait for.
_MOST_SHOWN: Final = 5
#: The most nodes of one page.
MOST_ON_PAGE: Final = 1_000
#: The nodes of one page, as JSON. The answer is a JSON string in the one of Lambda, whose 6 MiB its quotes take twice.
LARGEST_PAGE_BYTES: Final = 4 * 1024 * 1024


def flow_view(flow: Job, nodes: int) -> dict[str, Any]:
    """Without the nodes: `size` says how many there are."""
    return {
        "id": flow.id,
        "state": flow.state,
        "size": nodes,
        "created_at": time_text(flow.created_at),
        "cancel_requested_at": time_text(cancelled_at(flow)),
        "finished_at": time_text(flow.finished_at),
        "expires_at": time_text(flow.lifetime.expires_at),
        "tags": list(flow.tags),
    }


def graph_view(documents: NodeDocuments) -> dict[str, Any]:
    """With all nodes, each with what has become of it, in the order in which they were given. For operators."""
    documents.read(range(len(documents.nodes.graph)))
    return _view(documents, [_node(documents, number) for number in range(len(documents.nodes.graph))])


def page_view(documents: NodeDocuments, first: int) -> dict[str, Any]:
    """With the nodes from this number on that fit into one answer, and their counts; the cursor is the next number.

    It reads the documents of these nodes, and of at most as many parents for which they may wait.
    """
    parents, size = documents.nodes.graph.parents, len(documents.nodes.graph)
    numbers = range(first, min(first + MOST_ON_PAGE, size))
    documents.read(numbers)
    waiting = (number for number in numbers if documents.document(number) is None)
    others = dict.fromkeys(each.number for number in waiting for each in parents[number])
    documents.read(list(islice((each for each in others if not documents.has_read(each)), MOST_ON_PAGE)))
    shown = fitting(_node(documents, number) for number in numbers)
    following = first + len(shown)
    return _view(documents, shown) | {"cursor": str(following) if shown and following < size else None}


def fitting(nodes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first ones that fit into one answer, and one at least."""
    left = LARGEST_PAGE_BYTES
    shown: list[Mapping[str, Any]] = []
    for node in nodes:
        left -= len(json.dumps(node, separators=(",", ":")))
        if shown and left < 0:
            break
        shown.append(node)
    return shown


def counts_of(nodes: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """By state."""
    return dict(sorted(Counter(str(node["state"]) for node in nodes).items()))


def _view(documents: NodeDocuments, nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    shown = flow_view(documents.flow, len(documents.nodes.graph))
    return shown | {"counts": counts_of(nodes), "nodes": nodes}


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
    """Return the state of the job of the node, unless the document says that it has none."""
    return _mark(document) or document.state


def _mark(document: Job) -> str | None:
    return document.flow.mark if document.flow else None

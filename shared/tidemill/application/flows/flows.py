"""Start a flow, add nodes to it, and cancel it. The job type in `tidemill.flow` looks after its nodes."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, Final, cast

from tidemill.application.control.control import Control
from tidemill.application.flows.flow_nodes import FlowParts
from tidemill.application.submission.checked_submission import hash_of
from tidemill.application.submission.later_jobs import asked, faults_of, type_facts
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Admit, Submit
from tidemill.application.submission.validation import read_payload, require_key_type, require_types
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.errors import (
    Fault,
    FlowRefusedError,
    InvalidPayloadError,
    PayloadTooLargeError,
    TransactionConflictError,
    UnloadedJobTypeError,
    WriteRefusedError,
)
from tidemill.domain.flows.flow_graph import Graph, graph_faults
from tidemill.domain.flows.flow_place import NODE_GROUP
from tidemill.domain.flows.flows import (
    LARGEST_FLOW_BYTES,
    MOST_ADDED,
    MOST_ADDITIONS,
    NAME_PATTERN,
    Edge,
    Flow,
    FlowStart,
    Node,
    OnFailure,
    is_flow,
    is_node_name,
    starts_nodes,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.names import FLOW_TYPE, LARGEST_BODY_BYTES

#: How often an addition is tried while others add nodes, and the ceiling of the random pause after a try. It doubles up
#: to the longest, so all tries take about two seconds.
_TRIES: Final = 20
_FIRST_PAUSE_SECONDS: Final = 0.02
_LONGEST_PAUSE_SECONDS: Final = 0.25
#: At most so many faulty nodes are reported. To find the type that is most like an unknown one takes milliseconds.
_MOST_FAULTS: Final = 100


def start_flow(flow: Flow, submit: Submit, *, tenant: str, trace: str) -> Accepted:
    """Write the job of the flow, with its whole graph; `replayed` if an earlier start with the key did.

    Raises `InvalidPayloadError` with the path of each fault, and what `Submit` raises.
    """
    require_key_type(flow.key)
    _require_types(flow.nodes)
    nodes = [_asked(node) for node in flow.nodes]
    start = FlowStart(
        type=FLOW_TYPE,
        payload={"nodes": nodes},
        # Flows and jobs may have equal keys.
        key=None if flow.key is None else f"flow/{flow.key}",
        tags=flow.tags,
    )
    try:
        _require_sound(flow.nodes, submit)
    except (InvalidPayloadError, UnloadedJobTypeError) as refused:
        return submit.earlier(start, tenant=tenant, refused=refused)
    payload = {"nodes": nodes, "types": type_facts((node.submission for node in flow.nodes), submit)}
    return submit(replace(start, payload=payload), tenant=tenant, trace=trace)


class FlowControl:
    """Adds nodes to flows of a tenant, and cancels flows."""

    def __init__(
        self,
        control: Control,
        parts: FlowParts,
        *,
        pause_below: Callable[[float], None],
        admits: Sequence[Admit] = (),
    ) -> None:
        """`pause_below` waits for a random time below that many seconds. Each of `admits` is asked for added nodes."""
        self._control = control
        self._parts = parts
        self._pause_below = pause_below
        self._admits = admits

    def add_nodes(self, tenant: str, flow_id: str, nodes: Sequence[Node]) -> Job | None:
        """Add all of these nodes to a flow that has not ended, or none; return the flow. None without such a flow.

        They may follow each other, and nodes that the flow has. The same nodes again change nothing.

        Raises `InvalidPayloadError` with the path of each fault, `FlowRefusedError` if the flow has ended or was
        cancelled, `TransactionConflictError` if too many others add nodes at this moment, and what `Admit` raises.
        """
        _require_types(nodes)
        for attempt in range(_TRIES):
            if attempt:
                # All who add nodes at once would meet again and again.
                self._pause_below(min(_FIRST_PAUSE_SECONDS * 2.0 ** (attempt - 1), _LONGEST_PAUSE_SECONDS))
            flow = self._control.find(tenant, flow_id)
            if flow is None or not is_flow(flow):
                return None
            addition = self._checked(flow, nodes)
            if addition is None:
                return flow
            if not attempt:
                self._admit(tenant, nodes)
            # Others have added nodes since the read, or its run moved it: look again at what is to be added.
            with suppress(WriteRefusedError, TransactionConflictError):
                return self._parts.flows.add(flow, addition, now=self._parts.clock())
        raise TransactionConflictError(f"the flow {flow_id} changed {_TRIES} times while nodes were added to it")

    def _admit(self, tenant: str, nodes: Sequence[Node]) -> None:
        """All nodes by each rule in turn: one that is paused leaves the others uncounted."""
        if not self._admits:
            return
        jobs = [self._parts.submit.prepare(node.submission, tenant=tenant, trace="") for node in nodes]
        for admit in self._admits:
            for job in jobs:
                admit(job)

    def size(self, flow: Job) -> int:
        """The number of its nodes."""
        return len(self._parts.graphs.of(flow).graph)

    def cancel(self, tenant: str, flow_id: str) -> Job | None:
        """Start no more nodes, cancel those that have not ended, and return the flow; None without such a flow.

        Its job cancels them. May be repeated. Raises `SignalRefusedError` if the flow has ended.
        """
        flow = self._control.find(tenant, flow_id)
        if flow is None or not is_flow(flow):
            return None
        cancelled = self._control.signal_composite(tenant, flow_id, CANCELLED)
        self._parts.ask_to_look(tenant, flow_id)
        return cancelled

    def _checked(self, flow: Job, nodes: Sequence[Node]) -> str | None:
        """The addition as it is stored; None if the flow has all these nodes already."""
        graphs = self._parts.graphs
        known = graphs.of(flow)
        asked = [_asked(node) for node in nodes]
        numbers = [known.graph.numbers.get(node.name) for node in nodes]
        again = _as_stored(asked) if None not in numbers else ()
        if again and all(
            number is not None and hash_of(graphs.stored(flow, known, number)) == hash_of(each)
            for number, each in zip(numbers, again, strict=True)
        ):
            return None
        _require_sound(nodes, self._parts.submit, known=known.graph, others=_addition_faults(flow, nodes))
        if not starts_nodes(flow):
            raise FlowRefusedError(f"the flow {flow.id} {'has ended' if flow.state.terminal else 'was cancelled'}")
        facts = type_facts((node.submission for node in nodes), self._parts.submit)
        text = read_payload({"nodes": asked, "types": facts})[0]
        if len(text) > LARGEST_BODY_BYTES:
            raise PayloadTooLargeError(len(text), LARGEST_BODY_BYTES)
        if (size_bytes := known.size_bytes + len(text)) > LARGEST_FLOW_BYTES:
            raise PayloadTooLargeError(size_bytes, LARGEST_FLOW_BYTES, what="flow with these nodes")
        return text


def _addition_faults(flow: Job, nodes: Sequence[Node]) -> Iterator[Fault]:
    if len(nodes) > MOST_ADDED:
        yield Fault("/nodes", f"must be at most {MOST_ADDED} nodes; add the others in another call")
    if flow.flow_state.additions >= MOST_ADDITIONS:
        yield Fault("/nodes", f"nodes were added {MOST_ADDITIONS} times; a flow allows no more")


def _require_sound(
    nodes: Sequence[Node], submit: Submit, *, known: Graph | None = None, others: Iterable[Fault] = ()
) -> None:
    """Raises `InvalidPayloadError`, and `UnloadedJobTypeError` while a job file is broken that may declare a type."""
    graph = graph_faults([(node.name, node.edges) for node in nodes], known=known)
    found = chain(others, graph, _node_faults(nodes, submit))
    if first := next(found, None):
        raise InvalidPayloadError(chain([first], found))


def _require_types(nodes: Iterable[Node]) -> None:
    """Raises `InvalidPayloadError`."""
    for number, node in enumerate(nodes):
        name: Any = node.name
        after: Any = node.after
        if not isinstance(name, str):
            raise InvalidPayloadError([Fault(f"/nodes/{number}/name", "must be text")])
        listed = isinstance(after, Collection) and not isinstance(after, str)
        if not listed or not all(isinstance(each, str | Edge) for each in after):
            raise InvalidPayloadError([Fault(f"/nodes/{number}/after", "must be a list of names and edges")])
        require_types(node.submission, under=f"/nodes/{number}")


def _asked(node: Node) -> dict[str, Any]:
    """Without what has its default."""
    after = [
        edge.node if edge.on_failure is OnFailure.FAIL else {"node": edge.node, "on_failure": str(edge.on_failure)}
        for edge in node.edges
    ]
    return {"name": node.name} | asked(node.submission) | ({"after": after} if after else {})


def _as_stored(asked: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
    """Return the values as they are read again: for example, a tuple is a list. Empty if they are not JSON."""
    try:
        return cast("Sequence[Any]", read_payload({"nodes": asked})[1]["nodes"])
    except InvalidPayloadError:
        return ()


def _node_faults(nodes: Iterable[Node], submit: Submit) -> Iterator[Fault]:
    """The first ones, so that a request with 10,000 wrong nodes has its answer in time."""
    found = _each_fault(nodes, submit)
    yield from islice(found, _MOST_FAULTS)
    if next(found, None):
        yield Fault("/nodes", "there are more faults")


def _each_fault(nodes: Iterable[Node], submit: Submit) -> Iterator[Fault]:
    for number, node in enumerate(nodes):
        if not is_node_name(node.name):
            yield Fault(f"/nodes/{number}/name", f"must match {NAME_PATTERN}")
        yield from _faults(f"/nodes/{number}", node, submit)


def _faults(path: str, node: Node, submit: Submit) -> Iterator[Fault]:
    if node.submission.group == NODE_GROUP:
        yield Fault(f"{path}/group", f"{NODE_GROUP!r} is reserved; choose another group")
    yield from faults_of(node.submission, submit, path=path, kind="a node")

"""The items of a flow, the steps of its callers, and its edge rules. Use none of the shipped code here."""

from collections.abc import Generator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

#: The cursor of a child all of whose parents had ended, not all with success. So each of their ends counts.
ALL_ENDED = -1
#: The index of the last node among the cursors.
LAST = -1


class State(StrEnum):
    """The state of the document of a node, or of the flow."""

    #: Queued, scheduled, running, retrying or parked.
    LIVE = "live"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    #: By an operator, or because the flow was cancelled.
    CANCELLED = "cancelled"
    #: The node was never started, and never will be.
    SKIPPED = "skipped"
    #: The node was not started. A start or a skip replaces the document.
    BLOCKED = "blocked"


class Job(NamedTuple):
    """The document of a node."""

    state: State
    #: It has ended without success before.
    failed: bool = False


class Rule(StrEnum):
    FAIL = "fail"
    SKIP = "skip"
    CONTINUE = "continue"


class Edge(NamedTuple):
    parent: int
    rule: Rule = Rule.FAIL


class Verdict(StrEnum):
    WAIT = "wait"
    START = "start"
    SKIP = "skip"
    BLOCK = "block"


class Cursor(NamedTuple):
    """At which parent a node waits. A missing one stands at the first."""

    at: int = 0
    #: The parent whose end moved it.
    by: int | None = None
    #: Each parent before it lets the node start.
    clean: bool = True
    #: For the last node: the number of nodes then, since its parents depend on it.
    nodes: int = 0


class Flow(NamedTuple):
    state: State
    #: How many nodes it has.
    nodes: int
    cancelled: bool = False
    #: Dead nodes that a redrive of the flow is to redrive.
    redrive: frozenset[int] = frozenset()

    @property
    def starts_nodes(self) -> bool:
        return self.state is State.LIVE and not self.cancelled


class Read(NamedTuple):
    """`item`: "flow", "job", or "cursor"."""

    item: str
    node: int = 0


class Write(NamedTuple):
    """One write."""

    node: int = 0
    #: The cursor of the node. The engine has a condition, which only saves reads: here, the last write wins.
    cursor: Cursor | None = None
    #: If the node has no document. A blocked one counts as none, except for a block.
    insert: State | None = None
    #: If the document of the node is in the first state.
    change: tuple[State, State] | None = None
    #: The flow has to look.
    ask: bool = False
    #: The end of the flow: if its run still owns it, and it was not asked to look since the run began.
    end: State | None = None


Caller = Generator[Read | Write, Any, None]
#: The parents of each node, in order.
Graph = tuple[tuple[Edge, ...], ...]


def through(edge: Edge, parent: Job | None) -> Verdict:
    """What one parent says about its child."""
    if parent is None or parent.state is State.LIVE:
        return Verdict.WAIT
    if parent.state is State.BLOCKED:
        return Verdict.BLOCK
    if parent.state is State.SUCCEEDED or edge.rule is Rule.CONTINUE:
        return Verdict.START
    return Verdict.SKIP if parent.state is State.SKIPPED or edge.rule is Rule.SKIP else Verdict.BLOCK


def first(said: set[Verdict]) -> Verdict:
    """What all parents say."""
    return next((each for each in (Verdict.WAIT, Verdict.BLOCK, Verdict.SKIP) if each in said), Verdict.START)


def parents(graph: Graph, node: int | None, nodes: int) -> tuple[Edge, ...]:
    """In a flow that has the first `nodes` nodes. The last node (None) follows those that no other one follows."""
    if node is not None:
        return graph[node]
    inner = {edge.parent for edges in graph[:nodes] for edge in edges}
    return tuple(Edge(each, Rule.CONTINUE) for each in range(nodes) if each not in inner)


def children(graph: Graph, node: int, nodes: int) -> list[int | None]:
    """With None for the last node."""
    found = [child for child in range(nodes) if any(edge.parent == node for edge in graph[child])]
    return [*found] or [None]


def end_of(graph: Graph, found: Sequence[Job | None]) -> State:
    """How a flow ends if these are its documents."""
    bad = {State.DEAD, State.CANCELLED, State.BLOCKED}
    sinks = [found[edge.parent] for edge in parents(graph, None, len(found))]
    return State.DEAD if any(job and job.state in bad for job in sinks) else State.SUCCEEDED

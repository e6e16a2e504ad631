"""A flow: a graph of jobs. Each node is a job that starts once its parents have ended. Pure.

The flow is a job itself, and its payload is the graph. What has become of a node is in the node's document alone, and
decision 27 says why.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Final

from msgspec import Struct

from tidemill.domain.batches.composite_cancels import is_cancelled
from tidemill.domain.flows.flow_place import Mark
from tidemill.domain.job import Job
from tidemill.domain.spans import pause_after
from tidemill.domain.states import State
from tidemill.domain.submission.submission import DerivedKey, PinnedSubmission, Submission
from tidemill.names import FLOW_TYPE, LARGEST_BATCH_BODY_BYTES

#: Nodes and edges of one flow, those included that were added.
MOST_NODES: Final = 10_000
MOST_EDGES: Final = 50_000
#: Nodes of one addition, and additions of one flow.
MOST_ADDED: Final = 100
MOST_ADDITIONS: Final = 1_000
#: All nodes as compact JSON text in ASCII. Each function that starts a node holds those of several flows, in 512 MB.
LARGEST_FLOW_BYTES: Final = 8 * 1024 * 1024
#: A flow that has not ended by then dies. Counted from its start, or from its last redrive.
LONGEST_FLOW: Final = timedelta(days=90)
#: The documents of its nodes are kept for so long from its start on. A flow dies then in any case.
NODES_KEPT: Final = LONGEST_FLOW + timedelta(days=30)
#: The pattern of the name of a node, which is part of no key and no attribute name.
NAME_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}"
_NAME: Final = re.compile(NAME_PATTERN)
#: The name of the signal for which a flow waits. Nothing sends it: a flow is asked to look by its own write, which may
#: come any number of times.
LOOK: Final = "look"
#: Between two looks of a flow that nothing asked to look. The shortest is above the longest delay of a lane.
_SHORTEST_PAUSE: Final = timedelta(minutes=16)
_LONGEST_PAUSE: Final = timedelta(hours=1)
#: For each node, which each look reads: so a flow of any size that waits for 90 days reads some 1.4 million documents.
#: Above 600 nodes, this is longer than the longest pause.
_PAUSE_OF_NODE: Final = timedelta(seconds=6)
_BUSY_PAUSE_OF_NODE: Final = timedelta(milliseconds=60)
#: While others keep the groups of nodes busy. At the longest pause, the hops are enough for the longest flow.
_SHORTEST_BUSY_PAUSE: Final = timedelta(seconds=5)
_LONGEST_BUSY_PAUSE: Final = timedelta(minutes=2)


class OnFailure(StrEnum):
    """What an edge says about its child if its parent has failed."""

    #: The child does not start, unless a redrive lets the parent succeed. So the flow dies.
    FAIL = "fail"
    #: The child is not needed then, and neither is what follows it.
    SKIP = "skip"
    #: The child starts all the same, also if the parent was skipped.
    CONTINUE = "continue"


class Resolution(StrEnum):
    """What has become of a node."""

    #: It has no document yet, or its job has not ended.
    PENDING = "pending"
    SUCCEEDED = "succeeded"
    #: Dead, expired, or cancelled by a caller or operator. A dead one may be redriven.
    FAILED = "failed"
    SKIPPED = "skipped"
    BLOCKED = "blocked"


class NodeVerdict(StrEnum):
    """What the resolutions of its parents say about a node."""

    WAIT = "wait"
    START = "start"
    SKIP = "skip"
    BLOCK = "block"


class Edge(Struct, frozen=True, kw_only=True):
    """A parent of a node, and what happens to the node if the parent fails."""

    node: str
    on_failure: OnFailure = OnFailure.FAIL


class Node(Struct, frozen=True):
    """A job of a flow. `after` names its parents, each with the rule `fail` or as an `Edge` with another rule.

    The submission has no key, time or batch: the node starts when its parents have ended.
    """

    name: str
    submission: Submission
    after: Sequence[str | Edge] = ()

    @property
    def edges(self) -> tuple[Edge, ...]:
        return tuple(Edge(node=each) if isinstance(each, str) else each for each in self.after)


class Flow(Struct, frozen=True, kw_only=True):
    """Up to 10,000 nodes, in any order."""

    nodes: Sequence[Node]
    #: Idempotency key: flows of a tenant with the same key and nodes are one flow.
    key: str | None = None
    tags: Sequence[str] = ()


class FlowStart(DerivedKey, frozen=True, kw_only=True):
    """The submission of the job of a flow. A repeated start has the same nodes, in any order."""

    largest: ClassVar[int] = LARGEST_BATCH_BODY_BYTES
    carries: ClassVar[str | None] = FLOW_TYPE
    built: ClassVar[bool] = True

    def identity(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out the facts of job types, and the order. It is a megabyte, and to read it twice takes a second."""
        return {"nodes": sorted(payload["nodes"], key=lambda node: node.get("name", ""))}


class NodeStart(PinnedSubmission, frozen=True, kw_only=True):
    """The submission of the job of a node, with the facts of its type when the flow was accepted."""


def is_node_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def is_flow(job: Job) -> bool:
    return job.type == FLOW_TYPE


def starts_nodes(flow: Job | None) -> bool:
    """Whether nodes of the flow may still start."""
    return flow is not None and not flow.state.terminal and not is_cancelled(flow)


def over_age(flow: Job, *, now: datetime) -> bool:
    """Whether documents of its nodes may be gone, so that a node may seem not to have started."""
    return now - flow.created_at >= NODES_KEPT


def resolution_of(document: Job | None) -> Resolution:
    """Return the resolution of the node that has this document."""
    if document is None or not document.state.terminal:
        return Resolution.PENDING
    if document.flow and document.flow.mark:
        return Resolution.SKIPPED if document.flow.mark is Mark.SKIPPED else Resolution.BLOCKED
    return Resolution.SUCCEEDED if document.state is State.SUCCEEDED else Resolution.FAILED


def is_blocked(job: Job) -> bool:
    """Whether it is a node that has not started, and may do so once its flow is redriven."""
    return resolution_of(job) is Resolution.BLOCKED


def through(on_failure: OnFailure, parent: Resolution) -> NodeVerdict:
    """What one parent says about its child."""
    match parent:
        case Resolution.PENDING:
            return NodeVerdict.WAIT
        case Resolution.BLOCKED:
            # By each rule: the parent may still run, after a redrive.
            return NodeVerdict.BLOCK
        case Resolution.SUCCEEDED:
            return NodeVerdict.START
    if on_failure is OnFailure.CONTINUE:
        return NodeVerdict.START
    return NodeVerdict.BLOCK if (parent, on_failure) == (Resolution.FAILED, OnFailure.FAIL) else NodeVerdict.SKIP


def verdict(parents: Iterable[NodeVerdict]) -> NodeVerdict:
    """What all parents say. Only once all have ended, so that the order in which they end does not matter."""
    said = set(parents)
    return next(
        (each for each in (NodeVerdict.WAIT, NodeVerdict.BLOCK, NodeVerdict.SKIP) if each in said), NodeVerdict.START
    )


def began_at(flow: Job) -> datetime:
    """Its start, or its last redrive."""
    return max([flow.created_at, *(redrive.at for redrive in flow.redrives)])


def pause(flow: Job, *, nodes: int, now: datetime, busy: bool = False) -> timedelta:
    """Until the next look that nothing asks for: it grows with the age of the flow, or with that of a redrive.

    `busy`: others keep the groups of some nodes busy.
    """
    shortest, longest = (_SHORTEST_BUSY_PAUSE, _LONGEST_BUSY_PAUSE) if busy else (_SHORTEST_PAUSE, _LONGEST_PAUSE)
    costs = nodes * (_BUSY_PAUSE_OF_NODE if busy else _PAUSE_OF_NODE)
    return pause_after(now - began_at(flow), shortest=shortest, longest=longest, costs=costs)

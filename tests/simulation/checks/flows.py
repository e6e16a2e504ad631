"""Checks of flows: no node before its parents, one job for each node, and an end that fits the documents.

The graphs are those that the tenants have sent, and what became of a node is read from its item.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.simulation.checks.table_watch import watch_items, watch_jobs
from tests.simulation.checks.violation import (
    Item,
    has_expired,
    map_of,
    maps_of,
    mark_of,
    number_of,
    require,
    run_ended,
    state_of,
    tenant_of,
    text_of,
    waits_alone,
)
from tests.simulation.jobs.flow_types import ADDED, NODE
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import LOSSES
from tests.simulation.world.lambda_environments import LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.domain.states import TERMINAL, State
from tidemill.names import FLOW_TYPE

_ALLOWED: Final = "no node starts before its parents allow it"
_ONE_JOB: Final = "a node has one job at most"
_MARKED: Final = "a node is skipped or blocked as its edges say"
_OVER: Final = "no node of an ended flow starts"
_ENDS: Final = "a flow ends when all its nodes have ended"
_COUNTED: Final = "the counts of a flow are those of its documents"
_FITS: Final = "a flow dies if a failure reaches its last nodes, and else succeeds"
_WHOLE: Final = "each node of an accepted flow has a document"
_RESULTS: Final = "a node reads the results of its parents"
_REDRIVEN: Final = "a redrive of a flow redrives its dead nodes"
_SOON: Final = "a node starts soon after its parents"
_ENDS_SOON: Final = "a flow looks as soon as its nodes have ended"
_ASKED: Final = "a flow that waits looks once it is asked to"
#: Without faults. The shortest pause between two looks that nothing asks for is longer.
_SOON_MS: Final = 10 * 60_000
_SUCCEEDED, _FAILED, _SKIPPED, _BLOCKED = "succeeded", "failed", "skipped", "blocked"


@dataclass(slots=True)
class _Node:
    """What became of one node."""

    #: Parent and rule.
    edges: Sequence[tuple[str, str]] = ()
    key: str | None = None
    #: All that it has ever been, and what it is.
    past: set[str] = field(default_factory=set)
    now: str | None = None
    ended_ms: int = 0
    redriven: bool = False
    #: When it was last redriven, or started after it was blocked.
    again_ms: int = 0
    #: An operator has purged its document, so it starts once more.
    purged: bool = False


class FlowChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: The keys of the flows that were accepted, and the nodes that were added to them.
        self.accepted: list[str] = []
        self.added: list[tuple[str, str]] = []
        self._flows: dict[str, dict[str, _Node]] = defaultdict(dict)
        watch_jobs(
            world,
            changed=(self._a_node_changes, self._a_flow_changes, self._a_flow_wakes),
            inserted=self._a_node_is_made,
        )
        watch_items(world, self._a_node_is_deleted)

    def knows(self, flow: str, nodes: Sequence[Mapping[str, Any]]) -> None:
        """The tenant is about to send these nodes."""
        for node in nodes:
            edges = [_edge(edge) for edge in node["after"]]
            self._flows[flow].setdefault(node["name"], _Node(edges=edges))
            if node["payload"].get("count"):
                child = ADDED.format(node=node["name"])
                self._flows[flow].setdefault(child, _Node(edges=[(node["name"], "fail")]))

    def wrongly_shown(self, flow: str, shown: Mapping[str, str]) -> str:
        """What of these states no node has ever had. Empty for none."""
        nodes = self._flows[flow]
        unknown = {name: state for name, state in shown.items() if name not in nodes}
        never = {
            name: state
            for name, state in shown.items()
            if name in nodes and state in {"skipped", "blocked", "succeeded"} and state not in nodes[name].past
        }
        return f"{unknown} {never}" if unknown or never else ""

    def _a_node_is_made(self, key: str, after: Item) -> None:
        if "flow" in after:
            self._a_node(key, after, is_new=True)

    def _a_node_is_deleted(self, key: str, record: Record) -> None:
        if record.after is None and record.before and "flow" in record.before:
            place = map_of(record.before, "flow")
            self._flows[f"{tenant_of(key)}#{text_of(place, 'id')}"][text_of(place, "node")].purged = True

    def _a_node_changes(self, key: str, before: Item, after: Item) -> None:
        if "flow" in after:
            self._a_node(key, after, is_new=mark_of(before) is not None and mark_of(after) is None)

    def _a_node(self, key: str, after: Item, *, is_new: bool) -> None:
        flow, place = f"{tenant_of(key)}#{text_of(map_of(after, 'flow'), 'id')}", map_of(after, "flow")
        nodes = self._flows[flow]
        node = nodes[text_of(place, "node")]
        require(node.key in {None, key}, _ONE_JOB, f"{key} and {node.key}", flow)
        node.key = key
        mark, state = mark_of(after), state_of(after)
        if is_new and mark is None and state is not State.CANCELLED:
            require(node.purged or "job" not in node.past, _ONE_JOB, "it has a second one", key)
            node.past.add("job")
            self._starts(flow, node, key)
        if mark and mark not in node.past:
            said = {_through(nodes[parent], rule) for parent, rule in node.edges}
            require(any(mark in each for each in said), _MARKED, f"{mark}, but its parents say {said}", key)
        if state in TERMINAL:
            now = mark or (_SUCCEEDED if state is State.SUCCEEDED else _FAILED)
            if now != node.now:
                node.ended_ms = self._world.scheduler.now_ms
            node.now = now
            node.past.add(now)
            if now == _SUCCEEDED and text_of(after, "type") == NODE:
                self._read_its_parents(flow, node, key, after)
        else:
            if node.now is not None:
                node.again_ms = self._world.scheduler.now_ms
            node.now = None
            node.redriven = node.redriven or "redrives" in after

    def _starts(self, flow: str, node: _Node, key: str) -> None:
        nodes, document = self._flows[flow], self._world.jobs.items.get((flow,))
        for parent, rule in node.edges:
            past = nodes[parent].past
            allowed = _SUCCEEDED in past or (rule == "continue" and past & {_FAILED, _SKIPPED})
            require(bool(allowed), _ALLOWED, f"{parent} was {past}", key)
        over = document is None or (state_of(document) in TERMINAL and not self._any_redriven(flow))
        require(not over, _OVER, f"the flow is {state_of(document)}", key)
        self._soon(_SOON, key, [nodes[parent] for parent, _ in node.edges], flow)

    def _soon(self, check: str, key: str, ended: Sequence[_Node], flow: str) -> None:
        """In the time without faults, at most so long after the last of these nodes has ended."""
        world = self._world
        since = max([each.ended_ms for each in ended], default=0)
        lost = any(world.faults.counted[fault] for fault in LOSSES)
        if not world.faults.stopped or lost or not since or self._any_redriven(flow):
            return
        since = max(since, world.faults.stopped_ms, world.rollout.ends_ms())
        late = world.scheduler.now_ms - since
        require(late <= _SOON_MS, check, f"{late // 1000} s later", key)

    def _read_its_parents(self, flow: str, node: _Node, key: str, after: Item) -> None:
        found = json.loads(text_of(after, "result"))["parents"]
        nodes = self._flows[flow]
        wanted = {parent: {parent, None} if _SUCCEEDED in nodes[parent].past else {None} for parent, _ in node.edges}
        fits = found.keys() == wanted.keys() and all(found[parent] in wanted[parent] for parent in wanted)
        certain = [parent for parent, rule in node.edges if rule == "fail"]
        fits = fits and all(found[parent] == parent for parent in certain)
        require(fits, _RESULTS, f"{found}, not {wanted}", key)

    def _a_flow_changes(self, key: str, before: Item, after: Item) -> None:
        if text_of(after, "type") != FLOW_TYPE or not run_ended(before, after) or state_of(after) not in TERMINAL:
            return
        if "cancel_requested_at" in after:
            # An operator has cancelled the job of the flow alone.
            return
        there = {name: node for name, node in self._flows[key].items() if self._is_there(key, name, after)}
        # A look that began before a redrive may not know it.
        began_ms = number_of(before, "claimed_at") - LARGEST_SKEW_MS
        redriven = any(node.purged or node.again_ms >= began_ms for node in self._flows[key].values())
        cancelled = state_of(after) is State.CANCELLED
        gave_up = text_of(after, "death") == "gave up"
        if state_of(after) is State.DEAD and not gave_up:
            return
        live = [name for name, node in there.items() if node.now is None]
        if cancelled:
            started = [name for name in live if self._flows[key][name].key is not None]
            require(not started or redriven, _ENDS, f"{started} have not ended", key)
            return
        require(not live or redriven, _ENDS, f"{live} have not ended", key)
        if live or redriven:
            return
        inner = {parent for node in there.values() for parent, _ in node.edges}
        bad = [name for name, node in there.items() if name not in inner and node.now in {_FAILED, _BLOCKED}]
        require(bool(bad) == gave_up, _FITS, f"{state_of(after)}, with {bad} failed", key)
        for name, node in there.items():
            if node.now in {_BLOCKED, _SKIPPED}:
                said = set().union(*(_through(there[parent], rule, now=True) for parent, rule in node.edges))
                require(node.now in said or node.now == _SKIPPED, _MARKED, f"{name} is {node.now}: {said}", key)
        if gave_up and "redrives" in after:
            self._redrove(key, after, there)
        if not gave_up:
            counts = dict(Counter(str(node.now) for node in there.values()))
            found = json.loads(text_of(after, "result"))
            require(found == counts, _COUNTED, f"{found}, not {counts}", key)

    def _redrove(self, key: str, flow: Item, there: Mapping[str, _Node]) -> None:
        """Each dead node that blocks another, or that no other one follows, has died since the last redrive."""
        asked_ms = max(number_of(entry, "at") for entry in maps_of(flow, "redrives"))
        inner = {parent for node in there.values() for parent, _ in node.edges}
        fatal = {parent for node in there.values() for parent, rule in node.edges if rule == "fail"}
        for name, node in there.items():
            document = self._world.jobs.items.get((node.key or "",))
            if document and state_of(document) is State.DEAD and (name in fatal or name not in inner):
                late = number_of(document, "finished_at") >= asked_ms
                require(late, _REDRIVEN, f"{name} is dead since before the redrive", key)

    def _a_flow_wakes(self, key: str, before: Item, after: Item) -> None:
        """At once if it is asked to look. If its wait ends by itself, nothing was to be done since long."""
        asked = waits_alone(before) and before.get("looks") != after.get("looks")
        require(not asked or state_of(after) is State.QUEUED, _ASKED, f"it stays {state_of(after)}", key)
        woken = waits_alone(before) and state_of(after) is State.QUEUED and text_of(after, "type") == FLOW_TYPE
        if not woken or any(before.get(name) != after.get(name) for name in ("signals", "looks")):
            return
        there = [node for name, node in self._flows[key].items() if self._is_there(key, name, after)]
        if there and all(node.now for node in there):
            self._soon(_ENDS_SOON, key, there, key)

    def _is_there(self, flow: str, name: str, document: Item) -> bool:
        """Whether the flow has that node: a tenant may have asked in vain to add it."""
        if self._flows[flow][name].key is not None:
            return True
        return name in _names(document) or (flow, name) in self.added

    def _any_redriven(self, flow: str) -> bool:
        """A node may be redriven while its flow looks at it for the last time."""
        return any(node.redriven or node.purged for node in self._flows[flow].values())

    def at_end(self) -> None:
        """Raises `Violation`."""
        sent = [(flow, name) for flow in self.accepted for name in self._of_start(flow)]
        for flow, name in [*sent, *self.added]:
            document = self._world.jobs.items.get((flow,))
            gone = document is None or has_expired(document, self._world.scheduler.now_ms)
            given_up = not gone and (state_of(document) is State.CANCELLED or text_of(document, "death") != "gave up")
            over = gone or (state_of(document) is not State.SUCCEEDED and given_up)
            require(over or self._flows[flow][name].key is not None, _WHOLE, f"{name} has none", flow)

    def _of_start(self, flow: str) -> Iterator[str]:
        return iter(_names(self._world.jobs.items.get((flow,), {})))


def _names(document: Item) -> list[str]:
    """Return the names of the nodes at the start of the flow. None if they are stored elsewhere."""
    return [node["name"] for node in json.loads(text_of(document, "payload") or '{"nodes": []}').get("nodes", [])]


def _edge(edge: Any) -> tuple[str, str]:
    return (edge, "fail") if isinstance(edge, str) else (edge["node"], edge["on_failure"])


def _through(parent: _Node, rule: str, *, now: bool = False) -> frozenset[str]:
    """What the parent has said about its child at any time: "skipped", "blocked"."""
    past = {parent.now} if now else parent.past
    said = {_BLOCKED} if _BLOCKED in past else set()
    if _FAILED in past and rule != "continue":
        said.add(_SKIPPED if rule == "skip" else _BLOCKED)
    if _SKIPPED in past and rule != "continue":
        said.add(_SKIPPED)
    return frozenset(said)


__all__ = ["FlowChecks"]

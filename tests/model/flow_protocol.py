"""The protocol of flows, stated once more: what an advance and a run of the flow read and write, in which order.

Each caller is a generator. It yields a read and gets the item (None if it does not exist), or yields a write and gets
whether it was accepted. Use none of the shipped code here.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.model.flow_types import (
    ALL_ENDED,
    LAST,
    Caller,
    Cursor,
    Edge,
    Graph,
    Job,
    Read,
    State,
    Verdict,
    Write,
    end_of,
    first,
    parents,
    through,
)

_AS = {Verdict.START: State.LIVE, Verdict.SKIP: State.SKIPPED, Verdict.BLOCK: State.BLOCKED}


@dataclass(frozen=True)
class Protocol:
    """The protocol, and its mutated variants: each flag is a rule, and False breaks it."""

    #: The cursor stands at a parent before the read that finds that this parent has not ended.
    cursor_before_read: bool = True
    #: The repeated record of the end that moved the cursor goes on: its advance may have been killed after the write.
    mover_goes_on: bool = True
    #: Nodes that were added change the parents of the last node, so its cursor says nothing.
    cursor_knows_additions: bool = True
    #: A start, a skip and a block of one node compete for one document.
    insert_needs_absence: bool = True
    start_replaces_blocked: bool = True
    #: The children of a node that was skipped or blocked are evaluated.
    marks_propagate: bool = True
    adding_asks: bool = True
    #: A look starts what no advance has started.
    look_starts: bool = True
    #: A look believes a blocked document only if the parents say the same.
    look_judges_blocked: bool = True
    #: The cursor of the last node stands at a sink before the look that finds that it has not ended.
    look_moves_last_cursor: bool = True
    #: An inner node may end after its read, and before the reads of those that follow it.
    look_reads_again: bool = True
    #: Nodes may be added whose first parents have ended before, so that the missing cursor stands at the wrong one.
    look_moves_cursors: bool = True
    #: A redriven node may be the last to end, and its children have documents that stay.
    redriven_end_asks: bool = True
    #: The parent of a blocked node was started after all, and fails. The document that is there leaves no new record.
    blocked_again_asks: bool = True
    end_needs_looks: bool = True
    end_is_fenced: bool = True
    #: A cancelled flow leaves each node with a final document, so that a late advance cannot start it.
    cancel_inserts: bool = True
    cancel_replaces_blocked: bool = True

    def evaluate(self, graph: Graph, node: int | None, trigger: int | None) -> Caller:
        """After the end of the parent `trigger`, or of an addition (None). The node None is the last one."""
        flow = yield Read("flow")
        if not flow.starts_nodes:
            return
        edges = parents(graph, node, flow.nodes)
        cursor = Cursor(nodes=flow.nodes)
        if len(edges) > 1:
            cursor = (yield Read("cursor", _key(node))) or cursor
        positions = [edge.parent for edge in edges]
        at = positions.index(trigger) if trigger in positions else None
        if node is None and cursor.nodes != flow.nodes and self.cursor_knows_additions:
            cursor = Cursor(ALL_ENDED, nodes=flow.nodes)
        if at is None or cursor.at in {at, ALL_ENDED} or (self.mover_goes_on and cursor.by == at):
            yield from self._walk(flow.nodes, node, edges, cursor, at)

    def _walk(self, nodes: int, node: int | None, edges: Sequence[Edge], cursor: Cursor, by: int | None) -> Caller:
        """Read the parents from the cursor on."""
        position, clean = (0, True) if cursor.at == ALL_ENDED else (cursor.at, cursor.clean)
        said = set() if clean else {Verdict.BLOCK}
        while position < len(edges):
            verdict = through(edges[position], (yield Read("job", edges[position].parent)))
            if verdict is Verdict.WAIT:
                if len(edges) == 1 or cursor.at == position:
                    return
                cursor = Cursor(position, by, clean, nodes)
                yield Write(_key(node), cursor=cursor)
                if not self.cursor_before_read:
                    return
                continue
            said.add(verdict)
            clean = clean and verdict is Verdict.START
            position += 1
        if node is None:
            yield Write(ask=True)
        elif clean or len(edges) == 1 or cursor.at == ALL_ENDED:
            yield from self._act(node, first(said))
        else:
            # A parent that failed may be redriven, and end, before the cursor says that its end counts.
            yield Write(node, cursor=Cursor(ALL_ENDED, by))
            yield from self._walk(nodes, node, edges, Cursor(ALL_ENDED), by)

    def _act(self, node: int, verdict: Verdict) -> Caller:
        accepted = yield Write(node, insert=_AS[verdict])
        if verdict is Verdict.BLOCK and not accepted and self.blocked_again_asks:
            yield Write(ask=True)

    def run(self, graph: Graph) -> Caller:
        """A run of the flow's job."""
        flow = yield Read("flow")
        if flow.cancelled:
            yield from self._cancel(flow.nodes)
            return
        for node in sorted(flow.redrive):
            yield Write(node, change=(State.DEAD, State.LIVE))
        while True:
            cursor = (yield Read("cursor", LAST)) or Cursor(nodes=flow.nodes)
            found: list[Job | None] = []
            for node in range(flow.nodes):
                found.append((yield from self._looked_at(node, graph[node], found)))
            pending = [node for node, job in enumerate(found) if job is None or job.state is State.LIVE]
            if not pending:
                yield Write(end=end_of(graph, found))
                return
            sinks = parents(graph, None, flow.nodes)
            at = next((at for at, edge in enumerate(sinks) if edge.parent in pending), None)
            if at is None:
                # They were redriven, or have ended since they were read.
                if (yield from self._all_live(pending)):
                    return
                continue
            if not self.look_moves_last_cursor or (cursor.at, cursor.nodes) == (at, flow.nodes):
                return
            yield Write(LAST, cursor=Cursor(at, nodes=flow.nodes))

    def _all_live(self, nodes: Sequence[int]) -> Generator[Read, Any, bool]:
        for node in nodes if self.look_reads_again else ():
            job = yield Read("job", node)
            if job is None or job.state is not State.LIVE:
                return False
        return True

    def _looked_at(
        self, node: int, edges: Sequence[Edge], found: Sequence[Job | None]
    ) -> Generator[Read | Write, Any, Job | None]:
        """The document of a node, as far as this look may believe it. Starts, skips or blocks the node if it is due."""
        job: Job | None = yield Read("job", node)
        if job and (job.state is not State.BLOCKED or not self.look_judges_blocked):
            return job
        verdict = first({through(edge, found[edge.parent]) for edge in edges})
        if verdict is Verdict.WAIT and len(edges) > 1 and self.look_moves_cursors:
            cursor = (yield Read("cursor", node)) or Cursor()
            if cursor.at == ALL_ENDED or through(edges[cursor.at], found[edges[cursor.at].parent]) is not Verdict.WAIT:
                yield from self._walk(len(found), node, edges, cursor, None)
        if verdict is Verdict.WAIT or (verdict is Verdict.START and not self.look_starts):
            return None
        if job and verdict is Verdict.BLOCK:
            return job
        accepted = yield Write(node, insert=_AS[verdict])
        return Job(_AS[verdict]) if accepted else None

    def _cancel(self, nodes: int) -> Caller:
        for node in range(nodes):
            while True:
                job = yield Read("job", node)
                absent = job is None and self.cancel_inserts
                if absent or (job and job.state is State.BLOCKED and self.cancel_replaces_blocked):
                    done = yield Write(node, insert=State.CANCELLED)
                elif job and job.state is State.LIVE:
                    done = yield Write(node, change=(State.LIVE, State.CANCELLED))
                else:
                    break
                if done:
                    break
        yield Write(end=State.CANCELLED)


def _key(node: int | None) -> int:
    return LAST if node is None else node

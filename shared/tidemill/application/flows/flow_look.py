"""A look of a flow at all its nodes: it does what no advance has done, and says what has become of the flow.

It starts the nodes without parents, and repairs what was lost. All of it may be repeated.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import Struct

from tidemill.application.flows.busy_groups import Busy, by_group, carry_out
from tidemill.application.flows.cursor_mover import CursorMover
from tidemill.application.flows.flow_nodes import FlowParts, NodeDocuments, in_parts
from tidemill.application.groups.round_robin import in_turn
from tidemill.domain.batches.composite_cancels import is_cancelled
from tidemill.domain.errors import StoreUnavailableError, WriteRefusedError
from tidemill.domain.flows.flow_cursor import ALL_ENDED, Cursor
from tidemill.domain.flows.flow_graph import LAST, Graph
from tidemill.domain.flows.flows import NodeVerdict, OnFailure, Resolution, through, verdict
from tidemill.domain.job import Job
from tidemill.domain.states import State

_AT_ONCE: Final = 8
#: After so many groups that were busy, a look tries no further group: the time is for all else that it has to do. At
#: eight tries a second, these take eight seconds.
_MOST_BUSY: Final = 64

InTime = Callable[[], bool]


class Looked(Struct, frozen=True):
    """The nodes as the look left them."""

    resolutions: Sequence[Resolution]
    graph: Graph
    #: The time was short, or an end came meanwhile: look again.
    again: bool
    #: Others kept the groups of some nodes busy: look again after a pause.
    busy: bool

    @property
    def counts(self) -> Mapping[str, int]:
        return dict(sorted(Counter(map(str, self.resolutions)).items()))

    @property
    def ended(self) -> int:
        return len(self.resolutions) - self.resolutions.count(Resolution.PENDING)

    @property
    def at_rest(self) -> bool:
        return Resolution.PENDING not in self.resolutions

    @property
    def final(self) -> bool:
        """Whether no job of a node is alive, and none can start any more."""
        return not {Resolution.PENDING, Resolution.BLOCKED}.intersection(self.resolutions)

    @property
    def failed(self) -> bool:
        """Whether a failure has reached a node that no other one follows."""
        ends = (self.resolutions[end.number] for end in self.graph.last_parents)
        return any(end in {Resolution.FAILED, Resolution.BLOCKED} for end in ends)

    @property
    def to_blame(self) -> Sequence[str]:
        """The nodes whose failure some edge does not tolerate, or that no other node follows."""
        return [self.graph.names[number] for number in not_tolerated(self.graph, self.resolutions)]


def not_tolerated(graph: Graph, resolutions: Sequence[Resolution]) -> Iterable[int]:
    """The nodes that have failed, and because of which the flow dies."""
    fatal = {end.number for end in graph.last_parents}
    fatal |= {each.number for parents in graph.parents for each in parents if each.on_failure is OnFailure.FAIL}
    return (number for number, what in enumerate(resolutions) if what is Resolution.FAILED and number in fatal)


class FlowLook:
    """For the job of a flow."""

    def __init__(self, parts: FlowParts) -> None:
        self._parts = parts

    def flow(self, tenant: str, flow_id: str) -> Job:
        """The document of the flow, as it is now. Raises `StoreUnavailableError`."""
        flow = self._parts.flows.get(tenant, flow_id)
        if flow is None:
            # A running job is not deleted, unless an operator does it.
            raise StoreUnavailableError(f"the document of the flow {flow_id} is gone")
        return flow

    def __call__(self, flow: Job, in_time: InTime) -> Looked:
        """Look, and act while `in_time`."""
        documents = self.documents(flow)
        graph = documents.nodes.graph
        if is_cancelled(flow):
            documents.cancel(range(len(graph)), in_time=in_time)
            return self._looked(documents, again=True)
        busy = Busy(most=_MOST_BUSY)
        again = not (self._redrive(documents, in_time, busy) and self._act(documents, in_time, busy))
        if not again and not busy.nodes:
            mover = CursorMover(documents, self._parts.flows)
            cursor = self._parts.flows.cursors(flow, [LAST])[LAST] if len(graph.last_parents) > 1 else None
            again = mover.due(LAST, cursor, ended=None) is NodeVerdict.START and self._has_ended(documents)
        return self._looked(documents, again=again, busy=bool(busy.nodes))

    def documents(self, flow: Job) -> NodeDocuments:
        """All of them, as they are now."""
        documents = NodeDocuments(flow, self._parts)
        documents.read(range(len(documents.nodes.graph)))
        return documents

    def _redrive(self, documents: NodeDocuments, in_time: InTime, busy: Busy) -> bool:
        """Redrive the dead nodes because of which the flow died, in the name of the one who redrove the flow.

        False if the time was too short.
        """
        flow = documents.flow
        if not flow.redrives:
            return True
        asked = flow.redrives[-1]
        looked = self._looked(documents, again=False)
        dead = {
            number: job
            for number in not_tolerated(looked.graph, looked.resolutions)
            if (job := documents.document(number)) and job.state is State.DEAD
            if job.was_dead_at(asked)
        }

        def redrive(number: int) -> None:
            job = dead[number]
            if busy.leaves(number, job.group.key):
                return
            # A later look finds those that changed meanwhile, or whose group is busy.
            with suppress(WriteRefusedError):
                found = self._parts.jobs.get(job.tenant, job.id) or job
                now = self._parts.clock()
                write = partial(
                    self._parts.jobs.redrive, found, token=asked.token, now=now, by=asked.by, reason=asked.reason
                )
                busy.written(number, job.group.key, write)
            documents.read([number], again=True)

        in_order = sorted(dead, key=lambda number: dead[number].group.sequence or 0)
        return _each(documents, in_order, redrive, in_time)

    def _act(self, documents: NodeDocuments, in_time: InTime, busy: Busy) -> bool:
        """Start and mark nodes, each after its parents, and move the cursors that are behind.

        False as above. Of nodes that are busy, only those that follow them wait.
        """
        graph, mover = documents.nodes.graph, CursorMover(documents, self._parts.flows)
        starts, marks, waiting = self._due(documents)

        def start(number: int) -> None:
            carry_out(documents, number, NodeVerdict.START, busy)

        if not _each(documents, starts, start, in_time):
            return False
        moves = [(number, NodeVerdict.WAIT) for number in self._behind(documents, waiting)]
        for number, said in [*marks.items(), *moves]:
            due = said
            if any(each.number in busy.nodes for each in graph.parents[number]):
                busy.nodes.add(number)
                continue
            if due is not NodeVerdict.SKIP and len(graph.parents[number]) > 1:
                # Move the cursor as an advance does: the parents may be redriven at this moment.
                due = mover.due(number, self._parts.flows.cursors(documents.flow, [number])[number], ended=None)
            if due is not NodeVerdict.WAIT:
                carry_out(documents, number, due, busy)
            if not in_time():
                return False
        return True

    def _due(self, documents: NodeDocuments) -> tuple[Sequence[int], Mapping[int, NodeVerdict], Sequence[int]]:
        """The nodes to start, those to mark or to start after a mark, and those that wait for one of several parents.

        A node that starts because its parent is skipped must find that written: until then, a redrive of an earlier
        node may let the parent run.
        """
        graph = documents.nodes.graph
        starts, waiting = list[int](), list[int]()
        marks: dict[int, NodeVerdict] = {}
        resolutions = [documents.resolution(number) for number in range(len(graph))]
        for number in graph.order:
            if not documents.may_start(number):
                continue
            parents = graph.parents[number]
            match verdict(through(each.on_failure, resolutions[each.number]) for each in parents):
                case NodeVerdict.START:
                    if any(each.number in marks for each in parents):
                        marks[number] = NodeVerdict.START
                    else:
                        starts.append(number)
                    resolutions[number] = Resolution.PENDING
                case NodeVerdict.SKIP:
                    marks[number] = NodeVerdict.SKIP
                    resolutions[number] = Resolution.SKIPPED
                case NodeVerdict.BLOCK if resolutions[number] is not Resolution.BLOCKED:
                    marks[number] = NodeVerdict.BLOCK
                    resolutions[number] = Resolution.BLOCKED
                case NodeVerdict.WAIT:
                    if resolutions[number] is Resolution.BLOCKED:
                        documents.not_blocked_now(number)
                        resolutions[number] = Resolution.PENDING
                    if len(parents) > 1:
                        waiting.append(number)
        return starts, marks, waiting

    def _has_ended(self, documents: NodeDocuments) -> bool:
        """Whether a node has ended since it was read. If not, it tells when it does: it has been redriven."""
        pending = [
            number for number in range(len(documents.nodes.graph)) if documents.resolution(number) is Resolution.PENDING
        ]
        documents.read(pending, again=True)
        return any(documents.resolution(number) is not Resolution.PENDING for number in pending)

    def _behind(self, documents: NodeDocuments, waiting: Sequence[int]) -> list[int]:
        """Return the nodes whose cursor stands at an ended parent: an advance was lost, or was left to the look."""
        parents = documents.nodes.graph.parents
        cursors = self._parts.flows.cursors(documents.flow, waiting)

        def is_behind(number: int, cursor: Cursor) -> bool:
            if cursor.at == ALL_ENDED:
                return True
            return documents.resolution(parents[number][cursor.at].number) is not Resolution.PENDING

        return [number for number, cursor in cursors.items() if is_behind(number, cursor)]

    def _looked(self, documents: NodeDocuments, *, again: bool, busy: bool = False) -> Looked:
        graph = documents.nodes.graph
        return Looked([documents.resolution(number) for number in range(len(graph))], graph, again, busy)


def _each(documents: NodeDocuments, numbers: Sequence[int], act: Callable[[int], object], in_time: InTime) -> bool:
    """Act on the nodes, several at once; those of one group in their order. False if the time was too short."""

    def act_in_order(some: Sequence[int]) -> None:
        for number in some:
            act(number)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for some in in_parts(in_turn(numbers, documents.group, look=documents.flow.generation), _AT_ONCE):
            list(pool.map(act_in_order, by_group(some, documents.group)))
            if not in_time():
                return False
    return True

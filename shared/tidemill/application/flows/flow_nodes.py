"""The documents of the nodes of one flow: reads them, starts their jobs, and marks those that do not start."""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from msgspec import Struct

from tidemill.application.flows.flow_graphs import FlowGraphs
from tidemill.application.ports import Clock, ControlStore, FlowStore
from tidemill.application.submission.job_ids import node_job_id
from tidemill.application.submission.submit import Submit
from tidemill.domain.errors import KeyReusedError, TransactionConflictError, WriteRefusedError
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.flows.flows import NODES_KEPT, NodeStart, NodeVerdict, Resolution, resolution_of
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import OWNER, Job
from tidemill.domain.job_parts import Cancel, CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import FINAL_STATES, State
from tidemill.names import Lane

Value = TypeVar("Value")

_READ_AT_ONCE: Final = 100
#: How often a flow is asked to look while others add nodes.
_TRIES: Final = 20

_MARKS: Final = {NodeVerdict.SKIP: Mark.SKIPPED, NodeVerdict.BLOCK: Mark.BLOCKED}
#: How many documents a run of the flow or an advance may read.
WITHOUT_BOUND: Final = 1_000_000


class TooLargeError(Exception):
    """It would take an advance too long. The flow itself does it."""


class FlowParts(Struct, frozen=True, kw_only=True):
    """What all use cases of flows need."""

    flows: FlowStore
    jobs: ControlStore
    #: It needs no job types where nodes only start: the flow has the facts of theirs.
    submit: Submit
    graphs: FlowGraphs
    clock: Clock

    def ask_to_look(self, tenant: str, flow_id: str) -> None:
        """Make sure that a run of the flow begins after this call, if the flow is alive.

        Raises `TransactionConflictError` if others write the flow each time.
        """
        for attempt in itertools.count(1):
            # Read after all that was seen of the nodes: a run that began before may not have seen it.
            flow = self.flows.get(tenant, flow_id)
            if flow is None or flow.state.terminal:
                return
            try:
                # A refused write means that it changed after the read.
                with suppress(WriteRefusedError):
                    self.flows.look(flow, now=self.clock())
                    return
            except TransactionConflictError:
                # Nodes are added at this moment, which takes some milliseconds.
                if attempt >= _TRIES:
                    raise


class NodeDocuments:
    """Reads the documents of the nodes of one flow, and keeps them: `again` reads anew."""

    def __init__(self, flow: Job, parts: FlowParts, *, most: int = WITHOUT_BOUND) -> None:
        """Raises `TooLargeError` from the read on that is beyond `most` documents."""
        self.flow = flow
        self.nodes = parts.graphs.of(flow)
        self._parts = parts
        self._left = most
        self._documents: dict[int, Job | None] = {}
        self._unreadable: set[int] = set()
        self._waiting: set[int] = set()

    def job_id(self, node: int) -> str:
        return node_job_id(self.flow, self.nodes.graph.names[node])

    def group(self, node: int) -> str | None:
        """The one that its job takes part in."""
        return self.nodes.groups.get(node)

    def read(self, numbers: Collection[int], *, again: bool = False) -> None:
        wanted = {self.job_id(number): number for number in numbers if again or number not in self._documents}
        self._left -= len(wanted)
        if self._left < 0:
            raise TooLargeError
        for some in in_parts(list(wanted), _READ_AT_ONCE):
            self._read({job_id: wanted[job_id] for job_id in some})

    def _read(self, wanted: Mapping[str, int]) -> None:
        unreadable: set[str] = set()
        found = self._parts.flows.get_many(
            [(self.flow.tenant, job_id) for job_id in wanted],
            unreadable=lambda _tenant, job_id, _error: unreadable.add(job_id),
        )
        jobs = {job.id: job for job in found}
        for job_id, number in wanted.items():
            self._documents[number] = _without_contents(jobs[job_id]) if job_id in jobs else None
            (self._unreadable.add if job_id in unreadable else self._unreadable.discard)(number)

    def has_read(self, number: int) -> bool:
        return number in self._documents

    def document(self, number: int) -> Job | None:
        """Return the document as last read. None if it does not exist, or if only a newer version can read it."""
        if number not in self._documents:
            self.read([number])
        return self._documents[number]

    def resolution(self, number: int) -> Resolution:
        return Resolution.PENDING if number in self._waiting else resolution_of(self.document(number))

    def not_blocked_now(self, number: int) -> None:
        """Its document says that it is blocked, but its parents may let it start by now."""
        self._waiting.add(number)

    def may_start(self, number: int) -> bool:
        """Whether it has no document, or one that says that it was blocked."""
        document = self.document(number)
        if number in self._unreadable:
            return False
        return document is None or resolution_of(document) is Resolution.BLOCKED

    def carry_out(self, number: int, verdict: NodeVerdict) -> Job | None:
        """Start the node, or mark it as skipped or blocked. None if it has a document that stays."""
        job = self._prepared(number)
        mark = _MARKS.get(verdict)
        if mark is Mark.BLOCKED and self._documents.get(number):
            return None
        return self._inserted(number, _ended(job, mark, now=self._parts.clock()) if mark else job)

    def _inserted(self, number: int, job: Job) -> Job | None:
        try:
            accepted = self._parts.submit.insert(job)
        except KeyReusedError:
            # Another version of the code made another job of the same node.
            self.read([number], again=True)
            return None
        self._documents[number] = _without_contents(accepted.job)
        return None if accepted.replayed else accepted.job

    def cancel(self, numbers: Iterable[int], *, in_time: Callable[[], bool] = lambda: True) -> None:
        """Cancel the jobs of these nodes, in the name of the owner of the flow.

        A node without a job gets a document that says so. Of it and the start of an advance, one comes first.
        """
        for number in numbers:
            # A later look finds those that changed meanwhile, or whose group is busy.
            with suppress(WriteRefusedError, TransactionConflictError):
                self._cancel(number)
            if not in_time():
                return

    def _cancel(self, number: int) -> None:
        job = self.document(number)
        asked = CancelRequest(by=OWNER, reason=f"its flow {self.flow.id} was cancelled")
        if self.may_start(number):
            job = self._prepared(number)
            ended = _ended(job, None, now=self._parts.clock())
            self._inserted(number, replace(ended, cancel=Cancel(request=asked)))
        elif job and not job.run_ends and job.state not in FINAL_STATES:
            found = self._parts.jobs.get(job.tenant, job.id) or job
            self._documents[number] = self._parts.jobs.cancel(
                found, now=self._parts.clock(), by=asked.by, reason=asked.reason
            )

    def _prepared(self, number: int) -> Job:
        """The job of a node. It has the same id however often it is started."""
        flow, name = self.flow, self.nodes.graph.names[number]
        job = self._parts.submit.prepare(
            self._start_of(number), tenant=flow.tenant, trace=flow.trace, job_id=node_job_id(flow, name)
        )
        return replace(job, flow=FlowPlace(id=flow.id, node=name))

    def _start_of(self, number: int) -> NodeStart:
        node = self._parts.graphs.stored(self.flow, self.nodes, number)
        facts: Any = self.nodes.types.get(node["type"], {})
        max_age = node.get("max_age_seconds", facts.get("max_age_seconds"))
        kept = max(self.flow.created_at + NODES_KEPT - self._parts.clock(), _seconds(facts.get("retention_seconds", 0)))
        return NodeStart(
            type=node["type"],
            payload=node.get("payload", {}),
            lane=Lane(node.get("lane") or facts.get("lane") or Lane.DEFAULT),
            group=node.get("group"),
            tags=node.get("tags", ()),
            max_age=None if max_age is None else _seconds(max_age),
            blocks=facts.get("blocks", False),
            retention=kept,
        )


def in_parts(values: Sequence[Value], size: int) -> Iterator[Sequence[Value]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def _without_contents(job: Job) -> Job:
    """Drop the contents of the job, so that a reader can hold 10,000 nodes."""
    return replace(job.without_contents(), history=(), errors=())


def _ended(job: Job, mark: Mark | None, *, now: datetime) -> Job:
    """The document of a node without a job. It takes part in no group, and its payload is not kept."""
    place = job.flow and replace(job.flow, mark=mark)
    return replace(
        job,
        flow=place,
        state=State.CANCELLED,
        payload=replace(job.payload, text="{}"),
        group=replace(job.group, key=None, blocks=False),
        due=None,
        run_at=None,
        lifetime=replace(job.lifetime, useful_until=None, expires_at=now + (job.lifetime.retention or NODES_KEPT)),
        finished_at=now,
        history=(Transition(at=now, state=State.CANCELLED, cause=mark or Why.CANCELLED),),
    )


def waits_for(documents: NodeDocuments, number: int, *, most: int) -> Sequence[str]:
    """The first parents of the node that have not ended, of those that were read."""
    names = documents.nodes.graph.names
    parents = documents.nodes.graph.parents[number]
    read = (each.number for each in parents if documents.has_read(each.number))
    pending = (number for number in read if documents.resolution(number) is Resolution.PENDING)
    return [names[parent] for parent, _ in zip(pending, range(most), strict=False)]

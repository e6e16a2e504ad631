"""A small flow between two steps of its callers, and the promises that each step must keep."""

from typing import Any, NamedTuple

from tests.model.flow_types import Cursor, Edge, Flow, Graph, Job, Read, State, Verdict, end_of, through

#: A child (None: the last node), and the parent that has ended (None: the child is new).
Work = tuple[int | None, int | None]


class Process(NamedTuple):
    """An advance or a run between two steps: `answers` are those that it has got so far."""

    #: None for a run of the flow's job.
    work: Work | None
    answers: tuple[Any, ...] = ()
    #: Whether no later run has begun.
    owner: bool = True


class Faults(NamedTuple):
    """How often each of these may still happen."""

    deaths: int = 0
    #: How often an operator cancels one node.
    cancels: int = 0
    redrives: int = 0
    #: Stream records that come twice.
    doubles: int = 0
    kills: int = 0
    #: Runs that go on although their lease is over.
    zombies: int = 0
    flow_cancels: int = 0
    flow_redrives: int = 0


class World(NamedTuple):
    flow: Flow
    faults: Faults
    jobs: tuple[Job | None, ...]
    #: The cursors of each node, and of the last one.
    cursors: tuple[Cursor | None, ...]
    #: Nodes whose end is not yet published.
    records: frozenset[int] = frozenset()
    works: frozenset[Work] = frozenset()
    #: The flow was asked to look, and no run has begun since.
    asked: bool = True
    processes: tuple[Process, ...] = ()
    #: A node, or the flow, was redriven since the last run began. So its end may be based on what was before.
    redriven: bool = False

    def used(self, **used: int) -> "World":
        left = {name: getattr(self.faults, name) - count for name, count in used.items()}
        return self._replace(faults=self.faults._replace(**left))

    def with_job(self, node: int, job: Job) -> "World":
        return self._replace(jobs=replaced(self.jobs, node, job))

    def with_process(self, process: Process) -> "World":
        return self._replace(processes=tuple(sorted((*self.processes, process), key=hash)))

    def item(self, read: Read) -> object:
        match read.item:
            case "flow":
                return self.flow
            case "cursor":
                return self.cursors[read.node]
        return self.jobs[read.node]

    def is_final(self, read: Read) -> bool:
        """Whether nothing changes the item any more."""
        job = self.jobs[read.node] if read.item == "job" else None
        redrives = self.faults.redrives or self.faults.flow_redrives or self.flow.redrive
        final = {State.SUCCEEDED, State.SKIPPED, State.CANCELLED} | (set() if redrives else {State.DEAD})
        return job is not None and job.state in final


class BrokenError(Exception):
    """A history breaks a promise."""


def check_rest(graph: Graph, world: World) -> None:
    """Once nothing is on its way, all that may start has started, and a flow without a live node has ended."""
    owed = world.asked or world.works or world.records or world.processes
    if owed or world.flow.state is not State.LIVE:
        return
    jobs = world.jobs[: world.flow.nodes]
    for node, edges in enumerate(graph[: world.flow.nodes]):
        verdicts = {through(edge, jobs[edge.parent]) for edge in edges}
        job = jobs[node]
        if (job is None or job.state is State.BLOCKED) and verdicts <= {Verdict.START}:
            raise BrokenError(f"a node is not started: {node} {world}")
    if State.LIVE not in [job.state for job in jobs if job]:
        raise BrokenError(f"a flow does not end: {world}")


def check_insert(graph: Graph, world: World, node: int, state: State) -> None:
    before = world.jobs[node]
    if before is not None and before.state is not State.BLOCKED:
        raise BrokenError(f"a node has two documents: {node} {world}")
    if state is State.CANCELLED:
        return
    if world.flow.state is not State.LIVE and not world.redriven:
        raise BrokenError(f"a node of an ended flow starts: {node} {world}")
    may = [_may(edge, world.jobs[edge.parent]) for edge in graph[node]]
    if state is State.LIVE and not all(Verdict.START in each for each in may):
        raise BrokenError(f"a node starts before its parents allow it: {node} {world}")
    if state is State.SKIPPED and not any(Verdict.SKIP in each for each in may):
        raise BrokenError(f"a node is skipped without a reason: {node} {world}")


def _may(edge: Edge, parent: Job | None) -> set[Verdict]:
    """What the parent has said at any time: it may have been redriven since."""
    now = {through(edge, parent)} if parent else set()
    return now | ({through(edge, Job(State.DEAD))} if parent and parent.failed else set())


def check_end(graph: Graph, world: World, end: State) -> None:
    """That the flow may end so now."""
    if world.flow.state is not State.LIVE:
        raise BrokenError(f"a flow ends twice: {world}")
    if world.redriven:
        return
    jobs = world.jobs[: world.flow.nodes]
    if any(job is None or job.state is State.LIVE for job in jobs):
        raise BrokenError(f"a flow ends too early: {world}")
    blocked = [node for node, job in enumerate(jobs) if job and job.state is State.BLOCKED]
    if end is State.CANCELLED:
        if blocked:
            raise BrokenError(f"a cancelled flow leaves a node that may start: {world}")
        return
    for node in blocked:
        if Verdict.BLOCK not in [through(edge, jobs[edge.parent]) for edge in graph[node]]:
            raise BrokenError(f"a flow ends with a node that nothing blocks: {node} {world}")
    if end is not end_of(graph, jobs):
        raise BrokenError(f"a flow ends as {end}: {world}")


def replaced(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    index %= len(items)
    return (*items[:index], item, *items[index + 1 :])

"""Every history of a small flow: ends, redrives, cancels of a node or of the flow, added nodes, advances, looks, kills.

All callers read and write in any order. An end leaves a stream record, which may come twice: publish evaluates each
child, and again if that is killed. The flow's job runs when it is asked to look, and again if it is killed. It has no
other runs here: the looks at long intervals would hide that a request is missing.
"""

import functools
from collections.abc import Iterator
from typing import Any

from tests.model.flow_protocol import Protocol
from tests.model.flow_types import Flow, Graph, Job, Read, State, Write, children
from tests.model.flow_world import (
    BrokenError,
    Faults,
    Process,
    Work,
    World,
    check_end,
    check_insert,
    check_rest,
    replaced,
)

_ADVANCES_AT_ONCE = 2
_FAILED = (State.DEAD, State.CANCELLED)
_MARKS = (State.SKIPPED, State.BLOCKED)


def explore(protocol: Protocol, graph: Graph, faults: Faults, *, added: int = 0) -> int:
    """The number of states. Raises `BrokenError` at the first state that breaks a promise.

    The last `added` nodes of the graph are added while the flow runs.
    """
    count = len(graph)
    beginning = World(Flow(State.LIVE, count - added), faults, (None,) * count, (None,) * (count + 1))
    histories = _Histories(protocol, graph)
    seen, open_states = {beginning}, [beginning]
    while open_states:
        world = open_states.pop()
        check_rest(graph, world)
        for following in histories.steps(world):
            if following not in seen:
                seen.add(following)
                open_states.append(following)
    return len(seen)


class _Histories:
    """Explores the histories of one graph."""

    def __init__(self, protocol: Protocol, graph: Graph) -> None:
        self._protocol = protocol
        self._graph = graph
        self._next_request = functools.cache(self._request)

    def steps(self, world: World) -> Iterator[World]:
        for node in world.records:
            yield self._published(world._replace(records=world.records - {node}), node)
        if len([process for process in world.processes if process.work]) < _ADVANCES_AT_ONCE:
            for work in world.works:
                yield self._continued(world._replace(works=world.works - {work}), Process(work))
        if world.asked and world.flow.state is State.LIVE:
            yield from self._run_begins(world)
        for node, job in enumerate(world.jobs):
            if job:
                yield from self._changes(world, node, job)
        yield from self._changes_of_flow(world)
        for process in dict.fromkeys(world.processes):
            rest = list(world.processes)
            rest.remove(process)
            without = world._replace(processes=tuple(rest))
            yield self._continued(without, process)
            if world.faults.kills and process.owner:
                yield _killed(without.used(kills=1), process)

    def _run_begins(self, world: World) -> Iterator[World]:
        if any(process.work is None for process in world.processes):
            if not world.faults.zombies:
                return
            former = [process._replace(owner=process.work is not None) for process in world.processes]
            world = world.used(zombies=1)._replace(processes=tuple(sorted(former, key=hash)))
        yield self._continued(world._replace(asked=False, redriven=False), Process(None))

    def _changes(self, world: World, node: int, job: Job) -> Iterator[World]:
        """By the worker of the node, or by an operator."""
        faults = world.faults
        if job.state is State.LIVE:
            yield self._ended(world, node, State.SUCCEEDED)
            if faults.deaths:
                yield self._ended(world.used(deaths=1), node, State.DEAD)
            if faults.cancels:
                yield self._ended(world.used(cancels=1), node, State.CANCELLED)
        elif faults.doubles and node not in world.records:
            yield self._recorded(world.used(doubles=1), node)
        if job.state is State.DEAD and faults.redrives:
            yield _redriven(world.used(redrives=1), node)

    def _changes_of_flow(self, world: World) -> Iterator[World]:
        flow, count = world.flow, len(self._graph)
        if flow.starts_nodes and world.faults.flow_cancels:
            yield world.used(flow_cancels=1)._replace(flow=flow._replace(cancelled=True), asked=True)
        if flow.starts_nodes and flow.nodes < count:
            yield world._replace(flow=flow._replace(nodes=count), asked=world.asked or self._protocol.adding_asks)
        if flow.state is State.DEAD and world.faults.flow_redrives:
            dead = frozenset(node for node, job in enumerate(world.jobs) if job and job.state is State.DEAD)
            alive = flow._replace(state=State.LIVE, redrive=dead)
            yield world.used(flow_redrives=1)._replace(flow=alive, asked=True, redriven=True)

    def _ended(self, world: World, node: int, state: State) -> World:
        job = world.jobs[node]
        before = job is not None and job.failed
        # The record of the end asks the flow to look. To ask at once leaves out no history that matters.
        asks = before and self._protocol.redriven_end_asks and world.flow.state is State.LIVE
        ended = world.with_job(node, Job(state, before or state in _FAILED))._replace(
            flow=world.flow._replace(redrive=world.flow.redrive - {node}), asked=world.asked or asks
        )
        return self._recorded(ended, node)

    def _recorded(self, world: World, node: int) -> World:
        """If no node can be added any more, publish may read the children at once: that leaves out no history."""
        if world.flow.nodes == len(self._graph):
            return self._published(world, node)
        return world._replace(records=world.records | {node})

    def _published(self, world: World, node: int) -> World:
        works = {(child, node) for child in children(self._graph, node, world.flow.nodes)}
        return world._replace(works=world.works | works)

    def _continued(self, world: World, process: Process) -> World:
        """The next step of a process, which is not among those of `world`."""
        request = self._next_request(process.work, process.answers)
        if isinstance(request, Read):
            answer: Any = world.item(request)
        else:
            world, answer = self._applied(world, process, request)
        process = process._replace(answers=(*process.answers, answer))
        following = self._next_request(process.work, process.answers)
        # It may read at once what nothing changes any more: that leaves out no history.
        while isinstance(following, Read) and world.is_final(following):
            process = process._replace(answers=(*process.answers, world.item(following)))
            following = self._next_request(process.work, process.answers)
        return world if following is None else world.with_process(process)

    def _request(self, work: Work | None, answers: tuple[Any, ...]) -> Any:
        """None if the process has ended."""
        caller = self._protocol.run(self._graph) if work is None else self._protocol.evaluate(self._graph, *work)
        try:
            request = next(caller)
            for answer in answers:
                request = caller.send(answer)
        except StopIteration:
            return None
        return request

    def _applied(self, world: World, process: Process, write: Write) -> tuple[World, bool]:
        """The world after the write, and whether it was accepted."""
        if write.cursor:
            return world._replace(cursors=replaced(world.cursors, write.node, write.cursor)), True
        if write.ask:
            return world._replace(asked=world.asked or world.flow.state is State.LIVE), True
        if write.insert:
            return self._inserted(world, write.node, write.insert)
        if write.change:
            job, (before, after) = world.jobs[write.node], write.change
            if job is None or job.state is not before:
                return world, False
            redriven = after is State.LIVE
            return _redriven(world, write.node) if redriven else self._ended(world, write.node, after), True
        return self._flow_ended(world, process, write.end or State.SUCCEEDED), True

    def _inserted(self, world: World, node: int, state: State) -> tuple[World, bool]:
        before = world.jobs[node]
        blocked = before is not None and before.state is State.BLOCKED and state is not State.BLOCKED
        replaces = blocked and (self._protocol.start_replaces_blocked or state is State.CANCELLED)
        if before is not None and not replaces and self._protocol.insert_needs_absence:
            return world, False
        check_insert(self._graph, world, node, state)
        world = world.with_job(node, Job(state, failed=state is State.CANCELLED))
        marks = state in _MARKS and self._protocol.marks_propagate
        return self._recorded(world, node) if marks else world, True

    def _flow_ended(self, world: World, process: Process, end: State) -> World:
        refused = (world.asked and self._protocol.end_needs_looks) or (
            not process.owner and self._protocol.end_is_fenced
        )
        if refused:
            return world
        check_end(self._graph, world, end)
        return world._replace(flow=world.flow._replace(state=end))


def _redriven(world: World, node: int) -> World:
    return world.with_job(node, Job(State.LIVE, failed=True))._replace(redriven=True)


def _killed(world: World, process: Process) -> World:
    """Its stream record or its message comes once more."""
    if process.work is None:
        return world._replace(asked=True)
    return world._replace(works=world.works | {process.work})


__all__ = ["BrokenError", "explore"]

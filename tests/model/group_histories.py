"""Every history of a small group: submissions, a cancel, a redrive, two advances at once, crashes, expiry.

All callers read and write in any order. An advance may begin at any time, as that of a worker does, and may be killed
at any time. An entry to wait and an end leave a stream record: publish begins an advance for it, and again if that one
is killed. One advance may answer several records. An idle head may expire as soon as it is written.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.model.group_protocol import Head, Job, JobState, Protocol, Read, Write

_ADVANCES_AT_ONCE = 2
_ADVANCES = {"advance", "hint"}
_ENDED = (JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED)


class Process(NamedTuple):
    """A caller between two steps: `answers` are the items that it has read so far."""

    #: "submit", "redrive", "advance" for a stream record, or "hint" for any other advance.
    kind: str
    job: int | None = None
    answers: tuple[Any, ...] = ()
    #: Whether the head and the tail are as it read them.
    head_unchanged: bool = True
    tail_unchanged: bool = True


class World(NamedTuple):
    submissions: int
    cancels: int
    redrives: int
    head: Head | None = None
    tail: int | None = None
    #: Each position with the index of its job.
    places: frozenset[tuple[int, int]] = frozenset()
    jobs: tuple[Job, ...] = ()
    processes: tuple[Process, ...] = ()
    #: A stream record is not yet answered.
    record: bool = False


class BrokenError(Exception):
    """A history breaks a promise."""


def explore(protocol: Protocol, *, submissions: int, cancels: int, redrives: int) -> int:
    """The number of states. Raises `BrokenError` at the first state that breaks a promise."""
    first = World(submissions, cancels, redrives)
    seen, open_states = {first}, [first]
    while open_states:
        world = open_states.pop()
        _check_rest(protocol, world)
        for following in _steps(protocol, world):
            if following not in seen:
                seen.add(following)
                open_states.append(following)
    return len(seen)


def _check_rest(protocol: Protocol, world: World) -> None:
    """At rest no job waits. Callers that have not written may be killed, so only owed advances are waited for."""
    states = [job.state for job in world.jobs]
    if JobState.WAITING not in states or JobState.LIVE in states or world.record:
        return
    if any(process.kind == "advance" for process in world.processes):
        return
    leader = world.jobs[world.head.job] if world.head and world.head.job is not None else None
    if not (protocol.blocks and leader and leader.state is JobState.DEAD):
        raise BrokenError(f"a job waits at rest: {world}")


def _steps(protocol: Protocol, world: World) -> Iterator[World]:
    kinds = [process.kind for process in world.processes]
    if world.submissions:
        yield from _continued(protocol, world._replace(submissions=world.submissions - 1), Process("submit"))
    if len([kind for kind in kinds if kind in _ADVANCES]) < _ADVANCES_AT_ONCE:
        if world.record:
            yield from _continued(protocol, world._replace(record=False), Process("advance"))
        # If two other advances write, the second is refused. So it changes nothing.
        if "hint" not in kinds:
            yield from _continued(protocol, world, Process("hint"))
    for index, job in enumerate(world.jobs):
        yield from _ends(world, index, job)
        if job.state is JobState.DEAD and world.redrives:
            yield from _continued(protocol, world._replace(redrives=world.redrives - 1), Process("redrive", index))
    if world.head and world.head.idle:
        yield _written(protocol, world, head=None)
    for process in dict.fromkeys(world.processes):
        rest = list(world.processes)
        rest.remove(process)
        yield from _continued(protocol, world._replace(processes=tuple(rest)), process)


def _ends(world: World, index: int, job: Job) -> Iterator[World]:
    """A worker ends the job, or a caller cancels it."""
    if job.state is JobState.LIVE:
        for state in (JobState.SUCCEEDED, JobState.DEAD):
            yield world._replace(jobs=_with(world.jobs, index, job._replace(state=state)), record=True)
    if job.state in (JobState.LIVE, JobState.WAITING) and world.cancels:
        cancelled = job._replace(state=JobState.CANCELLED)
        yield world._replace(jobs=_with(world.jobs, index, cancelled), record=True, cancels=world.cancels - 1)


def _continued(protocol: Protocol, world: World, process: Process) -> Iterator[World]:
    """The next step of a process, which is not among those of `world`."""
    request = _next_request(protocol, process)
    if isinstance(request, Read):
        process = process._replace(
            answers=(*process.answers, _item(world, request)),
            head_unchanged=process.head_unchanged or request.item == "head",
            tail_unchanged=process.tail_unchanged or request.item == "tail",
        )
        yield _with_process(world, process) if _next_request(protocol, process) else world
    elif request and not _accepted(world, process, request):
        yield _anew(world, process)
    elif request:
        written = _applied(protocol, world, request)
        yield _anew(written, process) if request.again else written
        if request.may_be_lost:
            yield world


def _anew(world: World, process: Process) -> World:
    """The process begins anew: at once, later, or never if it was killed."""
    match process.kind:
        case "submit":
            return world._replace(submissions=world.submissions + 1)
        case "redrive":
            return world._replace(redrives=world.redrives + 1)
        case "advance":
            return world._replace(record=True)
    return world


@functools.cache
def _next_request(protocol: Protocol, process: Process) -> Read | Write | None:
    """None if the process has ended."""
    match process.kind, process.job:
        case "submit", _:
            caller = protocol.enter(None, None)
        case "redrive", int(job):
            caller = protocol.redrive(job)
        case _:
            caller = protocol.advance()
    try:
        request = next(caller)
        for answer in process.answers:
            request = caller.send(answer)
    except StopIteration:
        return None
    return request


def _item(world: World, read: Read) -> object:
    match read.item:
        case "head":
            return world.head
        case "tail":
            return world.tail
        case "place":
            return dict(world.places).get(read.number)
    return world.jobs[read.number]


def _accepted(world: World, process: Process, write: Write) -> bool:
    index, was, _ = write.job or (None, None, None)
    return _unchanged(process, write) and (index is None or was is None or world.jobs[index].state is was)


def _unchanged(process: Process, write: Write) -> bool:
    names = [name for name, _ in write.items]
    return (process.head_unchanged or "head" not in names) and (process.tail_unchanged or "tail" not in names)


def _applied(protocol: Protocol, world: World, write: Write) -> World:
    """The world after a write that is accepted."""
    changed: dict[str, Any] = dict(write.items)
    places = frozenset(place for place in world.places if place[0] not in write.passed)
    jobs = world.jobs
    if write.job is not None:
        index, was, job = write.job
        _check_job(world, index, was, job)
        index = len(jobs) if index is None else index
        jobs = _with(jobs, index, job)
        if changed.get("head") and not changed["head"].idle and changed["head"].sequence == job.sequence:
            changed["head"] = changed["head"]._replace(job=index)
        if write.place is not None:
            places |= {(write.place, index)}
    # The record of an entry. That of a turn advances no group.
    record = world.record or (write.place is not None and protocol.entry_advances)
    return _written(protocol, world._replace(places=places, jobs=jobs, record=record), **changed)


def _check_job(world: World, index: int | None, was: JobState | None, job: Job) -> None:
    """Check a job that is about to be written: a new one, one whose turn comes, or one that is redriven."""
    others = [other for number, other in enumerate(world.jobs) if number != index]
    before = None if index is None else world.jobs[index]
    taken = {other.sequence for other in others if other.state not in _ENDED} | {place for place, _ in world.places}
    enters = before is None or (was is JobState.DEAD and before.sequence != job.sequence)
    if enters and any(job.sequence <= sequence for sequence in taken):
        raise BrokenError(f"a position is used again: {world}")
    if job.state is not JobState.LIVE:
        return
    if any(other.state is JobState.LIVE for other in others):
        raise BrokenError(f"two jobs are live: {world}")
    if any(other.state is JobState.WAITING and other.sequence < job.sequence for other in others):
        raise BrokenError(f"a job overtakes another: {world}")
    if before and before.state in _ENDED and was is not JobState.DEAD:
        raise BrokenError(f"a job that has ended runs: {world}")


def _written(protocol: Protocol, world: World, **items: Any) -> World:
    """The world with these items. What was read of them before has changed, so writes that rely on it are refused."""
    kept = []
    for earlier in world.processes:
        process = earlier._replace(
            head_unchanged=earlier.head_unchanged and "head" not in items,
            tail_unchanged=earlier.tail_unchanged and "tail" not in items,
        )
        request = _next_request(protocol, process)
        if "head" in items and process.kind == "hint":
            # Its write will be refused, and no stream record waits for it.
            continue
        if isinstance(request, Write) and not _unchanged(process, request):
            world = _anew(world, process)
        else:
            kept.append(process)
    return world._replace(processes=tuple(sorted(kept, key=hash)), **items)


def _with_process(world: World, process: Process) -> World:
    return world._replace(processes=tuple(sorted((*world.processes, process), key=hash)))


def _with(jobs: tuple[Job, ...], index: int, job: Job) -> tuple[Job, ...]:
    return (*jobs[:index], job, *jobs[index + 1 :])

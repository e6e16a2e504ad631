"""Jobs that wait for a slot of one limit: every history of a few jobs, their workers, `wake` and crashes.

The protocol, as the engine carries it out (`tidemill/application/waiting/release.py`):

- A worker enters the limit item. If that is full, it marks the item as having a line, parks the job, and then looks
  whether a slot came free meanwhile.
- A worker that has settled looks for the first parked job if the item is marked, gives its slot to that job in one
  write, and queues it in the next. If it finds none, it gives the slot back, and then looks once more.
- Wake looks at every marked item each minute. It takes the mark away when no job waits, and none can be on the way.

The index that finds parked jobs lags. So a search that finds none also reads the job that marked the item last.
Time is not modelled: a reservation may end at any moment, and the slot of a run as soon as its worker is dead.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

#: A slot of the limit: taken by the run of a job, or reserved for a job.
Entry = tuple[str, int]
#: What a worker or wake does next. The words are in `_steps_of` and `_worked`.
Task = tuple[str, int | None, int | None]

QUEUED, RUNNING, PARKED, DONE = "queued", "running", "parked", "done"


@dataclass(frozen=True, slots=True)
class State:
    jobs: tuple[str, ...]
    #: What the worker of each job does next; None if no worker has it.
    workers: tuple[Task | None, ...]
    #: How often each job was claimed.
    claims: tuple[int, ...]
    held: frozenset[Entry] = frozenset()
    marked: bool = False
    #: The job that marked the item last.
    last: int | None = None
    #: The parked jobs that the index shows.
    index: frozenset[int] = frozenset()
    wake: Task | None = None
    kills: int = 0


@dataclass(frozen=True, slots=True)
class Protocol:
    """The engine's. Each flag leaves out one step, for the tests that must notice."""

    slots: int = 1
    marks_before_it_parks: bool = True
    looks_after_it_parks: bool = True
    reads_the_last: bool = True
    looks_after_it_leaves: bool = True
    hands_the_slot_over: bool = True
    waits_before_it_clears: bool = True


#: What happens without a worker: an index that lags, faults, and the passing of time.
CALM: Final = frozenset[str]()
LAGGING: Final = frozenset({"lag"})
STORMY: Final = frozenset({"lag", "kill", "expire", "wake"})


def steps(state: State, protocol: Protocol, allowed: frozenset[str]) -> Iterator[State]:
    for job in range(len(state.jobs)):
        yield from _steps_of_worker(state, protocol, allowed, job)
    if state.wake:
        for after, following in _steps_of(state, protocol, state.wake, None):
            yield replace(after, wake=following)
    elif "wake" in allowed and state.marked:
        yield replace(state, wake=("look", None, None))
    if "lag" in allowed:
        for job in state.index ^ _parked(state):
            yield replace(state, index=state.index ^ {job})
    if "expire" in allowed:
        for kind, job in state.held:
            if kind == "reserved" or state.workers[job] is None:
                yield replace(state, held=state.held - {(kind, job)})


def _steps_of_worker(state: State, protocol: Protocol, allowed: frozenset[str], job: int) -> Iterator[State]:
    task = state.workers[job]
    if task is not None:
        for after, following in _steps_of(state, protocol, task, job):
            yield _working(after, job, following)
        if "kill" in allowed and state.kills:
            yield replace(_working(state, job, None), kills=state.kills - 1)
    elif state.jobs[job] in {QUEUED, RUNNING}:
        # Its message arrives. A running job without a worker has a dead one, whose lease is over.
        claimed = _count_claim(_becomes(state, job, RUNNING), job)
        yield _working(claimed, job, ("enter", None, None))


def _parked(state: State) -> frozenset[int]:
    return frozenset(job for job, at in enumerate(state.jobs) if at == PARKED)


def _steps_of(state: State, protocol: Protocol, task: Task, me: int | None) -> list[tuple[State, Task | None]]:
    """Each pair: the state after the next call of this worker, or of wake, and what comes then."""
    word, giving, found = task
    if me is not None and word in {"enter", "mark", "park", "run", "settle"}:
        return [_worked(state, protocol, word, me)]
    match word:
        case "look":
            after = _looked(state, protocol, giving)
        case "find":
            after = _searched(state, protocol, task, me)
        case "leave" if giving is not None:
            after = _left(state, giving), ("look", None, None) if protocol.looks_after_it_leaves else None
        case "reserve" if found is not None:
            after = _reserved(state, protocol, giving, found)
        case "release" if found is not None:
            after = _released(state, found)
        case _:
            after = _cleared(state, protocol, found), None
    return [after]


def _released(state: State, found: int) -> tuple[State, Task | None]:
    if state.jobs[found] == DONE:
        return replace(state, held=state.held - {("reserved", found)}), ("look", None, None)
    return _becomes(state, found, QUEUED) if state.jobs[found] == PARKED else state, None


def _cleared(state: State, protocol: Protocol, last: int | None) -> State:
    on_the_way = any(worker and worker[0] == "park" for worker in state.workers)
    stays = state.last != last or (protocol.waits_before_it_clears and (on_the_way or PARKED in state.jobs))
    return replace(state, marked=state.marked and stays)


def _worked(state: State, protocol: Protocol, word: str, me: int) -> tuple[State, Task | None]:
    match word:
        case "enter":
            if entered := _entered(state, protocol, me):
                return entered, ("run", None, None)
            return state, ("mark" if protocol.marks_before_it_parks else "park", None, None)
        case "mark":
            return replace(state, marked=True, last=me), ("park", None, None)
        case "park":
            return _becomes(state, me, PARKED), ("look", None, None) if protocol.looks_after_it_parks else None
        case "run":
            return state, ("settle", None, None)
    return _becomes(state, me, DONE), ("look", me, None)


def _looked(state: State, protocol: Protocol, giving: int | None) -> tuple[State, Task | None]:
    if giving is not None and not state.marked:
        return _left(state, giving), None
    if giving is not None or len(state.held) < protocol.slots or any(kind == "reserved" for kind, _ in state.held):
        return state, ("find", giving, state.last)
    return state, None


def _searched(state: State, protocol: Protocol, task: Task, me: int | None) -> tuple[State, Task | None]:
    _, giving, last = task
    waiting = {job for job in state.index if state.jobs[job] == PARKED}
    if not waiting and protocol.reads_the_last and last is not None and state.jobs[last] == PARKED:
        waiting = {last}
    if me is not None and giving is None and state.jobs[me] == PARKED:
        waiting |= {me}
    if waiting:
        return state, ("reserve", giving, min(waiting))
    if giving is not None:
        return state, ("leave", giving, None)
    return state, ("clear", None, last) if me is None else None


def _reserved(state: State, protocol: Protocol, giving: int | None, found: int) -> tuple[State, Task | None]:
    after = _left(state, giving) if giving is not None else state
    room = len(after.held) < protocol.slots or ("reserved", found) in after.held
    if protocol.hands_the_slot_over and room:
        after = replace(after, held=after.held | {("reserved", found)})
    return after, ("release", giving, found) if room else None


def _entered(state: State, protocol: Protocol, job: int) -> State | None:
    """A job that was released takes its reservation, or else one of another job that has not come yet."""
    reservations = sorted(entry for entry in state.held if entry[0] == "reserved")
    own = [entry for entry in reservations if entry[1] == job]
    released_before = state.claims[job] > 1
    taken = (own or (reservations if released_before and len(state.held) >= protocol.slots else []))[:1]
    if len(state.held) - len(taken) >= protocol.slots:
        return None
    return replace(state, held=state.held - {*taken} | {("run", job)})


def _left(state: State, job: int) -> State:
    return replace(state, held=state.held - {("run", job)})


def _becomes(state: State, job: int, value: str) -> State:
    return replace(state, jobs=(*state.jobs[:job], value, *state.jobs[job + 1 :]))


def _working(state: State, job: int, task: Task | None) -> State:
    return replace(state, workers=(*state.workers[:job], task, *state.workers[job + 1 :]))


def _count_claim(state: State, job: int) -> State:
    return replace(state, claims=(*state.claims[:job], min(state.claims[job] + 1, 3), *state.claims[job + 1 :]))


def explore(jobs: int, protocol: Protocol, allowed: frozenset[str], *, kills: int = 0) -> dict[State, list[State]]:
    """Every state that can be reached, with the states that can follow it."""
    begin = State(jobs=(QUEUED,) * jobs, workers=(None,) * jobs, claims=(0,) * jobs, kills=kills)
    graph: dict[State, list[State]] = {}
    todo = [begin]
    while todo:
        state = todo.pop()
        if state not in graph:
            following = steps(state, protocol, allowed)
            if "lag" not in allowed:
                following = (replace(after, index=_parked(after)) for after in following)
            graph[state] = list(dict.fromkeys(following))
            todo += graph[state]
    return graph


def stuck(graph: dict[State, list[State]]) -> list[State]:
    """The states from which not every job can end any more."""
    before: dict[State, list[State]] = {state: [] for state in graph}
    for state, following in graph.items():
        for after in following:
            before[after].append(state)
    todo = [state for state in graph if set(state.jobs) == {DONE}]
    good = set(todo)
    while todo:
        for earlier in before[todo.pop()]:
            if earlier not in good:
                good.add(earlier)
                todo.append(earlier)
    return [state for state in graph if state not in good]


def too_many(states: Iterable[State], protocol: Protocol) -> list[State]:
    """The states in which more workers run than there are slots."""
    return [
        state
        for state in states
        if sum(worker is not None and worker[0] == "run" for worker in state.workers) > protocol.slots
    ]

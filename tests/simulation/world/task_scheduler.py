"""Time, and whose turn it is: one heap of wake-ups, one source of chance, and nothing else that decides.

Whatever runs is a `Task`, a greenlet of ordinary synchronous code, and belongs to a `Process`: what can be killed or
frozen as a whole. The hub below is the only place that resumes a task, so an order of events is a function of the seed.
"""

import heapq
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final

import greenlet  # type: ignore[import-untyped]

#: 2045-03-04T05:06:07Z in milliseconds: far ahead, so that no real clock is mistaken for this one.
BEGINNING_MS: Final = 2_372_216_767_000


class Killed(BaseException):
    """Raised in a task whose process has ended, wherever it waits. What it does on its way out reaches nothing."""


class StalledError(AssertionError):
    """The simulated world did not come to rest within its steps: something spins."""


class Process:
    """An execution environment, or a person's tool: what its tasks share, and what ends with it."""

    def __init__(self, name: str, *, environment: dict[str, str] | None = None, skew_ms: int = 0) -> None:
        self.name = name
        self.environment = environment or {}
        #: How far its clock is off.
        self.skew_ms = skew_ms
        self.alive = True
        self.frozen = False
        #: What its composition root has built: the globals of a warm function.
        self.built: dict[Any, Any] = {}
        self.tasks: list[Task] = []
        self.held_back: list[tuple[Task, object, Any]] = []


class Task:
    """One thread of a process."""

    def __init__(self, process: Process, run: Callable[[], None]) -> None:
        self.process = process
        self.greenlet = greenlet.greenlet(run)
        #: What it waits for; a wake-up for anything else comes too late.
        self.awaits: object | None = None


class Scheduler:
    """The hub of one simulated world."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now_ms = BEGINNING_MS
        self.steps = 0
        #: What a check has found, in whichever task: the hub raises it, since no code under test may swallow it.
        self.failure: Exception | None = None
        #: Names of the processes that were killed, or frozen with threads at work.
        self.interrupted: set[str] = set()
        self._heap: list[tuple[int, float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self._tasks: list[Task] = []
        self._current: Task | None = None

    @property
    def current(self) -> Task | None:
        """The task that runs; None in the hub and outside the simulation."""
        return self._current

    def at(self, when_ms: int, call: Callable[..., None], *arguments: Any) -> None:
        """Have the hub call this then. What falls on one millisecond comes in an order that chance decides."""
        self._number += 1
        heapq.heappush(self._heap, (max(when_ms, self.now_ms), self.random.random(), self._number, call, arguments))

    def after(self, delay_ms: int, call: Callable[..., None], *arguments: Any) -> None:
        self.at(self.now_ms + delay_ms, call, *arguments)

    def fail(self, failure: Exception) -> None:
        """Have the hub raise this at the end of the step. The first failure wins."""
        self.failure = self.failure or failure

    def spawn(self, process: Process, run: Callable[[], None], *, delay_ms: int = 0) -> Task:
        task = Task(process, run)
        process.tasks.append(task)
        self._tasks.append(task)
        task.awaits = token = object()
        self.after(delay_ms, self._wake, task, token, None)
        return task

    def run(self, *, until_ms: int, most_steps: int, over: Callable[[], bool] = lambda: False) -> None:
        """Until that moment, or until nothing is to happen before it, or until it is `over`."""
        while self._heap and self._heap[0][0] <= until_ms and not over():
            self.now_ms, _, _, call, arguments = heapq.heappop(self._heap)
            call(*arguments)
            if self.failure:
                raise self.failure
            self.steps += 1
            if self.steps > most_steps:
                raise StalledError(f"{most_steps} steps were not enough")
        if not over():
            self.now_ms = max(self.now_ms, until_ms)

    def end(self) -> None:
        """The world is over: nothing is left for the garbage collector to unwind in the middle of the next one."""
        for task in self._tasks:
            task.process.alive = False
            self._unwind(task.process)

    def park(self, token: object) -> Any:
        """Give up the turn until `wake(token)`; what that brings is returned."""
        task = self._running()
        task.awaits = token
        value = task.greenlet.parent.switch()
        if not task.process.alive:
            raise Killed
        return value

    def wake(self, task: Task, token: object, value: Any = None, *, delay_ms: int = 0) -> None:
        self.after(delay_ms, self._wake, task, token, value)

    def sleep(self, delay_ms: int) -> None:
        task, token = self._running(), object()
        self.wake(task, token, delay_ms=max(delay_ms, 0))
        self.park(token)

    def kill(self, process: Process) -> None:
        """At once nothing of it reaches the world any more; its tasks unwind in the hub's next step."""
        if process.alive:
            process.alive = False
            self.interrupted.add(process.name)
            self.at(self.now_ms, self._unwind, process)

    def freeze(self, process: Process) -> None:
        process.frozen = True

    def thaw(self, process: Process) -> None:
        """What fell due while it was frozen falls due now."""
        process.frozen = False
        held, process.held_back = process.held_back, []
        for task, token, value in held:
            self.at(self.now_ms, self._wake, task, token, value)

    def _running(self) -> Task:
        if self._current is None:
            raise AssertionError("only a task can wait")
        if not self._current.process.alive:
            raise Killed
        return self._current

    def _wake(self, task: Task, token: object, value: Any) -> None:
        if task.greenlet.dead or task.awaits is not token:
            return
        if task.process.frozen and task.process.alive:
            task.process.held_back.append((task, token, value))
            return
        task.awaits = None
        self._switch(task, lambda: task.greenlet.switch(*([value] if task.greenlet else [])))

    def _unwind(self, process: Process) -> None:
        # Whoever ends leaves the list.
        while process.tasks:
            task = process.tasks.pop(0)
            task.awaits = None
            if task.greenlet:
                self._switch(task, partial(task.greenlet.throw, Killed))

    def _switch(self, task: Task, resume: Callable[[], object]) -> None:
        task.greenlet.parent = greenlet.getcurrent()
        self._current = task
        try:
            resume()
        except Killed:
            pass
        finally:
            self._current = None
        if task.greenlet.dead and task in task.process.tasks:
            task.process.tasks.remove(task)

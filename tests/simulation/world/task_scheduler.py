"""Virtual time and the order of tasks: one heap of wake-ups and one source of randomness decide everything.

Code runs in a `Task`, a greenlet of ordinary synchronous code. A task belongs to a `Process`, which can be killed or
frozen as a whole. Only the hub below resumes a task, so the order of events is a function of the seed.
"""

import heapq
from collections.abc import Callable
from random import Random
from typing import Any, Final, NoReturn

import greenlet  # type: ignore[import-untyped]

#: 2045-03-04T05:06:07Z in milliseconds: far ahead, so that no real clock is mistaken for this one.
BEGINNING_MS: Final = 2_372_216_767_000


class Killed(BaseException):
    """Raised where a task waits when its process has ended. While it unwinds, its calls have no effect."""


class StalledError(AssertionError):
    """The world did not come to rest within the allowed steps, so something loops."""


class Process:
    """A Lambda execution environment or a program: the state that its tasks share and that ends with it."""

    def __init__(self, name: str, *, environment: dict[str, str] | None = None, skew_ms: int = 0) -> None:
        self.name = name
        self.environment = environment or {}
        #: Skew of its clock.
        self.skew_ms = skew_ms
        self.alive = True
        #: Whether it ended itself.
        self.exited = False
        self.frozen = False
        self.invocations = 0
        #: What a handler did to it: in which invocation it left a variable, and whether it closed the standard streams.
        self.left_in: int | None = None
        self.streams_closed = False
        #: Cached values of its composition root: the globals of a warm function.
        self.built: dict[Any, Any] = {}
        self.tasks: list[Task] = []
        self.held_back: list[tuple[Task, object, Any]] = []


class Task:
    """One thread of a process."""

    def __init__(self, process: Process, run: Callable[[], None]) -> None:
        self.process = process
        self.greenlet = greenlet.greenlet(run)
        #: The token that it waits for. A wake-up with another token is ignored.
        self.awaits: object | None = None


class Scheduler:
    """The hub of one simulated world."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now_ms = BEGINNING_MS
        self.steps = 0
        #: The first failure that a check found. The hub raises it, so that the code under test cannot catch it.
        self.failure: Exception | None = None
        #: Names of the processes that were killed, or frozen while threads still ran.
        self.interrupted: set[str] = set()
        self._heap: list[tuple[int, float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        #: Those that have not ended, in the order in which they began.
        self._tasks: dict[Task, None] = {}
        self._current: Task | None = None
        #: In the hub, the task for whose call AWS acts.
        self.acting_for: Task | None = None

    @property
    def current(self) -> Task | None:
        """The task that runs; None in the hub and outside the simulation."""
        return self._current

    def at(self, when_ms: int, call: Callable[..., None], *arguments: Any) -> None:
        """Have the hub call this at that time. Calls in one millisecond run in random order."""
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
        self._tasks[task] = None
        task.awaits = token = object()
        self.after(delay_ms, self._wake, task, token, None)
        return task

    def run(self, *, until_ms: int, most_steps: int, over: Callable[[], bool] = lambda: False) -> None:
        """Run until that time, until no call is due before it, or until `over` is true."""
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
        """Unwind all tasks, so that the garbage collector does not unwind them during the next world."""
        for task in list(self._tasks):
            task.process.alive = False
            self._unwind(task.process)

    def on_behalf_of(self, task: Task, call: Callable[[], Any]) -> Any:
        """From the hub: call what AWS does for a call of the task, which may have died since."""
        self.acting_for = task
        try:
            return call()
        finally:
            self.acting_for = None

    def park(self, token: object) -> Any:
        """Wait until `wake(token)`, and return its value."""
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
        """End the process: its calls have no effect from now on, and its tasks unwind in the next step of the hub."""
        if process.alive:
            process.alive = False
            self.interrupted.add(process.name)
            self.at(self.now_ms, self._unwind, process)

    def exit(self) -> NoReturn:
        """From a task: end its process, as `os._exit` does. Unlike a kill, this excuses nothing left undone."""
        process = self._running().process
        process.alive, process.exited = False, True
        self.at(self.now_ms, self._unwind, process)
        raise Killed

    def freeze(self, process: Process) -> None:
        process.frozen = True

    def thaw(self, process: Process) -> None:
        """Resume the process. Wake-ups that came due while it was frozen run now."""
        process.frozen = False
        held, process.held_back = process.held_back, []
        for task, token, value in held:
            self.at(self.now_ms, self._wake, task, token, value)

    def _running(self) -> Task:
        if self._current is None:
            raise AssertionError("only a task can wait; call this from a spawned task")
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
        # The first switch starts the task, which takes no value.
        self._switch(task, task.greenlet.switch, *((value,) if task.greenlet else ()))

    def _unwind(self, process: Process) -> None:
        # A task that ends removes itself from the list.
        while process.tasks:
            task = process.tasks.pop(0)
            self._tasks.pop(task, None)
            task.awaits = None
            if task.greenlet:
                self._switch(task, task.greenlet.throw, Killed)

    def _switch(self, task: Task, resume: Callable[..., object], *arguments: object) -> None:
        task.greenlet.parent = greenlet.getcurrent()
        self._current = task
        try:
            resume(*arguments)
        except Killed:
            pass
        finally:
            self._current = None
        if task.greenlet.dead and task in task.process.tasks:
            task.process.tasks.remove(task)
            del self._tasks[task]

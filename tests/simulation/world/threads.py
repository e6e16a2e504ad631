"""Threads, locks and pools for the code under test, made of tasks, so that the seed decides their order."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION
from typing import Any, NamedTuple, Self

from tests.simulation.world.task_scheduler import Killed, Scheduler, Task


class DoneAndNotDone(NamedTuple):
    done: set["Future"]
    not_done: set["Future"]


class Future:
    """The part of `concurrent.futures.Future` that our code uses."""

    def __init__(self, threads: "Threads") -> None:
        self._threads = threads
        self._finished = False
        self._value: Any = None
        self._error: BaseException | None = None
        self.watchers: list[Callable[[], None]] = []

    def done(self) -> bool:
        return self._finished

    def result(self, timeout: float | None = None) -> Any:
        self._threads.wait([self], timeout=timeout)
        if not self._finished:
            raise TimeoutError
        if self._error:
            raise self._error
        return self._value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._threads.wait([self], timeout=timeout)
        if not self._finished:
            raise TimeoutError
        return self._error

    def add_done_callback(self, call: Callable[["Future"], None]) -> None:
        if self._finished:
            call(self)
        else:
            self.watchers.append(lambda: call(self))

    def settle(self, value: Any, error: BaseException | None) -> None:
        self._finished, self._value, self._error = True, value, error
        for watcher in list(self.watchers):
            watcher()


class Threads:
    """Makes the replacements for `threading` and `concurrent.futures` in the modules under test."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    def wait(
        self, fs: Iterable[Future], timeout: float | None = None, return_when: str = ALL_COMPLETED
    ) -> DoneAndNotDone:
        futures = list(fs)
        task, token = self._task(), object()

        def enough() -> bool:
            finished = sum(future.done() for future in futures)
            if return_when == FIRST_COMPLETED:
                return finished > 0 or not futures
            if return_when == FIRST_EXCEPTION and any(future.done() and future.exception() for future in futures):
                return True
            return finished == len(futures)

        def look() -> None:
            if enough():
                self.scheduler.wake(task, token)

        if not enough():
            for future in futures:
                future.watchers.append(look)
            if timeout is not None:
                self.scheduler.wake(task, token, delay_ms=_milliseconds(timeout))
            self.scheduler.park(token)
            for future in futures:
                future.watchers.remove(look)
        done = {future for future in futures if future.done()}
        return DoneAndNotDone(done, set(futures) - done)

    def as_completed(self, fs: Iterable[Future], timeout: float | None = None) -> Iterator[Future]:
        left = list(fs)
        while left:
            self.wait(left, timeout, FIRST_COMPLETED)
            for future in [future for future in left if future.done()]:
                left.remove(future)
                yield future

    def pool(self, max_workers: int | None = None, **_named: Any) -> "Pool":
        return Pool(self, max_workers or 8)

    def lock(self) -> "Lock":
        return Lock(self.scheduler)

    def event(self) -> "Event":
        return Event(self.scheduler)

    def sleep(self, seconds: float) -> None:
        self.scheduler.sleep(_milliseconds(seconds))

    def _task(self) -> Task:
        task = self.scheduler.current
        if task is None:
            raise AssertionError("only a task can use threads")
        return task


class Pool:
    """`ThreadPoolExecutor`."""

    def __init__(self, threads: Threads, max_workers: int) -> None:
        self._threads = threads
        self._idle = max_workers
        self._queue: list[tuple[Future, Callable[[], Any]]] = []
        self._futures: list[Future] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.shutdown()

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future:
        future = Future(self._threads)
        self._futures.append(future)
        self._queue.append((future, lambda: call(*arguments, **named)))
        self._start()
        return future

    def map(self, call: Callable[..., Any], *iterables: Iterable[Any], timeout: float | None = None) -> Iterator[Any]:
        futures = [self.submit(call, *arguments) for arguments in zip(*iterables, strict=False)]
        return (future.result(timeout) for future in futures)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            for future, _ in self._queue:
                self._futures.remove(future)
            self._queue.clear()
        if wait:
            self._threads.wait(self._futures)

    def _start(self) -> None:
        if self._idle and self._queue:
            self._idle -= 1
            future, call = self._queue.pop(0)
            task = self._threads.scheduler.current
            if task is None:
                raise AssertionError("only a task can use a pool")
            self._threads.scheduler.spawn(task.process, lambda: self._run(future, call))

    def _run(self, future: Future, call: Callable[[], Any]) -> None:
        try:
            future.settle(call(), None)
        except Killed:
            raise
        except BaseException as error:  # noqa: BLE001 - as a pool does
            future.settle(None, error)
        self._idle += 1
        self._start()


class Lock:
    """`threading.Lock`. The task that has waited longest is next."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._locked = False
        self._queue: list[tuple[Task, object]] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        task = self._scheduler.current
        if task is None:
            return True  # outside the world, with one thread only
        if self._locked:
            if not blocking:
                return False
            token = object()
            self._queue.append((task, token))
            self._scheduler.park(token)
            return True  # handed over, still locked
        self._locked = True
        return True

    def release(self) -> None:
        while self._queue:
            task, token = self._queue.pop(0)
            if not task.greenlet.dead and task.process.alive:
                self._scheduler.wake(task, token)
                return
        self._locked = False

    def locked(self) -> bool:
        return self._locked

    __enter__ = acquire

    def __exit__(self, *_error: object) -> None:
        self.release()


class Event:
    """`threading.Event`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._set = False
        self._waiting: list[tuple[Task, object]] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        waiting, self._waiting = self._waiting, []
        for task, token in waiting:
            self._scheduler.wake(task, token)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        task, token = self._scheduler.current, object()
        if not self._set and task is not None:
            self._waiting.append((task, token))
            if timeout is not None:
                self._scheduler.wake(task, token, delay_ms=_milliseconds(timeout))
            self._scheduler.park(token)
        return self._set


def _milliseconds(seconds: float) -> int:
    """Rounded up, so that a wait is never shorter than requested."""
    return max(-int(-seconds * 1000 // 1), 0)

"""The open-loop load: when each job is due, and a generator that submits it then.

A job is due at its time whether or not the earlier ones were submitted by then. Latencies count from that time, so a
system that is slow to accept jobs shows it. Imports the standard library only: each system's packages run it.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

#: Submissions that may be under way at once.
THREADS: Final = 16

#: Submits the job with this number. One of these for each thread.
Submit = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Due:
    number: int
    #: In seconds since 1970.
    at: float


@dataclass(frozen=True, slots=True)
class Load:
    #: In seconds since 1970, when the system had accepted each job.
    accepted: dict[int, float]
    #: The first error of a submission, or an empty text.
    error: str


def evenly(first: int, *, rate: float, seconds: float, start: float) -> list[Due]:
    """`rate` jobs a second from `start` on, with the numbers from `first` on."""
    return [Due(first + index, start + index / rate) for index in range(round(rate * seconds))]


def at_once(first: int, *, jobs: int, start: float) -> list[Due]:
    return [Due(first + index, start) for index in range(jobs)]


def generate(
    plan: Sequence[Due],
    submit: Submit,
    *,
    threads: int = THREADS,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Load:
    """Submit each job when it is due, or as soon as a thread is free. A submission that fails is not repeated."""
    accepted: dict[int, float] = {}
    errors: list[str] = []
    left = iter(plan)
    turn = threading.Lock()

    def run() -> None:
        while True:
            with turn:
                due = next(left, None)
            if due is None:
                return
            if (early := due.at - clock()) > 0:
                sleep(early)
            try:
                submit(due.number)
            except Exception as error:  # noqa: BLE001 - a refused job is a figure, not the end of the load
                errors.append(f"{type(error).__name__}: {error}")
            else:
                accepted[due.number] = clock()

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return Load(accepted, errors[0] if errors else "")

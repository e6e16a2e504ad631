"""Run many seeds and print the progress and the result."""

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from tests.simulation.run_one_seed import Result, simulate
from tests.simulation.world.faults import Fault

#: Every kind of fault must occur within so many seeds.
COVERING_SEEDS: Final = 1000
_PROGRESS_EVERY_SECONDS: Final = 5.0
_MOST_STORIES: Final = 3
_MOST_SEEDS_NAMED: Final = 8

#: Plays one seed.
Simulate = Callable[[int], Result]


class Tally:
    """Counts the results of the seeds so far."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._began = self._reported_at = time.monotonic()
        self._done = self._jobs = self._calls = 0
        self._faults: Counter[Fault] = Counter()
        self._broken: dict[str, list[int]] = {}
        self._slowest = 0.0

    def add(self, result: Result) -> None:
        """Print the progress from time to time, and the trace of the first seeds that fail."""
        self._done += 1
        self._jobs += result.jobs
        self._calls += result.calls
        self._faults += result.faults
        self._slowest = max(self._slowest, result.rested_at)
        if result.violation:
            self._broken.setdefault(result.violation.check, []).append(result.seed)
            _print_violation(result, whole=self.violations <= _MOST_STORIES)
        if time.monotonic() - self._reported_at > _PROGRESS_EVERY_SECONDS:
            self._reported_at = time.monotonic()
            _print(f"{self._done} of {self._count} seeds, {self._speed:.1f} a second, {self.violations} failed")

    @property
    def violations(self) -> int:
        return sum(map(len, self._broken.values()))

    @property
    def missing(self) -> list[Fault]:
        """Kinds of fault that should have occurred and did not."""
        return [fault for fault in Fault if not self._faults[fault]] if self._count >= COVERING_SEEDS else []

    def print_faults(self) -> None:
        _print("\nfaults injected")
        for fault in Fault:
            _print(f"  {self._faults[fault]:>9,}  {fault}")
        for fault in self.missing:
            _print(f"this fault never occurred: {fault}")

    def print_summary(self) -> None:
        seconds = time.monotonic() - self._began
        _print(f"\n{self._done:,} seeds in {seconds:.1f} s, {self._speed:.1f} a second")
        _print(f"{self._jobs:,} jobs, {self._calls:,} calls to AWS, {self._faults.total():,} faults")
        _print(f"the slowest seed used {self._slowest:.0%} of its time bound")
        _print(f"{self.violations} seeds failed a check")
        for check, seeds in sorted(self._broken.items(), key=lambda broken: -len(broken[1])):
            _print(f"  {len(seeds):>6}  {check}: seeds {', '.join(map(str, seeds[:_MOST_SEEDS_NAMED]))}")

    @property
    def _speed(self) -> float:
        return self._done / max(time.monotonic() - self._began, 0.001)


def run_seeds(first: int, count: int, *, processes: int) -> int:
    """0 if every check held and, given enough seeds, every kind of fault occurred; else 1."""
    tally = _tally(simulate, range(first, first + count), processes)
    tally.print_faults()
    tally.print_summary()
    return 1 if tally.violations or tally.missing else 0


def run_small_seeds(simulate: Simulate, first: int, count: int, *, processes: int) -> int:
    """The same for a scenario that plays one part of the protocol, and not every kind of fault."""
    tally = _tally(simulate, range(first, first + count), processes)
    tally.print_summary()
    return 1 if tally.violations else 0


def _tally(simulate: Simulate, seeds: range, processes: int) -> Tally:
    tally = Tally(len(seeds))
    for result in _results(simulate, seeds, processes):
        tally.add(result)
        if len(seeds) == 1:
            _print(f"trace {result.hash}")
    return tally


def _results(simulate: Simulate, seeds: range, processes: int) -> Iterator[Result]:
    if processes == 1 or len(seeds) == 1:
        yield from map(simulate, seeds)
        return
    # Imported modules live as long as the process. Freezing them makes garbage collection faster.
    with ProcessPoolExecutor(processes, initializer=gc.freeze) as pool:
        yield from pool.map(simulate, seeds, chunksize=20)


def _print_violation(result: Result, *, whole: bool) -> None:
    violation = result.violation
    if violation:
        _print(f"\nseed {result.seed} fails the check: {violation.check}\n  {violation.what}\n  job: {violation.about}")
        if whole:
            _print(result.story)
        _print(f"to repeat it: --seed {result.seed} (with make: SEED={result.seed})\n")


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - output of a command

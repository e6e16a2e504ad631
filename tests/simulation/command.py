"""Runs many seeds, and says how it goes to a person at a terminal."""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from tests.simulation.simulate import Result, simulate
from tests.simulation.world.faults import Fault

#: Every kind of fault must come up in so many seeds.
COVERING_SEEDS: Final = 1000
_TELL_EVERY_SECONDS: Final = 5.0
_MOST_STORIES: Final = 3


def run_seeds(first: int, count: int, *, processes: int) -> int:
    """0 when every promise held, and every kind of fault came up if there were seeds enough."""
    began = told = time.monotonic()
    faults: Counter[Fault] = Counter()
    broken: list[Result] = []
    jobs = 0
    for done, result in enumerate(_results(range(first, first + count), processes), start=1):
        faults += result.faults
        jobs += result.jobs
        if result.violation:
            broken.append(result)
            if len(broken) <= _MOST_STORIES:
                _tell(result)
        if (now := time.monotonic()) - told > _TELL_EVERY_SECONDS:
            told = now
            _say(f"{done} of {count} seeds, {done / (now - began):.1f} a second, {len(broken)} violations")
        if count == 1:
            _say(f"trace {result.hash}")
    seconds = time.monotonic() - began
    _say(f"\n{count} seeds, {jobs} jobs in {seconds:.1f} s: {count / seconds:.1f} seeds a second")
    _say("\nfaults")
    for fault in Fault:
        _say(f"  {faults[fault]:>9}  {fault}")
    missing = [fault for fault in Fault if not faults[fault]] if count >= COVERING_SEEDS else []
    for fault in missing:
        _say(f"never came up: {fault}")
    _say(f"\n{len(broken)} violations")
    for check, number in Counter(result.violation.check for result in broken if result.violation).most_common():
        seeds = [result.seed for result in broken if result.violation and result.violation.check == check]
        _say(f"  {number:>6}  {check}: seeds {', '.join(map(str, seeds[:8]))}")
    return 1 if broken or missing else 0


def _results(seeds: range, processes: int) -> Iterator[Result]:
    if processes == 1:
        yield from map(simulate, seeds)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(simulate, seeds, chunksize=20)


def _tell(result: Result) -> None:
    violation = result.violation
    if violation:
        _say(f"\nseed {result.seed} breaks a promise: {violation.check}\n  {violation.what}\n  {violation.about}")
        _say(result.story)
        _say(f"again: python -m tests.simulation run --seed {result.seed}\n")


def _say(text: str) -> None:
    print(text, file=sys.stdout, flush=True)  # noqa: T201 - for a person


__all__ = ["COVERING_SEEDS", "run_seeds"]

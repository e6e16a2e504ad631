"""Simulate mutants, each in a process that is forked from this one before the engine is imported.

The third-party packages are imported once, in this process. A seed that takes too much processor time counts as a hang.
"""

import gc
import importlib
import os
import resource
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Final

from tests.simulation.mutants.apply import apply
from tests.simulation.mutants.generated.generate import GeneratedMutant

#: The slowest seed of the present code takes about a second.
_MOST_SECONDS_OF_A_SEED: Final = 20
_MOST_MEMORY_BYTES: Final = 4 * 2**30
_PRELOADED: Final = ("boto3", "pydantic", "greenlet", "aws_lambda_powertools.utilities.idempotency")


def simulate_mutants(
    mutants: Sequence[tuple[GeneratedMutant, Sequence[int]]], *, processes: int
) -> Iterator[tuple[GeneratedMutant, str | None]]:
    """Each mutant, given with its seeds, and what caught it, as they end. None if every seed passed."""
    preload()
    waiting = list(reversed(mutants))
    running: dict[int, tuple[GeneratedMutant, int]] = {}
    while waiting or running:
        while waiting and len(running) < processes:
            mutant, seeds = waiting.pop()
            read, write = os.pipe()
            if (pid := os.fork()) == 0:
                os.close(read)
                _run(mutant, seeds, write)
            os.close(write)
            running[pid] = mutant, read
        pid, status = os.wait()
        mutant, read = running.pop(pid)
        with os.fdopen(read, encoding="utf-8") as pipe:
            verdict = pipe.read()
        if status:
            verdict = f"its process ended with status {status}"
        yield mutant, verdict or None


def preload() -> None:
    """Import what every fork needs."""
    for name in _PRELOADED:
        importlib.import_module(name)


def _run(mutant: GeneratedMutant, seeds: Sequence[int], write: int) -> None:
    """In the child. It writes what caught the mutant, or nothing, and exits."""

    def end(verdict: str) -> None:
        os.write(write, " ".join(verdict.split())[:300].encode())
        os._exit(0)

    signal.signal(signal.SIGPROF, lambda *_: end("it does not come to an end"))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    try:
        apply(mutant)
        from tests.simulation.run_one_seed import simulate

        # Imported modules live as long as the process. Freezing them makes garbage collection faster.
        gc.freeze()
        for seed in seeds:
            signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS_OF_A_SEED)
            if (violation := simulate(seed).violation) is not None:
                end(f"seed {seed}: {violation.check}: {violation.what[-160:]}")
        end("")
    except BaseException as error:  # noqa: BLE001 - a mutant may break the import of the engine
        end(f"seed -1: it cannot be simulated: {traceback.format_exception_only(error)[-1].strip()}")

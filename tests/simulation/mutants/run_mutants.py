"""Run each mutant in a process of its own until a check fails."""

import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.simulation.mutants.apply import Mutant
from tests.simulation.mutants.catalogue import MUTANTS

_CODE = "import sys; from tests.simulation.mutants.run_one_mutant import main; sys.exit(main())"


def run_mutants(names: Sequence[str], *, seeds: int, processes: int) -> int:
    """0 if every mutant was caught, else 1. Raises `MutantError` if one cannot be applied."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    for mutant in chosen:
        mutant.checked()
    began = time.monotonic()
    caught = 0
    with ThreadPoolExecutor(processes) as pool:
        for mutant, verdict in zip(chosen, pool.map(lambda mutant: _verdict(mutant, seeds), chosen), strict=True):
            caught += verdict.startswith("caught")
            _print(f"{'ok    ' if verdict.startswith('caught') else 'MISSED'}  {mutant.name}: {verdict}")
    _print(f"\n{caught} of {len(chosen)} mutants caught in {time.monotonic() - began:.0f} s")
    return 0 if caught == len(chosen) else 1


def _verdict(mutant: Mutant, seeds: int) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", _CODE, mutant.name, str(seeds)], capture_output=True, text=True, check=False
    )
    return ran.stdout.strip().splitlines()[-1] if ran.returncode == 0 else f"the process failed: {ran.stderr[-400:]}"


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - output of a command

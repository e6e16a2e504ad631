"""`python -m tests.simulation run|mutants`: many seeds, one seed again, or the catalogue of mutants."""

import argparse
import os
import sys
from typing import Final

from tests.simulation.mutants.run_mutants import run_mutants
from tests.simulation.run_seeds import run_seeds

_SEEDS: Final = 2000
#: A mutant that is not caught by then is a hole in the simulator, or in its checks.
_SEEDS_OF_A_MUTANT: Final = 1000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one for each core")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="simulate seeds; exit 1 if one breaks a promise")
    run.add_argument("--seeds", type=int, help=f"how many (default: {_SEEDS})")
    run.add_argument("--seed", type=int, help="the first; without --seeds, only this one")
    mutants = commands.add_parser("mutants", help="break our own protocol; exit 1 if a mutant is not caught")
    mutants.add_argument(
        "--seeds", type=int, default=_SEEDS_OF_A_MUTANT, help="at most so many for each (default: %(default)s)"
    )
    mutants.add_argument("names", nargs="*", help="only these")
    asked = parser.parse_args()
    if asked.command == "mutants":
        return run_mutants(asked.names, seeds=asked.seeds, processes=asked.processes)
    count = asked.seeds or (_SEEDS if asked.seed is None else 1)
    return run_seeds(asked.seed or 0, count, processes=asked.processes)


if __name__ == "__main__":
    sys.exit(main())

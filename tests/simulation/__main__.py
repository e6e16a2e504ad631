"""`python -m tests.simulation run|mutants`: many seeds, one seed again, or the catalogue of mutants."""

import argparse
import sys

from tests.simulation.command import run_seeds
from tests.simulation.mutants.runner import run_mutants


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="simulate seeds; exit 1 if one breaks a promise")
    run.add_argument("--seeds", type=int, default=1000, help="how many (default: 1000)")
    run.add_argument("--seed", type=int, default=None, help="the first; alone, only this one, with its whole story")
    run.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    mutants = commands.add_parser("mutants", help="break our own protocol; exit 1 if a mutant is not caught")
    mutants.add_argument("--seeds", type=int, default=2000, help="at most so many for each (default: 2000)")
    mutants.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    mutants.add_argument("names", nargs="*", help="only these")
    asked = parser.parse_args()
    if asked.command == "mutants":
        return run_mutants(asked.names, seeds=asked.seeds, processes=asked.jobs)
    if asked.seed is not None and "--seeds" not in " ".join(sys.argv):
        asked.seeds = 1
    return run_seeds(asked.seed or 0, asked.seeds, processes=asked.jobs)


if __name__ == "__main__":
    sys.exit(main())

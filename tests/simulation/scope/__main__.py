"""`python -m tests.simulation.scope`: the small scope, whole, or the scenarios that are named."""

import argparse
import os
import sys

from tests.simulation.scope.run_scenarios import run_scope


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.scope", description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one for each core")
    parser.add_argument("--faults", type=int, help="in one schedule, at most (default: as each scenario has it)")
    parser.add_argument("names", nargs="*", help="only these scenarios")
    asked = parser.parse_args()
    return run_scope(asked.names, most_faults=asked.faults, processes=asked.processes)


if __name__ == "__main__":
    sys.exit(main())

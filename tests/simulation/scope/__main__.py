"""`python -m tests.simulation.scope`: run all schedules of the small scope, or of the named scenarios."""

import argparse
import os
import sys

from tests.simulation.scope.run_scenarios import run_scope


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.scope", description=__doc__)
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="worker processes (default: one for each core)"
    )
    parser.add_argument(
        "--faults", type=int, help="most faults in one schedule (default: the setting of each scenario)"
    )
    parser.add_argument("names", nargs="*", help="scenarios to run (default: all)")
    arguments = parser.parse_args()
    return run_scope(arguments.names, most_faults=arguments.faults, processes=arguments.processes)


if __name__ == "__main__":
    sys.exit(main())

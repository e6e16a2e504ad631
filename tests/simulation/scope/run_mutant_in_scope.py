"""Run one mutant in the small scope, in a process that has not imported the engine yet."""

import sys

from tests.simulation.mutants.apply import apply
from tests.simulation.mutants.catalogue import MUTANTS


def main() -> int:
    """Arguments: the mutant, the most faults, and the scenarios (default: all)."""
    name, most_faults, *names = sys.argv[1:]
    apply(next(mutant for mutant in MUTANTS if mutant.name == name))
    from tests.simulation.scope.explore import explore
    from tests.simulation.scope.scenarios import SCENARIOS

    for scenario in SCENARIOS:
        if names and scenario.name not in names:
            continue
        for figures in explore(scenario, most_faults=int(most_faults)):
            if figures.broken:
                broken = figures.broken[0]
                where = f"{scenario.name}, {figures.faults_each} faults"
                print(f"caught by {where}: {broken.violation.check}\n{broken.story}")  # noqa: T201 - read by the test
                return 0
    print("not caught")  # noqa: T201 - read by the test
    return 0


if __name__ == "__main__":
    sys.exit(main())

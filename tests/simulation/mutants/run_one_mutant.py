"""Run one mutant against the seeds, in a process that has not imported the engine yet."""

import sys

from tests.simulation.mutants.apply import apply
from tests.simulation.mutants.catalogue import MUTANTS


def main() -> int:
    name, seeds = sys.argv[1], int(sys.argv[2])
    apply(next(mutant for mutant in MUTANTS if mutant.name == name))
    from tests.simulation.run_one_seed import simulate

    for seed in range(seeds):
        if (violation := simulate(seed).violation) is not None:
            print(f"caught by seed {seed}: {violation.check}")  # noqa: T201 - read by run_mutants
            return 0
    print(f"not caught in {seeds} seeds")  # noqa: T201 - read by run_mutants
    return 0

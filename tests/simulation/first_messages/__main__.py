"""`python -m tests.simulation.first_messages --seeds 100000`: exit 1 if a seed fails a check."""

import argparse
import os
import sys

from tests.simulation.mutants.apply import apply
from tests.simulation.mutants.first_messages import HINTED


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.first_messages", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mutant", help="break the protocol with this mutant")
    arguments = parser.parse_args()
    if arguments.mutant:
        apply(next(mutant for mutant in HINTED if mutant.name == arguments.mutant))
    # Not before: a mutant is applied before the engine is imported.
    from tests.simulation.first_messages.scenario import simulate
    from tests.simulation.run_seeds import run_small_seeds

    return run_small_seeds(simulate, arguments.seed, arguments.seeds, processes=arguments.processes)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.simulation run|mutants`: run many seeds, repeat one seed, or test the mutants."""

import argparse
import os
import sys
from typing import Final

from tests.simulation.mutants.generated.run_sample import SEEDS_OF_A_GENERATED_MUTANT, chosen_mutants, run_sample
from tests.simulation.mutants.run_mutants import run_mutants

_SEEDS: Final = 2000
#: A mutant that survives so many seeds shows a gap in the simulator or in its checks.
_SEEDS_OF_A_MUTANT: Final = 2000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="worker processes (default: one for each core)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="simulate seeds; exit 1 if a check fails")
    run.add_argument("--seeds", type=int, help=f"number of seeds (default: {_SEEDS})")
    run.add_argument("--seed", type=int, help="first seed; without --seeds, run only this one")
    mutants = commands.add_parser("mutants", help="break the protocol on purpose; exit 1 if a mutant survives")
    mutants.add_argument(
        "--seeds",
        type=int,
        help=f"most seeds for each mutant (default: {_SEEDS_OF_A_MUTANT}; in a sample {SEEDS_OF_A_GENERATED_MUTANT})",
    )
    mutants.add_argument("--sample", type=int, metavar="N", help="test N generated mutants instead of the catalogue")
    mutants.add_argument(
        "--only",
        metavar="PATTERN",
        help="only generated mutants whose ids match, such as 'domain.attempt.retry:*'; without --sample, all of these",
    )
    mutants.add_argument("--seed", default="0", help="any text that chooses the sample, such as a commit hash")
    mutants.add_argument("names", nargs="*", help="mutants to test (default: all)")
    arguments = parser.parse_args()
    if arguments.command == "mutants" and (arguments.sample or arguments.only):
        seeds = arguments.seeds or SEEDS_OF_A_GENERATED_MUTANT
        chosen = chosen_mutants(arguments.sample, arguments.seed, only=arguments.only)
        return run_sample(chosen, arguments.seed, processes=arguments.processes, seeds=seeds)
    if arguments.command == "mutants":
        seeds = arguments.seeds or _SEEDS_OF_A_MUTANT
        return run_mutants(arguments.names, seeds=seeds, processes=arguments.processes)
    # Not before: a generated mutant is applied before the engine is imported.
    from tests.simulation.run_seeds import run_seeds

    count = arguments.seeds or (_SEEDS if arguments.seed is None else 1)
    return run_seeds(arguments.seed or 0, count, processes=arguments.processes)


if __name__ == "__main__":
    sys.exit(main())

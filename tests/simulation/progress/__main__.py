"""`python -m tests.simulation.progress`: play all, or those that are named, and exit 1 if something stood still."""

import argparse
import logging
import sys

from tests.simulation.mutants.apply import apply
from tests.simulation.progress.mutants import MUTANTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.progress", description=__doc__)
    parser.add_argument("names", nargs="*", help="plays (default: all)")
    parser.add_argument("--mutant", help="break the engine with this mutant, and play what it breaks")
    arguments = parser.parse_args()
    names = arguments.names
    if arguments.mutant:
        chosen = next(each for each in MUTANTS if each.mutant.name == arguments.mutant)
        apply(chosen.mutant)
        names = names or [chosen.breaks]
    # Not before: a mutant is applied before the engine is imported.
    from tests.simulation.progress.plays import PLAYS

    logging.disable(logging.CRITICAL)
    failed = 0
    for name in names or PLAYS:
        stood = PLAYS[name]()
        failed += bool(stood)
        _print(f"{name}: {'; '.join(stood) or 'goes on'}")
    return 1 if failed else 0


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - output of a command


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.model --examples 20000` for a long run, `--mutant 'no fence'` for one that must be caught.

A long run is another each time. What is found is printed with its shortest story, and is the exit code.
"""

import argparse
import sys
import time

from tests.simulation.mutants.apply import apply
from tests.simulation.mutants.catalogue import MUTANTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--examples", type=int, default=600)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--mutant", choices=[mutant.name for mutant in MUTANTS], metavar="NAME")
    arguments = parser.parse_args()
    if arguments.mutant:
        apply(next(mutant for mutant in MUTANTS if mutant.name == arguments.mutant))
    # Nothing of ours may be imported before a mutant is applied.
    from tests.model.run import run_examples

    began = time.monotonic()
    try:
        totals = run_examples(arguments.examples, steps=arguments.steps, by_chance=not arguments.mutant)
    except Exception as found:  # noqa: BLE001 - whatever it is, it was found
        _print(*getattr(found, "__notes__", []), f"{type(found).__name__}: {found}")
        return 1
    seconds = time.monotonic() - began
    _print(f"{totals.examples} examples, {totals.steps} steps, {totals.steps / seconds:.0f} a second; no difference")
    return 0


def _print(*group_orders: str) -> None:
    print(*group_orders, sep="\n")  # noqa: T201 - for a person, and for the test


if __name__ == "__main__":
    sys.exit(main())

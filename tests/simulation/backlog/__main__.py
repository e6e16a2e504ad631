"""`python -m tests.simulation.backlog --seeds 3`: how long backlogs take to drain, and exit 1 beyond the bound."""

import argparse
import logging
import sys
from datetime import timedelta

from tests.simulation.backlog.mutants import MUTANTS
from tests.simulation.mutants.apply import apply


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.backlog", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=60, help="the load of so long a time waits at the beginning")
    parser.add_argument("--without", action="store_true", help="play the job type that has no adaptive limit")
    parser.add_argument("--mutant", help="break the protocol with this mutant")
    arguments = parser.parse_args()
    if arguments.mutant:
        apply(next(mutant for mutant in MUTANTS if mutant.name == arguments.mutant))
    # Not before: a mutant is applied before the engine is imported.
    from tests.simulation.backlog.scenario import ADAPTIVE, FREE, broken_by, play

    logging.disable(logging.CRITICAL)
    failed = 0
    for seed in range(arguments.seeds):
        drain = play(seed, lasts=timedelta(minutes=arguments.minutes), type_=FREE if arguments.without else ADAPTIVE)
        drained = drain.drained_after
        took = "not drained within twice" if drained is None else f"drained in {drained:.0f} s of"
        broken = broken_by(drain)
        failed += bool(broken)
        _print(
            f"seed {seed}: {drain.backlog} jobs {took} {drain.bound:.0f} s, {drain.succeeded} of {drain.calls} calls "
            f"succeeded{''.join(f'; {each}' for each in broken)}"
        )
    return 1 if failed else 0


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - output of a command


if __name__ == "__main__":
    sys.exit(main())

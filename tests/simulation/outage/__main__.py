"""`python -m tests.simulation.outage --seeds 20`: the figures of outages, and exit 1 if one breaks its bound."""

import argparse
import logging
import sys
from datetime import timedelta

from tests.simulation.mutants.apply import apply
from tests.simulation.outage.mutants import MUTANTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.outage", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--minutes", type=float, default=30, help="how long the downstream is down")
    parser.add_argument("--mutant", help="break the protocol with this mutant")
    arguments = parser.parse_args()
    if arguments.mutant:
        apply(next(each.mutant for each in MUTANTS if each.mutant.name == arguments.mutant))
    # Not before: a mutant is applied before the engine is imported.
    from tests.simulation.outage.bounds import FEWEST_SEEDS, broken_by, figures, others_slower
    from tests.simulation.outage.scenario import play, start_latencies_without

    logging.disable(logging.CRITICAL)
    seeds, lasts = range(arguments.seed, arguments.seed + arguments.seeds), timedelta(minutes=arguments.minutes)
    outages, without = [], []
    for seed in seeds:
        outages.append(play(seed, lasts=lasts))
        without.append(start_latencies_without(seed, lasts=lasts))
        if found := broken_by(outages[-1]):
            _print(f"seed {seed}: {', '.join(found)}")
    _print(f"{len(outages)} outages of {arguments.minutes:g} minutes: median, and the worst")
    for line in figures(outages):
        _print(line)
    slower, lines = others_slower(outages, without)
    for line in lines:
        _print(line)
    return 1 if (slower and arguments.seeds >= FEWEST_SEEDS) or any(broken_by(each) for each in outages) else 0


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - output of a command


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.simulation.outage --seeds 20`: the figures of outages, and exit 1 if one breaks its bound."""

import argparse
import logging
import sys
from collections.abc import Sequence
from datetime import timedelta
from statistics import median

from tests.simulation.outage.scenario import Outage, play

#: Seconds from the end of the outage.
_CLOSES_WITHIN = 60
_GOODPUT_WITHIN = 120


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.outage", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--minutes", type=float, default=30, help="how long the downstream is down")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    outages = [
        play(seed, lasts=timedelta(minutes=arguments.minutes))
        for seed in range(arguments.seed, arguments.seed + arguments.seeds)
    ]
    _print(f"{len(outages)} outages of {arguments.minutes:g} minutes: median, and the worst")
    _row("calls during the outage", [each.calls for each in outages])
    _row("of the calls that are allowed", [each.calls / each.most_calls for each in outages])
    _row("attempts used", [each.attempts for each in outages])
    _row("seconds until the breaker closed", [each.closed_after for each in outages])
    _row("seconds until 90 % of the capacity", [each.goodput_after for each in outages])
    _row("jobs that waited at its end", [each.backlog for each in outages])
    _row("seconds from the closing until they had ended", [each.drained_after for each in outages])
    _row("reopenings", [each.reopened for each in outages])
    broken = [f"seed {each.seed}: {', '.join(found)}" for each in outages if (found := _broken(each))]
    for line in broken:
        _print(line)
    return 1 if broken else 0


def _broken(outage: Outage) -> Sequence[str]:
    """The bounds that this outage breaks."""
    holds = {
        "too many calls": outage.calls <= outage.most_calls,
        "closed too late": outage.closed_after is not None and outage.closed_after <= _CLOSES_WITHIN,
        "goodput too late": outage.goodput_after is not None and outage.goodput_after <= _GOODPUT_WITHIN,
        "drained too late": outage.drained_after is not None and outage.drained_after <= outage.drain_bound,
        "reopened": outage.reopened <= 1,
        "jobs left": outage.left == 0,
    }
    return [name for name, held in holds.items() if not held]


def _row(name: str, figures: Sequence[float | None]) -> None:
    known = [figure for figure in figures if figure is not None]
    worst = "never" if len(known) < len(figures) else f"{max(known):.3g}"
    _print(f"{name:>46}  {median(known):.3g}, {worst}" if known else f"{name:>46}  never")


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - output of a command


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.simulation.consumers`: the delay by a consumer in trouble, and exit 1 beyond the bound."""

import argparse
import logging
import sys

from tests.simulation.consumers.scenario import TROUBLES, broken_by, play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.consumers", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--events", type=int, default=1_200, help="in each seed, two a second")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    failed = 0
    for seed in range(arguments.seeds):
        usual = None
        for trouble in TROUBLES:
            reached = play(seed, trouble, events=arguments.events)
            usual = usual or reached
            broken = broken_by(reached, usual)
            failed += bool(broken)
            mean, p95 = reached.mean_ms / usual.mean_ms - 1, reached.p95_ms / usual.p95_ms - 1
            _print(
                f"seed {seed}: one consumer {trouble}: {reached.succeeded} of its jobs succeeded, {reached.dead} died; "
                f"the others begin after {reached.mean_ms:.0f} ms ({mean:+.1%}), "
                f"p95 {reached.p95_ms:.0f} ms ({p95:+.1%}){''.join(f'; {each}' for each in broken)}"
            )
    return 1 if failed else 0


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - output of a command


if __name__ == "__main__":
    sys.exit(main())

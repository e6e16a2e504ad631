"""`python -m tests.simulation.restore --seeds 300`: restores, the figures of all, and exit 1 if a check fails."""

import argparse
import sys
from statistics import median

from tests.simulation.mutants.apply import apply
from tests.simulation.restore.mutants import MUTANTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.restore", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument(
        "--mutant", help="break the protocol with this mutant, and stop at the first seed that shows it"
    )
    arguments = parser.parse_args()
    if arguments.mutant:
        apply(next(mutant for mutant in MUTANTS if mutant.name == arguments.mutant))
    # Not before: a mutant is applied before the engine is imported.
    from tests.simulation.restore.scenario import play

    results = []
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        result = play(seed)
        results.append(result)
        if result.violation:
            _print(f"seed {seed}: {result.violation}")
            if arguments.mutant or arguments.seeds == 1:
                _print(result.story)
                return 1
    failed = [result for result in results if result.violation]
    good = [result for result in results if not result.violation]
    _print(f"{len(results)} restores, {len(failed)} failed a check")
    if good:
        _print(f"restored jobs: {sum(each.restored for each in good)}")
        _print(f"may run again: {sum(each.may_run_again for each in good)}")
        _print(f"ran again: {sum(each.ran_again for each in good)}")
        _print(f"missing: {sum(each.missing for each in good)}")
        _print(f"seconds from the restore point to the recovery: median {_seconds([each.point_ms for each in good])}")
        _print(
            "seconds from the recovery to the first run of the last restored job: "
            f"median {_seconds([each.recovery_ms for each in good])}"
        )
    return 1 if failed else 0


def _seconds(milliseconds: list[int]) -> str:
    return f"{median(milliseconds) / 1000:.0f}, most {max(milliseconds) / 1000:.0f}"


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - output of a command


if __name__ == "__main__":
    sys.exit(main())

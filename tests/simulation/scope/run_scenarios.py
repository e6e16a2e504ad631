"""Run the small scope and print the result."""

import time
from collections import Counter
from collections.abc import Sequence

from tests.simulation.scope.explore import Figures, explore_all
from tests.simulation.scope.scenarios import SCENARIOS
from tests.simulation.world.faults import Fault


def run_scope(names: Sequence[str], *, most_faults: int | None, processes: int) -> int:
    """0 if every check held in every schedule, else 1."""
    began = time.monotonic()
    chosen = [scenario for scenario in SCENARIOS if not names or scenario.name in names]
    faults: Counter[Fault] = Counter()
    schedules = states = violations = 0
    _print(f"{'scenario':<24} {'faults':>6} {'schedules':>10} {'pruned':>10} {'states':>10} {'seconds':>8}")
    for of_one in explore_all(chosen, most_faults=most_faults, processes=processes):
        for figures in of_one:
            _print_figures(figures)
            faults += figures.faults
            schedules += figures.schedules
            states += figures.states
            violations += len(figures.broken)
    _print("\nfaults injected")
    for fault, count in sorted(faults.items()):
        _print(f"  {count:>9,}  {fault}")
    _print(f"\n{schedules:,} schedules and {states:,} states of {len(chosen)} scenarios")
    _print(f"{violations} schedules failed a check; took {time.monotonic() - began:.0f} s")
    return 1 if violations else 0


def _print_figures(figures: Figures) -> None:
    _print(
        f"{figures.scenario:<24} {figures.faults_each:>6} {figures.schedules:>10,} {figures.pruned:>10,} "
        f"{figures.states:>10,} {figures.seconds:>8.1f}"
    )
    for broken in figures.broken:
        _print(
            f"\n{figures.scenario}, {figures.faults_each} faults: {broken.violation.check}\n  {broken.violation.what}"
        )
        _print(f"{broken.story}\n")


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - output of a command

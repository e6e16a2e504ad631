"""Run all schedules of a scenario: those without faults first, so that the first failure is simple."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tests.simulation.checks.violation import Violation
from tests.simulation.scope.choices import Branch
from tests.simulation.scope.run_one_schedule import VisitedStates, run_schedule
from tests.simulation.scope.scenarios import SCENARIOS, Scenario
from tests.simulation.world.faults import Fault

#: Stop a scenario after so many violations.
_MOST_VIOLATIONS: Final = 3


@dataclass(frozen=True, slots=True)
class Broken:
    """A schedule that fails a check."""

    violation: Violation
    story: str


@dataclass(slots=True)
class Figures:
    """Totals over the schedules of one scenario with the same number of faults."""

    scenario: str
    faults_each: int
    schedules: int = 0
    #: Schedules that stopped in a state that another schedule had reached.
    pruned: int = 0
    #: New distinct states in which a step is chosen.
    states: int = 0
    seconds: float = 0.0
    faults: Counter[Fault] = field(default_factory=Counter)
    broken: list[Broken] = field(default_factory=list)


def explore(scenario: Scenario, *, most_faults: int) -> Iterator[Figures]:
    """Yield totals for no fault, one fault, and so on. Stop after the first number of faults with a violation."""
    seen: VisitedStates = {}
    pending: list[list[Branch]] = [[Branch()], *([] for _ in range(most_faults))]
    for faults_each, branches in enumerate(pending):
        began, before = time.monotonic(), len(seen)
        figures = Figures(scenario.name, faults_each)
        while branches and len(figures.broken) < _MOST_VIOLATIONS:
            result = run_schedule(scenario, branches.pop(), seen, most_faults=most_faults)
            # Depth first: run the first branch with all its branches before the second.
            for branch in reversed(result.branches):
                pending[branch.faults].append(branch)
            figures.schedules += 1
            figures.pruned += result.pruned
            figures.faults += result.faults
            if result.violation:
                figures.broken.append(Broken(result.violation, result.story))
        figures.states, figures.seconds = len(seen) - before, time.monotonic() - began
        yield figures
        if figures.broken:
            return


def explore_all(scenarios: Sequence[Scenario], *, most_faults: int | None, processes: int) -> Iterator[list[Figures]]:
    """Explore each scenario. `most_faults` defaults to the setting of the scenario."""
    search = partial(_explored, most_faults=most_faults)
    names = [scenario.name for scenario in scenarios]
    if processes == 1 or len(names) == 1:
        yield from map(search, names)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(search, names)


def scenario(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def _explored(name: str, *, most_faults: int | None) -> list[Figures]:
    one = scenario(name)
    return list(explore(one, most_faults=one.most_faults if most_faults is None else most_faults))

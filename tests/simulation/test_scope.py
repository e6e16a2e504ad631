"""Every test run explores the small scope with few faults. `make scope` explores all of it."""

import subprocess
import sys
from typing import Final

import pytest

from tests.simulation.scope.choices import Branch, Choices, ReplayError
from tests.simulation.scope.explore import explore, scenario
from tests.simulation.scope.run_one_schedule import run_schedule
from tests.simulation.scope.scenarios import SCENARIOS
from tests.simulation.scope.touched_items import QUEUES, Footprint
from tests.support.mutant_cases import first_of

#: The scenarios with the most choices: explored without faults here, or not at all.
LARGE: Final = (
    *("one that fails, cancelled", "one redriven by two", "two of one group", "a fan-in of two"),
    *("a fan-in of two, published", "an event with its consumers"),
)
LARGEST: Final = ("two of one group, published", "two within a limit")
#: A mutant, the scenario that catches it, and the number of faults needed.
CAUGHT: Final = (
    ("effects without the settle", "one job", 0),
    ("no fence", "one job", 1),
    ("any claim is one's own", "one job", 1),
    ("put-backs are acknowledged", "one job", 1),
    ("a lease held elsewhere is acknowledged", "one job", 1),
    ("claim forgets the generation", "one that fails", 1),
    ("what was asked to end lives on", "one that fails, cancelled", 0),
    ("the last consumer of an event gets no job", "an event with its consumers", 0),
    ("a flow ends while nodes are alive", "a fan-in of two, published", 0),
    ("a start replaces the job of its node", "a fan-in of two, published", 1),
)


def _touched(actor: str, *, task: int = 0, reads: str = "", writes: str = "", of_all: bool = False) -> Footprint:
    return Footprint(actor, task, frozenset(filter(None, [reads])), frozenset(filter(None, [writes])), of_all)


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in SCENARIOS if one.name not in LARGEST])
def test_every_schedule_passes_every_check(name: str) -> None:
    most_faults = 0 if name in LARGE else 1
    broken = [found for figures in explore(scenario(name), most_faults=most_faults) for found in figures.broken]
    assert not broken, f"{broken[0].violation}\n{broken[0].story}"


def test_two_explorations_have_the_same_result() -> None:
    def figures() -> list[tuple[int, int, int]]:
        return [(each.schedules, each.pruned, each.states) for each in explore(scenario("one job"), most_faults=1)]

    assert figures() == figures()


def test_independent_jobs_are_not_run_in_every_order() -> None:
    """Neither job affects the other, so without a fault one schedule covers all orders."""
    (none,) = explore(scenario("two jobs"), most_faults=0)
    assert (none.schedules, none.states) == (1, 4)


def test_a_script_that_does_not_fit_raises_replay_error() -> None:
    with pytest.raises(ReplayError):
        run_schedule(scenario("one job"), Branch(bytes([99])), {}, most_faults=1)


def test_the_first_choice_has_no_fault_and_the_others_become_branches() -> None:
    choices = Choices(Branch(), most_faults=1)
    assert choices.choose([0, 1, 1]) == 0
    assert [(branch.script, branch.faults) for branch in choices.branches] == [(b"\x01", 1), (b"\x02", 1)]


def test_branches_keep_to_the_most_faults() -> None:
    choices = Choices(Branch(b"\x01", 1), most_faults=1)
    choices.choose([0, 1])
    choices.choose([0, 1])
    assert choices.branches == []


@pytest.mark.parametrize(
    ("one", "other", "independent"),
    [
        (_touched("a", reads="x"), _touched("b", reads="x"), True),
        (_touched("a", reads="x"), _touched("b", writes="x"), False),
        (_touched("a", writes="x"), _touched("b", writes="y"), True),
        (_touched("a", writes=QUEUES), _touched("b", writes=QUEUES), False),
        (_touched("a", writes="x"), _touched("a", writes="y"), False),
        (_touched("a", writes="x"), _touched("a", task=1, writes="y"), True),
        (_touched("a", writes="x"), _touched("a", task=1, writes="y", of_all=True), False),
    ],
)
def test_steps_without_common_items_are_independent(one: Footprint, other: Footprint, independent: bool) -> None:
    assert one.independent_of(other) is other.independent_of(one) is independent


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "name", "faults"), first_of(CAUGHT, kept=3))
def test_a_mutant_is_caught_with_few_faults(mutant: str, name: str, faults: int) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulation.scope.run_mutant_in_scope", mutant, str(faults), name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.startswith(f"caught by {name}, {faults} faults"), run.stdout + run.stderr

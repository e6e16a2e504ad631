"""The small scope with one fault at most in every test run; `python -m tests.simulation.scope` goes through all."""

import subprocess
import sys
from typing import Final

import pytest

from tests.simulation.scope.choices import Choices, ReplayError
from tests.simulation.scope.explore import explore, scenario
from tests.simulation.scope.scenarios import SCENARIOS
from tests.simulation.scope.schedule import play

#: So that all of it takes no more than some twenty seconds on one core.
MOST_FAULTS: Final = 1
#: A mutant, and the scenario that catches it with so many faults.
CAUGHT: Final = (
    ("no fence", "one job", 1),
    ("effects without the settle", "one job", 0),
    ("a lease held elsewhere is acknowledged", "one job", 2),
    ("any claim is one's own", "one job", 1),
    ("claim forgets the generation", "one that fails", 2),
    ("put-backs are acknowledged", "one job", 1),
)


@pytest.mark.parametrize("name", [one.name for one in SCENARIOS if one.most_faults > MOST_FAULTS])
def test_every_schedule_with_one_fault_keeps_every_promise(name: str) -> None:
    broken = [found for figures in explore(scenario(name), most_faults=MOST_FAULTS) for found in figures.broken]
    assert not broken, f"{broken[0].violation}\n{broken[0].story}"


def test_what_is_found_is_the_same_each_time() -> None:
    """States are told apart by digests, so they must not hang on the order of a set, or of time."""

    def figures() -> list[tuple[int, int, int]]:
        return [
            (each.schedules, each.met, each.states) for each in explore(scenario("two in one batch"), most_faults=1)
        ]

    assert figures() == figures()


def test_a_schedule_of_two_jobs_apart_is_one_of_each() -> None:
    """Neither job can tell where the other is, so without a fault there is nothing to choose."""
    (none,) = explore(scenario("two jobs"), most_faults=0)
    assert (none.schedules, none.states) == (1, 4)


def test_a_script_that_leads_elsewhere_is_refused() -> None:
    with pytest.raises(ReplayError):
        play(scenario("one job"), bytes([99]), set(), most_faults=1)


def test_the_first_choice_is_no_fault() -> None:
    choices = Choices(b"", most_faults=1)
    assert choices.choose([0, 1, 1]) == 0
    assert [(branch.script, branch.faults) for branch in choices.branches] == [(b"\x01", 1), (b"\x02", 1)]


@pytest.mark.parametrize(("mutant", "name", "faults"), CAUGHT)
def test_a_mutant_is_caught_by_so_few_faults(mutant: str, name: str, faults: int) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulation.scope.one", mutant, str(faults), name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.startswith(f"caught by {name}, {faults} faults"), run.stdout + run.stderr

"""No part of the work stands still, and each fault that would let one is noticed."""

import subprocess
import sys

import pytest

from tests.simulation.progress.mutants import MUTANTS
from tests.simulation.progress.plays import PLAYS
from tests.support.mutant_cases import first_of


@pytest.mark.parametrize("name", PLAYS)
def test_the_work_of_a_play_goes_on(name: str) -> None:
    assert PLAYS[name]() == []


def test_every_mutant_can_be_applied() -> None:
    for each in MUTANTS:
        each.mutant.checked()


@pytest.mark.slow
@pytest.mark.parametrize("name", first_of([each.mutant.name for each in MUTANTS]))
def test_a_mutant_is_caught(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulation.progress", "--mutant", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (1, ""), run.stdout + run.stderr

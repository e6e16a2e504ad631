"""Restores hold their promises in some seeds, and each mutant of them can be applied and is caught."""

import subprocess
import sys

import pytest

from tests.simulation.restore.mutants import MUTANTS
from tests.simulation.restore.scenario import play
from tests.support.mutant_cases import first_of

_SEEDS = 24


def test_no_job_of_the_restore_point_is_lost_and_each_that_runs_again_is_reported() -> None:
    results = [play(seed) for seed in range(_SEEDS)]
    assert [str(result.violation) for result in results if result.violation] == []
    # The seeds restore jobs, run some of them twice, and lose what came later.
    assert min(sum(getattr(each, name) for each in results) for name in ("restored", "ran_again", "missing")) > 0


def test_a_seed_repeats_exactly() -> None:
    assert play(6) == play(6)


def test_every_mutant_can_be_applied() -> None:
    for mutant in MUTANTS:
        mutant.checked()


@pytest.mark.slow
@pytest.mark.parametrize("name", first_of([mutant.name for mutant in MUTANTS], kept=2))
def test_a_mutant_is_caught(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulation.restore", "--seeds", "60", "--mutant", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert run.stdout.startswith("seed "), run.stdout + run.stderr

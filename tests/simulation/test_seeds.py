"""Some seeds in every test run. `make simulate` runs many, and `make mutants` shows that the checks see."""

import gc
import os
import random
import secrets
import subprocess
import sys
import threading
import time
import uuid
from typing import Final

import pytest

from tests.simulation.deployment import Deployment
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.run_one_seed import simulate
from tests.simulation.world.faults import Fault
from tests.simulation.world.installed_patches import modules
from tests.simulation.world.world import World

SEEDS: Final = 200
#: Each is found within a few seeds, and for another reason.
QUICKLY_CAUGHT: Final = ("the owner stays", "effects without the settle", "the worker answers nothing")
#: Seeds that once broke a promise, or that a check was wrong about.
REMEMBERED: Final = (1172, 4973, 6863, 13986, 18762, 24115, 45325, 46070, 48490, 92253)


def _worlds() -> int:
    gc.collect()
    return sum(isinstance(value, World) for value in gc.get_objects())


@pytest.mark.slow
def test_seeds_keep_every_promise() -> None:
    broken = [(result.seed, result.violation) for seed in range(SEEDS) if (result := simulate(seed)).violation]
    assert broken == []


@pytest.mark.parametrize("seed", REMEMBERED)
def test_a_seed_that_once_failed_keeps_every_promise(seed: int) -> None:
    result = simulate(seed)
    assert result.violation is None, result.story


def test_a_seed_replays_exactly() -> None:
    hashes = [simulate(seed).hash for seed in range(10)]
    assert [simulate(seed).hash for seed in reversed(range(10))] == hashes[::-1]


@pytest.mark.slow
def test_a_seed_replays_exactly_in_another_interpreter() -> None:
    """Where text hashes to other numbers, so that nothing may hang on the order of a set."""
    script = "from tests.simulation.run_one_seed import simulate; print(*(simulate(seed).hash for seed in range(30)))"
    hashes = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": salt}, capture_output=True, text=True, check=True
        ).stdout
        for salt in ("1", "2")
    }
    assert hashes == {" ".join(simulate(seed).hash for seed in range(30)) + "\n"}


@pytest.mark.slow
def test_a_world_that_is_over_leaves_nothing_behind() -> None:
    before = _worlds()
    for seed in range(20):
        simulate(seed)

    # The last one, whose patches are kept.
    assert _worlds() <= before + 1


def test_no_clock_and_no_chance_of_the_machine_is_left_in_what_ships() -> None:
    with World(0, Deployment()):
        left = {
            module.__name__
            for module in modules()
            for value in vars(module).values()
            if any(value is real for real in (time, random, secrets, uuid, os, threading))
        }
    # The shortener is no part of it.
    assert left == {"shortener.link_codes"}


def test_faults_of_many_kinds_come_up() -> None:
    seen = {fault for seed in range(30) for fault in simulate(seed).faults}
    assert len(seen) > len(Fault) / 2


def test_every_mutant_can_be_applied() -> None:
    for mutant in MUTANTS:
        mutant.checked()
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICKLY_CAUGHT)
def test_a_mutant_is_caught(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "mutants", "--seeds", "40", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr

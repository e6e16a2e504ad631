"""Every test run simulates some seeds. `make simulate` runs many; `make mutants` proves that the checks find faults."""

import gc
import os
import random
import secrets
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.deployment import Deployment
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.run_one_seed import simulate
from tests.simulation.world.faults import Fault
from tests.simulation.world.installed_patches import modules
from tests.simulation.world.world import World

SEEDS: Final = 10
#: Each is caught within a few seeds, by a different check.
QUICKLY_CAUGHT: Final = ("the owner stays", "effects without the settle", "the worker answers nothing")


def _worlds() -> int:
    gc.collect()
    # `isinstance` would ask weak proxies, whose objects may be gone.
    return sum(type(value) is World for value in gc.get_objects())


@pytest.mark.slow
def test_seeds_pass_every_check_and_meet_many_kinds_of_fault() -> None:
    results = [simulate(seed) for seed in range(SEEDS)]
    assert [(result.seed, result.violation) for result in results if result.violation] == []
    assert len({fault for result in results for fault in result.faults}) > len(Fault) / 2


def test_a_seed_replays_exactly() -> None:
    hashes = [simulate(seed).hash for seed in range(3)]
    assert [simulate(seed).hash for seed in reversed(range(3))] == hashes[::-1]


@pytest.mark.slow
def test_a_seed_replays_exactly_in_another_interpreter() -> None:
    """Another interpreter hashes text differently, so this finds code that depends on the order of a set.

    Errors name the files of job types, so it must import them from the same absolute path.
    """
    root = str(Path(__file__).parents[2])
    script = "from tests.simulation.run_one_seed import simulate; print(*(simulate(seed).hash for seed in range(2)))"
    hashes = {
        subprocess.run(
            [sys.executable, "-P", "-c", script],
            env={"PYTHONHASHSEED": salt, "PYTHONPATH": f"{root}{os.pathsep}{root}/shared"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for salt in ("1", "2")
    }
    assert hashes == {" ".join(simulate(seed).hash for seed in range(2)) + "\n"}


@pytest.mark.slow
def test_a_closed_world_can_be_collected_as_garbage() -> None:
    before = _worlds()
    for seed in range(3):
        simulate(seed)

    # The patches keep the last one.
    assert _worlds() <= before + 1


def test_shipped_modules_use_no_real_clock_random_source_or_thread() -> None:
    with World(0, Deployment()):
        left = {
            module.__name__
            for module in modules()
            for value in vars(module).values()
            if any(value is real for real in (time, random, secrets, uuid, os, threading))
        }
    assert left == set()


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

"""A backlog drains at the rate that its service serves. `python -m tests.simulation.backlog` plays an hour's."""

import subprocess
import sys
from datetime import timedelta

import pytest

from tests.simulation.backlog.mutants import MUTANTS
from tests.simulation.backlog.scenario import FREE, broken_by, play
from tests.support.mutant_cases import first_of

_TWO_MINUTES = timedelta(minutes=2)


@pytest.mark.slow
def test_a_backlog_with_an_adaptive_limit_drains_in_time() -> None:
    assert broken_by(play(0, lasts=_TWO_MINUTES)) == []


@pytest.mark.slow
def test_the_same_backlog_without_one_keeps_its_service_overloaded() -> None:
    drain = play(0, lasts=_TWO_MINUTES, type_=FREE)

    assert drain.drained_after is None
    assert drain.succeeded < 0.8 * drain.calls


def test_every_mutant_can_be_applied() -> None:
    for mutant in MUTANTS:
        mutant.checked()


@pytest.mark.slow
@pytest.mark.parametrize("name", first_of([mutant.name for mutant in MUTANTS]))
def test_a_mutant_is_caught(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulation.backlog", "--seeds", "1", "--minutes", "2", "--mutant", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, "drained too late" in run.stdout) == (1, True), run.stdout + run.stderr

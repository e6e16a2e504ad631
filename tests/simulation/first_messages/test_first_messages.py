"""Some small seeds of first messages. `python -m tests.simulation.first_messages --seeds 100000` plays many."""

import subprocess
import sys

import pytest

from tests.simulation.first_messages.scenario import simulate
from tests.support.mutant_cases import first_of


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_a_small_seed_keeps_every_promise(seed: int) -> None:
    result = simulate(seed)
    assert result.violation is None, result.story


def test_a_seed_replays_exactly() -> None:
    assert simulate(7) == simulate(7)


@pytest.mark.parametrize(
    ("mutant", "check"),
    first_of(
        [
            ("publish trusts that a first message was sent", "our code loses no message"),
            ("a first message that SQS refuses refuses its submission", "no request is answered with 500"),
        ]
    ),
)
def test_a_mutant_is_caught(mutant: str, check: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulation.first_messages", "--seeds", "60", "--mutant", mutant],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, check in run.stdout) == (1, True), run.stdout + run.stderr

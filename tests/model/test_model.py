"""The shipped code and the reference model agree, and a short story shows each difference."""

import subprocess
import sys
from typing import Final

import pytest

from tests.model.run import run_examples
from tests.support.mutant_cases import first_of

EXAMPLES: Final = 200
#: Each breaks another part of the protocol and is caught within seconds.
CAUGHT: Final = (
    "a group forgets its order",
    "settle forgets the generation",
    "no fence",
    "claim forgets the generation",
)
STEPS: Final = 15
LONGEST_STORY: Final = 8


@pytest.mark.slow
def test_the_shipped_code_agrees_with_the_reference() -> None:
    assert run_examples(EXAMPLES).examples >= EXAMPLES


@pytest.mark.slow
@pytest.mark.parametrize("mutant", first_of(CAUGHT, kept=2))
def test_a_mutant_is_caught_with_a_short_story(mutant: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.model", "--mutant", mutant, "--steps", str(STEPS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    story = ran.stdout.partition("The story:\n")[2].splitlines()
    assert 0 < len(story) - 1 <= LONGEST_STORY, ran.stdout + ran.stderr
    assert story[-1].startswith("DifferenceError: ")

"""Which cases of a test that breaks the engine are part of every test run."""

from collections.abc import Sequence
from typing import Any

import pytest


def first_of(cases: Sequence[Any], *, kept: int = 1) -> list[Any]:
    """The cases, for `parametrize`. `make test` runs the first `kept` of them, and `make mutants` the others."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.mutant if number >= kept else ()
        )
        for number, case in enumerate(cases)
    ]

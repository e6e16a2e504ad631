"""Every sentence that botocore ships is found there, word for word."""

import pytest

from tests.simulation.conformance.citations import plain, reference
from tests.simulation.conformance.differences import DIFFERENCES
from tests.simulation.conformance.summary import cases

SHIPPED = sorted(name for name, case in cases().items() if case.shipped)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_sentence_stands_in_the_reference(name: str) -> None:
    case = cases()[name]
    assert plain(case.sentence) in reference(case.source)


def test_what_botocore_ships_is_quoted() -> None:
    assert [name for name in SHIPPED if not cases()[name].quoted] == []


def test_only_cases_that_run_there_differ() -> None:
    known = {(backend, name) for name, case in cases().items() for backend in case.backends}
    assert {(backend, name) for backend, differing in DIFFERENCES.items() for name in differing} <= known


def test_there_are_enough_cases() -> None:
    assert len(cases()) >= 200

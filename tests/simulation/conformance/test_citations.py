"""Every sentence cited from a botocore model occurs there word for word."""

import pytest

from tests.simulation.conformance.citations import plain, reference
from tests.simulation.conformance.differences import DIFFERENCES
from tests.simulation.conformance.summary import cases

SHIPPED = sorted(name for name, case in cases().items() if case.shipped)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_sentence_occurs_in_the_reference(name: str) -> None:
    case = cases()[name]
    assert plain(case.sentence) in reference(case.source)


def test_sentences_from_botocore_are_quoted() -> None:
    assert [name for name in SHIPPED if not cases()[name].quoted] == []


def test_differences_name_cases_that_run_on_the_backend() -> None:
    known = {(backend, name) for name, case in cases().items() for backend in case.backends}
    assert {(backend, name) for backend, differing in DIFFERENCES.items() for name in differing} <= known


def test_there_are_enough_cases() -> None:
    assert len(cases()) >= 200

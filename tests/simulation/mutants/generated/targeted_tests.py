"""Run the tests that reach the block of a mutant, in a fork, until one fails."""

import gc
import importlib
import os
import signal
from collections.abc import Sequence
from typing import Final

import pytest

from tests.simulation.mutants.apply import apply
from tests.simulation.mutants.generated.forks import End, in_forks
from tests.simulation.mutants.generated.generate import ROOT, GeneratedMutant
from tests.simulation.mutants.generated.reached_tests import OPTIONS

#: Most mutants fail one of these, and few files need to be imported for them.
_FIRST: Final = 40
#: The slowest test takes a few seconds.
_MOST_SECONDS_OF_A_TEST: Final = 120
#: The longest name of a test in the results. Hypothesis and parameters make some names very long.
_LONGEST_NAME: Final = 200
#: None of these are plugins of pytest, which pytest itself must import.
_PRELOADED: Final = (
    "moto",
    "moto.dynamodb",
    "moto.sqs",
    "moto.s3",
    "pydantic",
    "aws_lambda_powertools.utilities.idempotency",
)


def failing_test(mutant: GeneratedMutant, tests: Sequence[str]) -> str | None:
    """What caught the mutant; None if every test passed."""
    for name in _PRELOADED:
        importlib.import_module(name)
    for part in (tests[:_FIRST], tests[_FIRST:]):
        ended = next(in_forks([part], lambda part, end: _tested(mutant, part, end), processes=1))
        if ended.status:
            return f"the process of the tests ended with status {ended.status}"
        if ended.text:
            return ended.text
    return None


def _tested(mutant: GeneratedMutant, tests: Sequence[str], end: End) -> str:
    """In the fork. Empty if every test passed."""
    if not tests:
        return ""
    os.chdir(ROOT)
    apply(mutant)
    gc.freeze()
    chosen = _Chosen(tests, end)
    files = dict.fromkeys(name.partition("::")[0] for name in tests)
    code = pytest.main([*OPTIONS, *files], plugins=[chosen])
    return "" if code in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} else f"pytest ended with {code!r}"


class _Chosen:
    """A plugin of pytest that runs some tests, in their order, until one fails."""

    def __init__(self, tests: Sequence[str], end: End) -> None:
        self._rank = {name: rank for rank, name in enumerate(tests)}
        self._end = end

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._rank]
        items[:] = sorted(chosen, key=lambda item: self._rank[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        signal.signal(signal.SIGALRM, lambda *_: self._end(f"{nodeid} does not come to an end"))
        signal.alarm(_MOST_SECONDS_OF_A_TEST)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._end(report.nodeid[:_LONGEST_NAME])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._end(f"{report.nodeid} cannot be imported")

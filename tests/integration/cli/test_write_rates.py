"""The rate at which the commands that change many jobs write: 1,000 jobs a second, or `--rate`."""

from typing import Any

import pytest

from tests.integration.cli.conftest import Cloud, run
from tidemill.application.passes.pace import Pace
from tidemill.cli.control import parallel_writes


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the rates of the writes, in the order of the commands."""
    found: list[float] = []

    def noted(rate: float, **given: Any) -> Pace:
        found.append(rate)
        return Pace(rate, **given)

    monkeypatch.setattr(parallel_writes, "Pace", noted)
    return found


@pytest.mark.parametrize(
    "command",
    [
        ("redrive", "--type", "mail", "--no-probe"),
        ("cancel", "--type", "mail"),
        ("purge", "--older-than", "1s"),
    ],
    ids=lambda command: command[0],
)
def test_a_command_writes_a_thousand_jobs_a_second_or_as_many_as_its_rate(
    cloud: Cloud, rates: list[float], command: tuple[str, ...]
) -> None:
    for rate in ((), ("--rate", "200")):
        cloud.dead_job(type="mail")
        result = run(*command, *rate, "--yes")
        assert result.exit_code == 0, result.stderr

    assert rates == [1_000, 200]

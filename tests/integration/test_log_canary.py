"""No payload, header or text of an exception reaches a log line or a metric where the stage forbids it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.deployed_functions import Mill
from tidemill.application.job_types import Run
from tidemill.domain.errors import PermanentJobError
from tidemill.domain.return_values import GiveUp
from tidemill.telemetry.line_format import LineFormat
from tidemill.telemetry.outcome_log import logger

CANARY = "c4n4ry"


@pytest.fixture
def _withheld() -> Iterator[None]:
    handler = logger().registered_handler
    formatter = handler.formatter
    handler.setFormatter(LineFormat(withhold=True))
    yield
    handler.setFormatter(formatter)


def _fail(payload: Any, _run: Run) -> Any:
    if payload.n == 0:
        raise PermanentJobError(f"no such address: {payload.secret}")
    if payload.n == 1:
        raise ValueError(payload.secret) from KeyError(payload.secret)
    return GiveUp(payload.secret)


@pytest.mark.usefixtures("_withheld")
def test_no_canary_reaches_a_line_of_a_stage_that_withholds_text(
    mill: Mill, capsys: pytest.CaptureFixture[str]
) -> None:
    mill.script.handler = _fail
    for number in range(3):
        assert mill.post({"n": number, "secret": CANARY}, key=f"{CANARY}-{number}").status == 202
    assert mill.post({"n": CANARY}, key=CANARY).status == 422
    mill.run()

    written = capsys.readouterr().out
    # Each failed as it should: twice at once, and once after all its attempts.
    assert written.count('"message":"dead"') == 3
    assert CANARY not in written


def test_a_stage_that_permits_it_logs_the_text_of_exceptions(mill: Mill, capsys: pytest.CaptureFixture[str]) -> None:
    mill.script.handler = _fail
    mill.accepted({"n": 0, "secret": CANARY})
    mill.run()

    assert f"no such address: {CANARY}" in capsys.readouterr().out

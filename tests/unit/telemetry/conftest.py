"""The log lines of a test."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tidemill.telemetry import outcome_log, run_lines

#: The lines that were written since the last call.
Said = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    # A logger keeps the standard output of its creation, so the test has its own.
    logger = cache(outcome_log.new_logger)
    monkeypatch.setattr(outcome_log, "logger", logger)
    monkeypatch.setattr(run_lines, "logger", logger)
    return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]

"""The clocks of a process."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from tidemill.domain.time_constants import EPOCH
from tidemill.system import clock


def test_the_present_has_the_precision_of_a_document() -> None:
    present = clock.now()

    assert present.tzinfo is UTC
    assert present.microsecond % 1000 == 0
    assert timedelta(0) <= datetime.now(UTC) - present < timedelta(minutes=1)


def test_a_step_of_the_wall_clock_does_not_move_the_steady_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    began = clock.steady()
    monkeypatch.setattr(clock, "now", lambda: datetime(1999, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: 90.5, time=lambda: 0))

    assert clock.steady() == EPOCH + timedelta(seconds=90.5)
    assert began.tzinfo is UTC

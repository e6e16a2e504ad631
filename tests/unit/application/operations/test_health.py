"""`GET /health`: what is checked, what counts, and how long an answer is kept."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW
from tests.support.single_job import Clock
from tidemill.application.operations.health import KEPT, LATE_CANARY, Check, Health, HealthChecks
from tidemill.domain.errors import StoreUnavailableError

ONE_MINUTE = timedelta(minutes=1)


class Canaries:
    """The last canaries by lane, or the error of the table."""

    def __init__(self, submitted: Mapping[str, datetime] | Exception) -> None:
        self.submitted = submitted
        self.reads = 0

    def __call__(self) -> Mapping[str, datetime]:
        self.reads += 1
        if isinstance(self.submitted, Exception):
            raise self.submitted
        return self.submitted


def _read(submitted: Mapping[str, datetime] | Exception, **changes: Any) -> Health:
    given: dict[str, Any] = {"lanes": ["default"], "broken_job_files": 0, "clock": Clock()} | changes
    return HealthChecks(canaries=Canaries(submitted), **given).read()


def test_a_stage_whose_canaries_get_through_is_healthy() -> None:
    health = _read({"default": NOW - ONE_MINUTE})

    assert health == Health(
        checked_at=NOW,
        checks=(
            Check(name="job_files", ok=True, required=False),
            Check(name="table", ok=True),
            Check(name="lane_default", ok=True, age=ONE_MINUTE),
        ),
    )
    assert [check.required for check in health.checks] == [False, True, True]
    assert health.ok is True


@pytest.mark.parametrize(
    ("age", "ok"), [(timedelta(minutes=5) - MILLISECOND, True), (timedelta(minutes=5), False), (None, False)]
)
def test_a_lane_whose_last_canary_is_late_or_missing_is_unhealthy(age: timedelta | None, ok: bool) -> None:
    health = _read({} if age is None else {"default": NOW - age})

    assert health.checks[-1] == Check(name="lane_default", ok=ok, age=age)
    assert health.ok is ok


def test_one_late_lane_of_two_makes_the_stage_unhealthy() -> None:
    health = _read({"bulk": NOW - LATE_CANARY, "default": NOW}, lanes=["bulk", "default"])

    assert [(check.name, check.ok) for check in health.checks[2:]] == [("lane_bulk", False), ("lane_default", True)]
    assert not health.ok


def test_a_table_that_cannot_be_read_is_unhealthy_and_says_nothing_of_the_lanes() -> None:
    health = _read(StoreUnavailableError("no answer"))

    assert health.checks == (Check(name="job_files", ok=True, required=False), Check(name="table", ok=False))
    assert not health.ok


def test_a_broken_job_file_is_shown_but_the_stage_stays_healthy() -> None:
    health = _read({"default": NOW}, broken_job_files=1)

    assert health.checks[0] == Check(name="job_files", ok=False, required=False)
    assert health.ok


def test_an_answer_is_kept_for_five_seconds() -> None:
    clock, canaries = Clock(), Canaries({"default": NOW})
    checks = HealthChecks(canaries=canaries, lanes=["default"], broken_job_files=0, clock=clock)
    first = checks.read()

    clock.now += KEPT - MILLISECOND
    assert checks.read() is first
    clock.now += MILLISECOND
    second = checks.read()

    assert timedelta(seconds=5) == KEPT
    assert (second.checked_at, canaries.reads) == (NOW + KEPT, 2)

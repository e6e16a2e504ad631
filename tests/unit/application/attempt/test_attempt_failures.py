"""The failures of a run: what its handler raises, and what no code between handler and settle may hide."""

import sys
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import SECOND, a_job_type, reference_to, stored, types_of
from tests.support.single_job import Clock, carried_out, tools
from tests.unit.conftest import Carry
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.attempt.run import Run
from tidemill.domain.errors import (
    BreakerOpenError,
    CancelRequestedError,
    PermanentJobError,
    RetryAfter,
    StoreUnavailableError,
    TransactionConflictError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.time_constants import EPOCH
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.metrics import Metric
from tidemill.telemetry.run_metrics import run_metrics


@pytest.mark.parametrize(
    ("errors", "ending"),
    [
        ([ValueError("no"), PermanentJobError("never")], Ending.DEAD),
        ([ValueError("no"), RetryAfter(60)], Ending.RETRYING),
        ([ValueError("no"), StoreUnavailableError("down")], Ending.RETRYING),
        ([StoreUnavailableError("down"), TransactionConflictError("others")], Ending.HELD),
        ([BreakerOpenError("payments")], Ending.PARKED),
        ([CancelRequestedError("stop"), PermanentJobError("never")], Ending.CANCELLED),
    ],
)
def test_a_group_of_errors_ends_the_run_as_the_one_that_decides(
    carry: Carry, queued: Job, errors: list[Exception], ending: Ending
) -> None:
    def handler(_payload: Any, _run: Run) -> None:
        raise ExceptionGroup("calls", errors)

    assert carry(queued, a_job_type(handler)).ending is ending


def test_an_exit_in_a_rule_of_the_type_fails_the_attempt(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    carry(queued, replace(a_job_type(), parse=lambda _payload: sys.exit(3)))

    (error,) = stored(store, queued).errors
    assert error.message == "the handler tried to end its process: SystemExit(3)"


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_step_of_the_wall_clock_ends_no_run_and_lengthens_none(
    store: DynamoJobStore, queued: Job, step: timedelta
) -> None:
    wall, steady, left = Clock(), Clock(), []

    def handler(_payload: Any, run: Run) -> None:
        left.append(run.deadline - wall.now)
        wall.now += step
        steady.now += SECOND
        run.checkpoint()

    context = replace(tools(store, types_of(a_job_type(handler)), wall), steady_clock=steady)
    report = carried_out(Attempt(reference_to(queued), context, deadline=steady.now + 5 * SECOND))

    assert (report.ending, report.took, left) == (Ending.SUCCEEDED, SECOND, [5 * SECOND])
    assert run_metrics(report)[Metric.ATTEMPT_DURATION] == 1_000
    assert all(value >= 0 for value in run_metrics(report).values())


@pytest.mark.parametrize(("moved", "begins"), [(SECOND, True), (5 * SECOND, False)])
def test_the_time_of_an_attempt_is_counted_by_the_steady_clock(
    store: DynamoJobStore, queued: Job, moved: timedelta, *, begins: bool
) -> None:
    wall, steady = Clock(), Clock(EPOCH)
    ran: list[Run] = []
    context = replace(tools(store, types_of(a_job_type(lambda _, run: ran.append(run))), wall), steady_clock=steady)
    attempt = Attempt(reference_to(queued), context, deadline=EPOCH + 5 * SECOND)
    steady.now += moved

    assert carried_out(attempt).ending is (Ending.SUCCEEDED if begins else Ending.RETRYING)
    assert bool(ran) is begins

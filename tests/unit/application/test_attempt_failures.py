"""The failures of a run: what its handler raises, and what no code between handler and settle may hide."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import a_job_type, stored
from tests.unit.conftest import Carry
from tidemill.application.attempt_report import Ending
from tidemill.application.run import Run
from tidemill.domain.errors import (
    BreakerOpenError,
    CancelRequestedError,
    PermanentJobError,
    RetryAfter,
    StoreUnavailableError,
    TransactionConflictError,
)
from tidemill.domain.job import Job
from tidemill.dynamodb.job_store import DynamoJobStore


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

"""Attempts at jobs, at a time that stands still."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import a_job_type, brought_to, reference_to, types_of
from tests.support.single_job import INVOCATION, Clock, carried_out, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Report
from tidemill.application.job_types import JobType
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore

#: Carries out an attempt at a job, by a worker that knows one type; returns what became of it.
Carry = Callable[..., Report]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def carry(store: DynamoJobStore, clock: Clock) -> Carry:
    def carry(job: Job, job_type: JobType | None = None, **changes: Any) -> Report:
        shared_tools = tools(store, types_of(job_type or a_job_type()), clock)
        return carried_out(Attempt(reference_to(job, **changes), shared_tools, deadline=clock.now + INVOCATION))

    return carry


@pytest.fixture
def queued(store: DynamoJobStore) -> Job:
    return brought_to(store, State.QUEUED)

"""The request that settles a run: the write of the protocol with the clause of each feature."""

from datetime import datetime, timedelta

from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.job import Job
from tidemill.dynamodb import job_writes
from tidemill.dynamodb.attempt import hold_writes
from tidemill.dynamodb.corrections import undo_writes
from tidemill.dynamodb.flows import flow_writes
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.steps import run_writes
from tidemill.dynamodb.update_requests import Request
from tidemill.dynamodb.waiting import signal_writes


def settle(job: Job, settlement: Settlement, *, now: datetime, retention: timedelta, indexes: Indexes) -> Request:
    clauses = (
        undo_writes.undo_kept(settlement),
        signal_writes.wait_for_signal(job, settlement, indexes),
        hold_writes.hold(job, settlement),
        run_writes.used_up_steps(job, settlement),
        signal_writes.no_signal_since(settlement),
        flow_writes.no_look_since(job, settlement),
    )
    return job_writes.settle(job, settlement, clauses, now=now, retention=retention, indexes=indexes)

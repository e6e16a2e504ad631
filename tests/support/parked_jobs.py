"""Jobs that find their limit full, and are parked, as their workers would."""

from datetime import datetime
from typing import Any, Final

from tests.support.builders import LEASE, NOW, SETTLEMENTS, a_job, claimed, fresh_token, stored
from tidemill.application.ports import Entered, LimitSlot
from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line, Wait
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits

ONE: Final = Limit(concurrency=1)
LINE: Final = Line.for_limit("test.job#a")


def enter(limits: DynamoLimits, job: Job, *, limit: Limit = ONE, now: datetime = NOW, **changes: Any) -> Any:
    """The slot, if the job gets one; else when or where it waits."""
    slot = LimitSlot(line=LINE, limit=limit, token=fresh_token(), until=now + LEASE, job=(job.tenant, job.id))
    slot = replace(slot, **changes)
    answer = limits.acquire(slot, now=now)
    return slot if isinstance(answer, Entered) else answer


def park(store: DynamoJobStore, limits: DynamoLimits, limit: Limit = ONE, **changes: Any) -> Job:
    """A job that finds its limit full, and is parked by its worker."""
    job = a_job(**changes)
    assert enter(limits, job, limit=limit) == LINE
    return park_only(store, job)


def park_only(store: DynamoJobStore, job: Job, line: Line = LINE) -> Job:
    store.insert_if_absent(job)
    written = replace(SETTLEMENTS[State.PARKED], wait=Wait(cause=line.cause, key=line.key, since=NOW))
    store.settle(claimed(store, job), written, now=NOW)
    return stored(store, job)

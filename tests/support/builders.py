"""Jobs, references and job types with plain defaults. A test names only the fields that it is about."""

import dataclasses
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

from tidemill.application.attempt.run import Run
from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.ports import JobStore
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.corrections.undo import Undo, Undone
from tidemill.domain.debounce.debounce_record import DebounceWindow
from tidemill.domain.dispatch.job_message import DeadLetter, Reference
from tidemill.domain.job import AttemptError, DeathReason, Job
from tidemill.domain.job_parts import StoredPayload
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.steps.steps import Step
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.signals import Signal
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Wait
from tidemill.dynamodb import document
from tidemill.names import Lane

#: Far in the future, so that no item of a test has expired by the clock of moto or of the emulator.
NOW: Final = datetime(2045, 3, 4, 5, 6, 7, 891_000, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
MILLISECOND: Final = timedelta(milliseconds=1)
#: The time that an invocation has left when it starts.
INVOCATION: Final = timedelta(seconds=10)
LEASE: Final = timedelta(seconds=30)
RETENTION: Final = timedelta(days=30)
TENANT: Final = "111122223333:AROAEXAMPLE"

#: All with six digits, so that ids sort as text in the order of their numbers: jobs that died at one time are found in
#: the order of their ids.
_numbers = count(100_001)


def a_job(**changes: Any) -> Job:
    job = Job(
        tenant=TENANT,
        id=f"job-{next(_numbers)}",
        type="test.job",
        lane=Lane.DEFAULT,
        payload=StoredPayload(text="{}"),
        body_hash="0" * 64,
        trace="trace",
        state=State.QUEUED,
        generation=1,
        attempt=0,
        created_at=NOW,
        due=NOW,
    )
    return with_changes(job, **changes)


def with_changes(job: Job, **changes: Any) -> Job:
    """The job with these values, each under the name of its attribute in the table."""
    parts: dict[str, dict[str, Any]] = {}
    of_job: dict[str, Any] = {}
    for name, value in changes.items():
        part, field = document.PLACES.get(name, ("", name))
        if part:
            parts.setdefault(part, {})[field] = value
        else:
            of_job[field] = value
    return replace(job, **of_job, **{part: replace(getattr(job, part), **values) for part, values in parts.items()})


def reference_to(job: Job, **changes: Any) -> Reference:
    reference = Reference(tenant=job.tenant, job_id=job.id, generation=job.generation, trace=job.trace)
    return dataclasses.replace(reference, **changes)


def letter_for(job: Job) -> DeadLetter:
    return DeadLetter(
        reference=reference_to(job),
        type=job.type,
        death=job.death or "",
        error_class="ValueError",
        attempts=job.attempt,
    )


def an_error(**changes: Any) -> AttemptError:
    error = AttemptError(attempt=1, at=NOW, error_class="ValueError", message="no such thing", retryable=True)
    return replace(error, **changes)


A_SIGNAL: Final = Signal(name="approval", at=NOW, data='{"by":"ada"}')
AN_UNDO: Final = Undo(type="test.undo", lane=Lane.DEFAULT, payload='{"n":1}', tags=("a",), blocks=True)
A_STEP: Final = Step(name="charge", at=NOW, attempt=1, result='{"id":7}', version="v1")
A_BURST: Final = DebounceWindow(name="burst", key="ada", until=NOW + timedelta(hours=2), sent_for=NOW, last="first")
A_WAIT: Final = Wait(cause=Cause.LIMIT, key="test.job#a", since=NOW)
#: A settlement into each state that settle may write.
SETTLEMENTS: Final = {
    State.SUCCEEDED: Settlement(state=State.SUCCEEDED, result='{"n":1}'),
    State.RETRYING: Settlement(state=State.RETRYING, due=NOW + 5 * SECOND, error=an_error(next_due=NOW + 5 * SECOND)),
    State.DEAD: Settlement(state=State.DEAD, death=DeathReason.PERMANENT, error=an_error(retryable=False)),
    State.QUEUED: Settlement(state=State.QUEUED, due=NOW + 5 * SECOND, attempt=0, hops=1),
    State.SCHEDULED: Settlement(state=State.SCHEDULED, due=NOW + 1000 * SECOND, attempt=0, hops=1),
    State.CANCELLED: Settlement(state=State.CANCELLED),
    State.EXPIRED: Settlement(state=State.EXPIRED),
    State.PARKED: Settlement(
        state=State.PARKED, due=NOW + LONGEST_PARKED, attempt=0, wait=A_WAIT, holds=1, hold_cause=HoldCause.LIMIT
    ),
}
#: The states of a job that was just submitted, with the fields that they need.
FRESH: Final[dict[State, dict[str, Any]]] = {
    State.QUEUED: {"due": NOW},
    State.SCHEDULED: {"due": NOW + 1000 * SECOND, "run_at": NOW + 1000 * SECOND},
    State.WAITING: {"due": None},
}


def an_undo_of(done: Job, **changes: Any) -> tuple[Job, Undone]:
    """The job that undoes `done`, and the entry that names it."""
    job = a_job(**{"tenant": done.tenant, "group": done.group.key, "undoes": done.id} | changes)
    return job, Undone(job_id=job.id, at=job.created_at, by="ada", reason="a typo")


def fresh_token() -> str:
    """A token that is unique in this process: a store may remember tokens across tables."""
    return f"token-{next(_numbers)}"


def claimed(store: JobStore, job: Job, *, token: str | None = None, now: datetime = NOW) -> Job:
    return store.claim(reference_to(job), token=token or fresh_token(), now=now, lease_end=now + LEASE)


def brought_to(store: JobStore, state: State, **changes: Any) -> Job:
    """A job that the writes of the store brought into `state`, as the store reads it."""
    if state is State.WAITING:
        changes = {"group": fresh_token()} | changes
        store.insert_if_absent(a_job(group=changes["group"]))
    job = a_job(**{"state": state, **FRESH[state], **changes} if state in FRESH else changes)
    store.insert_if_absent(job)
    if state not in FRESH:
        running = claimed(store, job)
        if state is not State.RUNNING:
            store.settle(running, SETTLEMENTS[state], now=NOW)
    return stored(store, job)


def behind_an_ended_head(store: JobStore, **changes: Any) -> Job:
    """A waiting job whose head has ended, before anything has advanced the group."""
    group = fresh_token()
    head = a_job(group=group)
    store.insert_if_absent(head)
    waiting = store.insert_if_absent(a_job(group=group, **changes))
    store.cancel(head, now=NOW)
    return waiting


def stored(store: JobStore, job: Job) -> Job:
    found = store.get(job.tenant, job.id)
    assert found is not None
    return found


def a_job_type(
    handler: Callable[[Any, Run], Any] = lambda _payload, _run: None,
    *,
    name: str = "test.job",
    parse: Callable[[Any], Any] = lambda payload: payload,
    **retry: Any,
) -> JobType:
    """`parse` gets the decoded payload."""
    return JobType(
        name=name,
        lane=Lane.DEFAULT,
        retry=RetryPolicy(**retry),
        parse=lambda text: parse(json.loads(text)),
        handler=handler,
    )


def a_run(attempt: int = 1) -> Run:
    return Run(
        job_id="id",
        tenant=TENANT,
        attempt=attempt,
        max_attempts=8,
        submitted_at=NOW,
        deadline=NOW,
        idempotency_key="id",
    )


def types_of(*job_types: JobType) -> JobTypes:
    return JobTypes({job_type.name: job_type for job_type in job_types})

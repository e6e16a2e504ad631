"""What each write says in the history of its job, and the state that it writes with it."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.support.builders import (
    A_BURST,
    A_SIGNAL,
    A_WAIT,
    LEASE,
    NOW,
    RETENTION,
    SECOND,
    a_job,
    reference_to,
    with_changes,
)
from tidemill.aws.attribute_values import milliseconds
from tidemill.domain.dispatch.job_message import FirstRun
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import DeathReason, Redrive
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Awaited
from tidemill.domain.waiting.waiting import Cause, Wait
from tidemill.dynamodb import job_writes
from tidemill.dynamodb.attempt.first_claim import first_claim
from tidemill.dynamodb.debounce import debounce_writes
from tidemill.dynamodb.flows import flow_writes
from tidemill.dynamodb.history_entries import transitions
from tidemill.dynamodb.indexes import NOT_LISTED
from tidemill.dynamodb.operations import operator_writes
from tidemill.dynamodb.waiting import signal_writes

AT = NOW + timedelta(hours=1)
JOB = a_job()
RUNNING = a_job(state=State.RUNNING, owner="t", attempt=2, open_runs=1, claimed_at=NOW, due=NOW + LEASE)
DEAD = a_job(state=State.DEAD, due=None, finished_at=NOW, death=DeathReason.PERMANENT)
PARKED = a_job(state=State.PARKED, wait=A_WAIT)
ASKED_TO_END = with_changes(DEAD, cancel_requested_at=NOW + SECOND)
FAR = AT + timedelta(hours=1)
MOVING = a_job(state=State.SCHEDULED, due=FAR, run_at=FAR, burst=replace(A_BURST, sent_for=FAR))
WAITING_FOR_NODES = with_changes(
    PARKED,
    wait=Wait(cause=Cause.SIGNAL, key="a", since=NOW),
    awaited=Awaited(cause=Cause.SIGNAL, name="a", since=NOW, until=NOW),
)
CLAIM: dict[str, Any] = {"token": "t", "now": AT, "lease_end": AT + LEASE, "worker": "w/1"}
NUDGE: dict[str, Any] = {"now": AT, "limit": SECOND, "retention": RETENTION, "indexes": NOT_LISTED}
REDRIVE = Redrive(token="r", at=AT, by="ada")


def entry(state: State, cause: str, **changes: Any) -> Transition:
    return replace(Transition(at=AT, state=state, cause=cause), **changes)


def freed(cause: Cause | None) -> Any:
    """The release of a job that has waited for this, or for nothing that is known."""
    wait = None if cause is None else Wait(cause=cause, key="a", since=NOW)
    return partial(operator_writes.unpark, replace(PARKED, wait=wait), now=AT, due=AT)


#: By the name of the write: the write, and the entries that it adds. The last one has the state that is written.
WRITES: dict[str, tuple[Callable[[], Any], Sequence[Transition]]] = {
    "claim": (
        partial(job_writes.claim, reference_to(JOB), **CLAIM),
        [entry(State.RUNNING, Why.CLAIMED, worker="w/1")],
    ),
    "first claim": (
        partial(first_claim, reference_to(JOB), FirstRun(type=JOB.type, due=NOW), **CLAIM),
        [entry(State.RUNNING, Why.CLAIMED, worker="w/1")],
    ),
    "claim of a long history": (
        partial(job_writes.claim, reference_to(JOB), **CLAIM, known=[entry(State.QUEUED, Why.NUDGED)]),
        [entry(State.QUEUED, Why.NUDGED), entry(State.RUNNING, Why.CLAIMED, worker="w/1")],
    ),
    "release": (
        partial(job_writes.release, RUNNING, now=AT, due=FAR),
        [entry(State.RETRYING, Why.CONFLICT, attempt=2)],
    ),
    "release for another reason": (
        partial(job_writes.release, RUNNING, now=AT, due=FAR, cause=Why.CONTINUED),
        [entry(State.RETRYING, Why.CONTINUED, attempt=2)],
    ),
    "unclaim": (
        partial(job_writes.unclaim, reference_to(JOB), token="t", now=AT),
        [entry(State.RETRYING, Why.UNANSWERED)],
    ),
    "cancel": (
        partial(operator_writes.cancel, JOB, CancelRequest(by="ada"), now=AT, retention=RETENTION, as_read=False),
        [entry(State.CANCELLED, Why.CANCELLED)],
    ),
    "wake": (partial(operator_writes.wake, JOB, now=AT), [entry(State.QUEUED, Why.DUE)]),
    "park": (partial(operator_writes.park, JOB, A_WAIT, now=AT), [entry(State.PARKED, Why.PAUSED)]),
    "unpark from a pause": (freed(Cause.PAUSE), [entry(State.QUEUED, Why.RESUMED)]),
    "unpark from a breaker": (freed(Cause.BREAKER), [entry(State.QUEUED, Why.BREAKER)]),
    "unpark from a limit": (freed(Cause.LIMIT), [entry(State.QUEUED, Why.ROOM)]),
    "unpark from the limit of a type": (freed(Cause.TYPE), [entry(State.QUEUED, Why.ROOM)]),
    "unpark at the end of a wait for a signal": (freed(Cause.SIGNAL), [entry(State.QUEUED, Why.WAITED)]),
    "unpark at the end of a wait for input": (freed(Cause.INPUT), [entry(State.QUEUED, Why.WAITED)]),
    "unpark of a job that does not say why it waits": (freed(None), [entry(State.QUEUED, Why.ROOM)]),
    "nudge of a lost run": (
        partial(operator_writes.nudge, RUNNING, last=False, **NUDGE),
        [entry(State.RETRYING, Why.RUN_LOST)],
    ),
    "nudge of a job that wake has missed": (
        partial(operator_writes.nudge, MOVING, last=False, **NUDGE),
        [entry(State.QUEUED, Why.NUDGED)],
    ),
    "nudge": (partial(operator_writes.nudge, JOB, last=False, **NUDGE), [entry(State.QUEUED, Why.NUDGED)]),
    "nudge of a retry": (
        partial(operator_writes.nudge, replace(JOB, state=State.RETRYING), last=False, **NUDGE),
        [entry(State.RETRYING, Why.NUDGED)],
    ),
    "last nudge": (
        partial(operator_writes.nudge, JOB, last=True, **NUDGE),
        [entry(State.DEAD, DeathReason.UNDELIVERABLE)],
    ),
    # A run or a job that wake has missed gets another chance.
    "last nudge of a lost run": (
        partial(operator_writes.nudge, RUNNING, last=True, **NUDGE),
        [entry(State.RETRYING, Why.RUN_LOST)],
    ),
    "redrive": (partial(operator_writes.redrive, DEAD, REDRIVE), [entry(State.QUEUED, Why.REDRIVEN)]),
    "redrive behind others": (
        partial(operator_writes.redrive, DEAD, REDRIVE, state=State.WAITING, sequence=3),
        [entry(State.WAITING, Why.REDRIVEN)],
    ),
    "redrive with another payload": (
        partial(operator_writes.redrive, DEAD, replace(REDRIVE, edited=True)),
        [entry(State.QUEUED, Why.EDITED)],
    ),
    "redrive of a job that was asked to end": (
        partial(operator_writes.redrive, ASKED_TO_END, REDRIVE),
        [entry(State.RUNNING, Why.CANCEL_REQUESTED, at=NOW + SECOND), entry(State.QUEUED, Why.REDRIVEN)],
    ),
    "signal": (partial(signal_writes.wakes, PARKED, A_SIGNAL), [entry(State.QUEUED, "signal approval", at=NOW)]),
    "look at a flow": (
        partial(flow_writes.look, WAITING_FOR_NODES, now=AT),
        [entry(State.QUEUED, Why.LOOK)],
    ),
    "submission that brings its job forward": (
        partial(
            debounce_writes.join,
            MOVING,
            replace(MOVING, state=State.QUEUED, due=AT + SECOND),
            by="b",
            now=AT,
            replaces=False,
            indexes=NOT_LISTED,
        ),
        [entry(State.QUEUED, Why.MOVED)],
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_records_its_state_and_its_cause(name: str) -> None:
    write, recorded = WRITES[name]

    values = write()["ExpressionAttributeValues"]

    written = transitions(values.get(":entries") or values[":new_history"])
    assert [*written] == [*recorded]
    state = values.get(":new_state")
    assert state is None or state["S"] == recorded[-1].state
    assert (state is None) is (name in {"nudge", "nudge of a retry"}), "a message is sent again for the same state"


@pytest.mark.parametrize(("job", "last", "death"), [(JOB, True, DeathReason.UNDELIVERABLE), (RUNNING, True, None)])
def test_only_a_job_without_a_claim_dies_of_its_last_nudge(job: Any, last: bool, death: str | None) -> None:
    values = operator_writes.nudge(job, last=last, **NUDGE)["ExpressionAttributeValues"]

    assert values.get(":new_death", {}).get("S") == death
    assert values.get(":new_attention", {}).get("S", "").startswith("dead#") is (death is not None)
    assert (":new_finished_at" in values) is (death is not None)


@pytest.mark.parametrize(("cause", "releases"), [(Why.CONFLICT, 4), (Why.CONTINUED, None)])
def test_a_run_that_is_released_does_not_count(cause: Why, releases: int | None) -> None:
    """Only conflicts are counted, since each of them makes the next pause longer."""
    job = with_changes(RUNNING, attempt=2, open_runs=3, releases=3)

    values = job_writes.release(job, now=AT, due=FAR, cause=cause)["ExpressionAttributeValues"]

    numbers = {
        name: int(values[name]["N"]) for name in (":new_attempt", ":new_open_runs", ":new_releases") if name in values
    }
    assert numbers == {":new_attempt": 1, ":new_open_runs": 2} | ({":new_releases": releases} if releases else {})
    assert values[":new_due"] == milliseconds(FAR)

"""A refused write counts as a success only if the document is as this write leaves it. A later change is a refusal."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import A_WAIT, NOW, SECOND, brought_to, with_changes
from tests.support.job_tables import Table
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import LONGEST_PARKED
from tidemill.dynamodb.job_store import DynamoJobStore

LATER = NOW + timedelta(hours=1)
LIMIT = timedelta(minutes=1)

Call = Callable[[DynamoJobStore, Job], object]

#: The state in which the job was read, the call, and what the call leaves of it.
CALLS: dict[str, tuple[State, Call, dict[str, Any]]] = {
    "wake": (State.SCHEDULED, lambda store, job: store.wake(job, now=NOW), {"state": State.QUEUED, "generation": 0}),
    "unpark": (
        State.PARKED,
        lambda store, job: store.unpark(job, now=NOW, due=LATER),
        {"state": State.QUEUED, "generation": 1, "due": LATER},
    ),
    "park": (
        State.QUEUED,
        lambda store, job: store.park(job, A_WAIT, now=NOW),
        {"state": State.PARKED, "generation": 1, "due": NOW + LONGEST_PARKED, "wait": A_WAIT},
    ),
    "resend": (State.QUEUED, lambda store, job: store.resend(job, now=LATER), {"generation": 0, "nudged_at": LATER}),
    "nudge": (
        State.QUEUED,
        lambda store, job: store.nudge(job, now=LATER, limit=LIMIT),
        {"generation": 0, "nudged_at": LATER, "nudges": 1},
    ),
}
#: How the document differs from what the call leaves.
OTHERS: dict[str, dict[str, Any]] = {
    "a later dispatch": {"generation": 1},
    "a later job": {"created_at": NOW + SECOND},
    "a run": {"state": State.RUNNING, "owner": "somebody"},
    "a later nudge": {"nudged_at": LATER + SECOND},
}
DIFFERENT = [
    *(("wake", other) for other in ("a later dispatch", "a later job", "a run")),
    *(("unpark", other) for other in ("a later dispatch", "a later job", "a run")),
    *(("park", other) for other in ("a later dispatch", "a later job", "a run")),
    *(("resend", other) for other in ("a later dispatch", "a later job", "a later nudge")),
    *(("nudge", other) for other in ("a later dispatch", "a later nudge")),
]


def as_left(job: Job, leaves: dict[str, Any]) -> Job:
    return with_changes(job, **leaves | {"generation": job.generation + leaves["generation"]})


@pytest.mark.parametrize("name", CALLS)
def test_a_document_as_the_call_leaves_it_is_its_success(store: DynamoJobStore, table: Table, name: str) -> None:
    state, call, leaves = CALLS[name]
    job = brought_to(store, state)
    table.put(as_left(job, leaves))

    call(store, job)

    assert store.get(job.tenant, job.id) == as_left(job, leaves)


@pytest.mark.parametrize(("name", "other"), DIFFERENT)
def test_a_document_that_another_write_left_is_a_refusal(
    store: DynamoJobStore, table: Table, name: str, other: str
) -> None:
    state, call, leaves = CALLS[name]
    job = brought_to(store, state)
    left, change = as_left(job, leaves), dict(OTHERS[other])
    if "generation" in change:
        change["generation"] += left.generation
    current = with_changes(left, **change)
    table.put(current)

    with pytest.raises(WriteRefusedError) as refused:
        call(store, job)

    assert refused.value.current == current == store.get(job.tenant, job.id)

"""The store's conditions and `TRANSITIONS` agree for every write and every state."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.support.builders import (
    A_BURST,
    A_SIGNAL,
    A_STEP,
    A_WAIT,
    FRESH,
    LEASE,
    NOW,
    SECOND,
    SETTLEMENTS,
    a_job,
    an_undo_of,
    behind_an_ended_head,
    brought_to,
    fresh_token,
    reference_to,
    stored,
    with_changes,
)
from tests.support.job_tables import Table
from tidemill.application.ports import Checkpoint
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.flows.flows import LOOK
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import AT_REST, TERMINAL, TRANSITIONS, State, Write
from tidemill.domain.waiting.signals import Awaited
from tidemill.domain.waiting.waiting import Cause
from tidemill.dynamodb.document import key
from tidemill.dynamodb.flows.flow_items import DynamoFlows
from tidemill.dynamodb.job_store import DynamoJobStore

#: When every due time and every lease is over, and nothing has expired.
LATE = NOW + timedelta(hours=1)
LIMIT = timedelta(minutes=1)
A_NODE = FlowPlace(id="flow", node="a")

Prepare = Callable[[DynamoJobStore, Table, State | None], Job]
Call = Callable[[DynamoJobStore, Job], object]


def _alone(store: DynamoJobStore, _table: Table, state: State | None) -> Job:
    return brought_to(store, state) if state else a_job()


def _behind_its_group(store: DynamoJobStore, table: Table, state: State | None) -> Job:
    """A job in `state`, or missing, in a group with a live head that has passed it."""
    job = with_changes(_alone(store, table, state), group=fresh_token(), sequence=0)
    store.insert_if_absent(a_job(group=job.group.key))
    if state:
        table.put(job)
    return job


def _next_in_group(*, in_seconds: int) -> Prepare:
    """A job in `state` in the place behind a head that has ended, due this many seconds after `LATE`."""

    def prepare(store: DynamoJobStore, table: Table, state: State | None) -> Job:
        waiting = behind_an_ended_head(store, run_at=LATE + in_seconds * SECOND)
        if state is None:
            table.client.delete_item(TableName=table.name, Key=key(waiting.tenant, waiting.id))
            return waiting
        alone = _alone(store, table, state)
        job = with_changes(
            alone, id=waiting.id, group=waiting.group.key, sequence=waiting.group.sequence, run_at=waiting.run_at
        )
        table.put(job)
        return job

    return prepare


def _debounced(store: DynamoJobStore, table: Table, state: State | None) -> Job:
    job = replace(_alone(store, table, state), burst=A_BURST)
    if state:
        table.put(job)
    return job


def _join(store: DynamoJobStore, job: Job, state: State) -> Job:
    changed = replace(job, state=state, due=job.due and job.due + SECOND)
    return store.join_debounce(job, changed, by="later", now=LATE, replaces=True)


def _blocked(store: DynamoJobStore, table: Table, state: State | None) -> Job:
    """A node of a flow without a document, with one that says that it is blocked, or with a job in `state`."""
    if state is not State.CANCELLED:
        job = replace(_alone(store, table, state), flow=A_NODE)
        if state:
            table.put(job)
        return job
    return store.insert_if_absent(a_job(state=state, due=None, flow=replace(A_NODE, mark=Mark.BLOCKED)))


def _blocked_behind_its_group(store: DynamoJobStore, table: Table, state: State | None) -> Job:
    job = with_changes(_blocked(store, table, state), group=fresh_token())
    store.insert_if_absent(a_job(group=job.group.key))
    return job


def _start(store: DynamoJobStore, job: Job) -> object:
    fresh = {"state": State.QUEUED, "created_at": LATE, "flow": A_NODE, **FRESH[State.QUEUED]}
    return store.insert_if_absent(with_changes(job, **fresh))


def _skip(store: DynamoJobStore, job: Job) -> object:
    skipped = replace(A_NODE, mark=Mark.SKIPPED)
    return store.insert_if_absent(replace(job, state=State.CANCELLED, created_at=LATE, due=None, flow=skipped))


def _waits_for_a_look(store: DynamoJobStore, table: Table, state: State | None) -> Job:
    """A flow in `state` which waits, if it can in that state."""
    job = _alone(store, table, state)
    if state not in {State.PARKED, State.QUEUED}:
        return job
    awaited = Awaited(cause=Cause.SIGNAL, name=LOOK, since=NOW, until=LATE)
    waits = with_changes(job, awaited=awaited, due=LATE, wait=awaited.wait if state is State.PARKED else None)
    table.put(waits)
    return waits


def _flows(store: DynamoJobStore) -> DynamoFlows:
    return DynamoFlows(store._client, table=store._table)


def _as_owner(job: Job) -> Job:
    return with_changes(job, owner=job.lease.owner or "no owner")


#: Each write, towards each state that it might bring about.
CASES: dict[tuple[Write, State], tuple[Prepare, Call]] = {
    **{
        (Write.INSERT, state): (
            _alone,
            lambda store, job, state=state: store.insert_if_absent(  # type: ignore[misc]
                replace(job, state=state, created_at=LATE, **FRESH[state])
            ),
        )
        for state in (State.QUEUED, State.SCHEDULED)
    },
    (Write.INSERT, State.WAITING): (
        _behind_its_group,
        lambda store, job: store.insert_if_absent(replace(job, state=State.QUEUED, created_at=LATE)),
    ),
    (Write.START_NODE, State.QUEUED): (_blocked, _start),
    (Write.START_NODE, State.WAITING): (_blocked_behind_its_group, _start),
    (Write.MARK_NODE, State.CANCELLED): (_blocked, _skip),
    **{
        (Write.LOOK, state): (_waits_for_a_look, lambda store, job: _flows(store).look(job, now=LATE))
        for state in (State.RUNNING, State.QUEUED)
    },
    **{
        (Write.ADD_NODES, state): (_alone, lambda store, job: _flows(store).add(job, "{}", now=LATE))
        for state in State
        if state not in TERMINAL
    },
    (Write.ADD_NODES, State.QUEUED): (_waits_for_a_look, lambda store, job: _flows(store).add(job, "{}", now=LATE)),
    (Write.CLAIM, State.RUNNING): (
        _alone,
        lambda store, job: store.claim(reference_to(job), token="late", now=LATE, lease_end=LATE + LEASE),
    ),
    **{
        (Write.SETTLE, state): (
            _alone,
            lambda store, job, state=state: store.settle(_as_owner(job), SETTLEMENTS[state], now=LATE),  # type: ignore[misc]
        )
        for state in SETTLEMENTS
    },
    (Write.RELEASE, State.RETRYING): (_alone, lambda store, job: store.release(_as_owner(job), now=LATE, due=LATE)),
    (Write.CHECKPOINT, State.RUNNING): (
        _alone,
        lambda store, job: store.checkpoint(_as_owner(job), Checkpoint(done=1), now=LATE),
    ),
    (Write.STEP, State.RUNNING): (_alone, lambda store, job: store.record_step(_as_owner(job), A_STEP)),
    **{
        (Write.CANCEL, state): (_alone, lambda store, job: store.cancel(job, now=LATE))
        for state in (State.CANCELLED, State.RUNNING)
    },
    (Write.PARK, State.PARKED): (_alone, lambda store, job: store.park(job, A_WAIT, now=LATE)),
    (Write.UNPARK, State.QUEUED): (_alone, lambda store, job: store.unpark(job, now=NOW, due=LATE)),
    **{
        (Write.SIGNAL, state): (
            _alone,
            lambda store, job, state=state: store.signal(job, A_SIGNAL, wakes=state is State.QUEUED is not job.state),  # type: ignore[misc]
        )
        for state in State
        if state not in TERMINAL - {State.DEAD}
    },
    (Write.WAKE, State.QUEUED): (_alone, lambda store, job: store.wake(job, now=NOW)),
    **{
        (Write.NUDGE, state): (_alone, lambda store, job: store.nudge(job, now=LATE, limit=LIMIT))
        for state in (State.QUEUED, State.RETRYING)
    },
    (Write.NUDGE, State.DEAD): (_alone, lambda store, job: store.nudge(job, now=LATE, limit=LIMIT, last=True)),
    **{
        (Write.RESEND, state): (_alone, lambda store, job: store.resend(job, now=LATE))
        for state in (State.QUEUED, State.RETRYING, State.DEAD)
    },
    **{
        (Write.REWRITE, state): (_alone, lambda store, job: store.rewrite(job, with_changes(job, payload='{"v":2}')))
        for state in State
        if state is not State.RUNNING
    },
    **{
        (Write.JOIN, state): (_debounced, lambda store, job, state=state: _join(store, job, state))  # type: ignore[misc]
        for state in (State.SCHEDULED, State.QUEUED, State.RETRYING, State.PARKED)
    },
    (Write.UNDO, State.SUCCEEDED): (_alone, lambda store, job: store.undo(job, *an_undo_of(job, created_at=LATE))),
    **{
        (Write.SUPERSEDE, state): (_alone, lambda store, job: store.supersede(job, a_job(created_at=LATE)))
        for state in State
        if state not in AT_REST
    },
    (Write.REDRIVE, State.QUEUED): (
        _alone,
        lambda store, job: store.redrive(job, token="late", now=LATE, by="ada"),
    ),
    (Write.REDRIVE, State.WAITING): (
        _behind_its_group,
        lambda store, job: store.redrive(job, token="late", now=LATE, by="ada"),
    ),
    (Write.ADVANCE, State.QUEUED): (
        _next_in_group(in_seconds=0),
        lambda store, job: store.advance(job.tenant, job.group.key or "", now=LATE),
    ),
    (Write.ADVANCE, State.SCHEDULED): (
        _next_in_group(in_seconds=2000),
        lambda store, job: store.advance(job.tenant, job.group.key or "", now=LATE),
    ),
}


def _after(store: DynamoJobStore, job: Job, call: Call) -> State | None:
    """The state after the call, or None if the call changed nothing."""
    before = store.get(job.tenant, job.id)
    try:
        call(store, job)
    except WriteRefusedError:
        assert store.get(job.tenant, job.id) == before
    return None if store.get(job.tenant, job.id) == before else stored(store, job).state


@pytest.mark.parametrize(("write", "after"), CASES, ids=str)
def test_the_store_accepts_a_write_exactly_in_the_states_of_the_table(
    store: DynamoJobStore, table: Table, write: Write, after: State
) -> None:
    prepare, call = CASES[write, after]

    reached = {before: _after(store, prepare(store, table, before), call) for before in (None, *State)}

    accepted = [before for before, state in reached.items() if state is after]
    assert accepted == [before for before in reached if after in TRANSITIONS[write].get(before, ())]


def test_every_transition_of_the_table_is_tested() -> None:
    assert set(CASES) == {
        (write, after) for write, rows in TRANSITIONS.items() for states in rows.values() for after in states
    }

"""The SDK retries a write whose response was lost. The effect of the first call must not refuse the second."""

import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import (
    A_BURST,
    A_SIGNAL,
    A_STEP,
    A_WAIT,
    NOW,
    SECOND,
    SETTLEMENTS,
    a_job,
    an_undo_of,
    behind_an_ended_head,
    brought_to,
    claimed,
    stored,
    with_changes,
)
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.application.flows.flow_nodes import FlowParts
from tidemill.application.ports import Checkpoint
from tidemill.domain.attempt.outcomes import Awaits, settlement
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.errors import StoreUnavailableError, WriteRefusedError
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.flows.flows import LOOK
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State, Write
from tidemill.domain.waiting.waiting import Cause
from tidemill.dynamodb.flows.flow_items import DynamoFlows
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.steps import run_writes

LIMIT = timedelta(minutes=1)
LATER = NOW + timedelta(hours=1)


def _join(store: DynamoJobStore, job: Job) -> object:
    moved = replace(job, due=job.due and job.due + SECOND)
    return store.join_debounce(job, moved, by="later", now=NOW, replaces=True)


def _blocked(store: DynamoJobStore) -> Job:
    blocked = FlowPlace(id="flow", node="a", mark=Mark.BLOCKED)
    return store.insert_if_absent(a_job(state=State.CANCELLED, due=None, flow=blocked))


def _started(job: Job) -> Job:
    return replace(job, state=State.QUEUED, created_at=LATER, due=LATER, flow=FlowPlace(id="flow", node="a"))


def _skipped(job: Job) -> Job:
    return replace(job, created_at=LATER, flow=FlowPlace(id="flow", node="a", mark=Mark.SKIPPED))


def _waiting(store: DynamoJobStore) -> Job:
    """A flow that waits for the ends of its nodes."""
    awaits = Awaits(cause=Cause.SIGNAL, name=LOOK, after=LIMIT)
    running = brought_to(store, State.RUNNING)
    store.settle(running, settlement(running, awaits, RetryPolicy(max_attempts=2), now=NOW, draw=0), now=NOW)
    return stored(store, running)


def _asked_to_look(store: DynamoJobStore, flow: Job) -> None:
    """Ask for a look as the callers do: they read the flow again if it has changed."""
    unused: Any = None
    parts = FlowParts(flows=_flows(store), jobs=store, submit=unused, graphs=unused, clock=lambda: LATER)
    parts.ask_to_look(flow.tenant, flow.id)


def _added(store: DynamoJobStore, flow: Job) -> None:
    # Its caller reads the flow again, which has these nodes then.
    with contextlib.suppress(WriteRefusedError):
        _flows(store).add(flow, "{}", now=LATER)


def _flows(store: DynamoJobStore) -> DynamoFlows:
    return DynamoFlows(store._client, table=store._table)


def _again(job: Job) -> Job:
    """The same submission, long after the job has expired."""
    assert job.lifetime.expires_at is not None
    return with_changes(
        job, state=State.QUEUED, created_at=job.lifetime.expires_at, due=job.lifetime.expires_at, expires_at=None
    )


#: Each write, on a job that was brought to where it needs to be.
WRITES: dict[Write, tuple[State | Callable[[DynamoJobStore], Job], Callable[[DynamoJobStore, Job], object]]] = {
    Write.INSERT: (State.DEAD, lambda store, job: store.insert_if_absent(_again(job))),
    Write.CLAIM: (State.QUEUED, claimed),
    Write.SETTLE: (State.RUNNING, lambda store, job: store.settle(job, SETTLEMENTS[State.RETRYING], now=NOW)),
    Write.RELEASE: (State.RUNNING, lambda store, job: store.release(job, now=NOW, due=NOW)),
    Write.CHECKPOINT: (State.RUNNING, lambda store, job: store.checkpoint(job, Checkpoint(state="[1]"), now=NOW)),
    Write.STEP: (State.RUNNING, lambda store, job: store.record_step(job, A_STEP)),
    Write.CANCEL: (State.QUEUED, lambda store, job: store.cancel(job, now=NOW)),
    Write.WAKE: (State.SCHEDULED, lambda store, job: store.wake(job, now=NOW)),
    Write.ADVANCE: (behind_an_ended_head, lambda store, job: store.advance(job.tenant, job.group.key or "", now=NOW)),
    Write.FORGET: (State.DEAD, lambda store, job: store.forget(job)),
    Write.NUDGE: (State.RUNNING, lambda store, job: store.nudge(job, now=LATER, limit=LIMIT)),
    Write.PARK: (State.RETRYING, lambda store, job: store.park(job, A_WAIT, now=NOW)),
    Write.UNPARK: (State.PARKED, lambda store, job: store.unpark(job, now=NOW, due=LATER)),
    Write.SIGNAL: (State.QUEUED, lambda store, job: store.signal(job, A_SIGNAL, wakes=True)),
    Write.RESEND: (State.QUEUED, lambda store, job: store.resend(job, now=LATER)),
    Write.REWRITE: (State.QUEUED, lambda store, job: store.rewrite(job, with_changes(job, payload='{"v":2}'))),
    Write.UNDO: (State.SUCCEEDED, lambda store, job: store.undo(job, *an_undo_of(job))),
    Write.SUPERSEDE: (State.QUEUED, lambda store, job: store.supersede(job, a_job())),
    Write.REDRIVE: (State.DEAD, lambda store, job: store.redrive(job, token="a redrive", now=NOW, by="ada")),
    Write.JOIN: (lambda store: store.insert_if_absent(a_job(burst=A_BURST)), _join),
    Write.START_NODE: (_blocked, lambda store, job: store.insert_if_absent(_started(job))),
    Write.MARK_NODE: (_blocked, lambda store, job: store.insert_if_absent(_skipped(job))),
    Write.LOOK: (_waiting, _asked_to_look),
    Write.ADD_NODES: (State.RUNNING, _added),
}


def _brought_to(store: DynamoJobStore, where: State | Callable[[DynamoJobStore], Job]) -> Job:
    return brought_to(store, where) if isinstance(where, State) else where(store)


def _but_for_tokens(job: Job | None) -> Job | None:
    if job is None:
        return None
    owners = {"owner": bool(job.lease.owner), "last_owner": bool(job.lease.last_owner)}
    undone = replace(job.correction.undone, job_id="either") if job.correction.undone else None
    later = "either" if job.correction.superseded_by else None
    cancel = replace(job.cancel.request, reason="either") if job.cancel.request else None
    marks = {"undone": undone, "superseded_by": later, "cancel": cancel}
    return with_changes(job, id="either", group=None, **marks, **owners)


@pytest.mark.parametrize("write", Write)
def test_a_write_that_was_sent_twice_succeeds_and_is_applied_once(
    store: DynamoJobStore, client: FaultyClient, table: Table, write: Write
) -> None:
    state, call = WRITES[write]
    twin, job = _brought_to(store, state), _brought_to(store, state)
    call(store, twin)

    client.faults = [Fault.SENT_TWICE]
    call(store, job)

    twins = [store.get(one.tenant, one.id) for one in (job, twin)]
    assert _but_for_tokens(twins[0]) == _but_for_tokens(twins[1])


@pytest.mark.parametrize("write", Write)
@pytest.mark.parametrize("fault", [Fault.NOT_SENT, Fault.ANSWER_LOST])
def test_a_write_without_a_response_is_unavailable_and_never_refused(
    store: DynamoJobStore, client: FaultyClient, write: Write, fault: Fault
) -> None:
    state, call = WRITES[write]
    job = _brought_to(store, state)

    client.faults = [fault]
    with pytest.raises(StoreUnavailableError):
        call(store, job)


def test_a_claim_sent_twice_returns_the_job_as_claimed_once(store: DynamoJobStore, client: FaultyClient) -> None:
    job = brought_to(store, State.QUEUED)

    client.faults = [Fault.SENT_TWICE]
    running = claimed(store, job)

    assert running == stored(store, job)
    assert running.attempt == 1


def test_a_settle_whose_response_was_lost_is_recognized_after_another_claim(
    store: DynamoJobStore,
) -> None:
    running = brought_to(store, State.RUNNING)
    store.settle(running, SETTLEMENTS[State.RETRYING], now=NOW)
    claimed(store, stored(store, running), token="another", now=NOW + 5 * SECOND)

    store.settle(running, SETTLEMENTS[State.RETRYING], now=NOW)

    assert stored(store, running).lease.owner == "another"


def test_a_rewrite_whose_response_was_lost_is_recognized_after_a_run(store: DynamoJobStore) -> None:
    """A refusal would have the payload deleted that the document names."""
    queued = brought_to(store, State.QUEUED)
    rewritten = with_changes(queued, payload=None, payload_at="item/of-this-call")
    store.rewrite(queued, rewritten)
    store.settle(claimed(store, queued), SETTLEMENTS[State.RETRYING], now=NOW)

    store.rewrite(queued, rewritten)

    assert stored(store, queued).payload.location == "item/of-this-call"


def test_a_redrive_whose_response_was_lost_is_recognized_after_another_redrive(store: DynamoJobStore) -> None:
    """A refusal would have the payload deleted that an operator gave to the job."""
    dead = brought_to(store, State.DEAD)
    again = store.redrive(dead, token="first", now=NOW, by="ada")
    store.settle(claimed(store, again), SETTLEMENTS[State.DEAD], now=NOW)
    store.redrive(stored(store, dead), token="second", now=NOW, by="ada")
    before = stored(store, dead)

    store.redrive(dead, token="first", now=NOW, by="ada")

    assert stored(store, dead) == before


def test_a_second_nudge_of_the_same_instant_is_refused_once_the_job_has_moved_on(store: DynamoJobStore) -> None:
    queued = brought_to(store, State.QUEUED)
    store.nudge(queued, now=LATER, limit=LIMIT)
    store.release(claimed(store, queued, now=LATER), now=LATER, due=LATER)

    with pytest.raises(WriteRefusedError):
        store.nudge(queued, now=LATER, limit=LIMIT)


def test_a_denied_write_is_neither_refused_nor_transient(
    store: DynamoJobStore, client: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = brought_to(store, State.QUEUED)

    def update_item(**_request: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "UpdateItem")

    monkeypatch.setattr(client, "update_item", update_item, raising=False)
    denied = DynamoJobStore(client, table="jobs", retention=LIMIT)  # type: ignore[arg-type]  # a proxy

    with pytest.raises(ClientError, match="AccessDenied"):
        claimed(denied, job)


def test_a_send_that_the_network_held_up_overwrites_no_later_checkpoint(
    store: DynamoJobStore, client: FaultyClient, table: Table
) -> None:
    """The SDK has sent it again, and the run has gone on."""
    job = brought_to(store, State.RUNNING)
    held_up = run_writes.checkpoint(job, Checkpoint(state="[1]"), now=NOW)
    store.checkpoint(job, Checkpoint(state="[1]"), now=NOW)
    store.checkpoint(job, Checkpoint(state="[2]"), now=LATER)

    with pytest.raises(ClientError, match="conditional"):
        client.update_item(TableName=table.name, **held_up)
    assert stored(store, job).progress.checkpoint == "[2]"


def test_the_end_of_a_node_does_not_count_as_written_if_the_node_was_started_just_before(
    store: DynamoJobStore, client: FaultyClient
) -> None:
    """Both documents have the trace of the flow and the same body."""
    job = a_job(flow=FlowPlace(id="flow", node="a"))
    started, ended = job, replace(job, state=State.CANCELLED, due=None, finished_at=job.created_at)
    skipped = replace(ended, flow=FlowPlace(id="flow", node="a", mark=Mark.SKIPPED))
    store.insert_if_absent(started)
    for late in (ended, skipped):
        with pytest.raises(WriteRefusedError):
            store.insert_if_absent(late)

    other = replace(ended, id="other")
    client.faults = [Fault.SENT_TWICE]
    store.insert_if_absent(other)
    with pytest.raises(WriteRefusedError):
        store.insert_if_absent(replace(skipped, id="other"))

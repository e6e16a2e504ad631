"""A redrive with another payload: what it writes, what it stores, and what it leaves after a refusal."""

import json
from typing import Any

import pytest

from tests.support.builders import RETENTION, SECOND, brought_to, fresh_token, stored, with_changes
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill.application.control.redrive import Redriver
from tidemill.application.ports import JobStore
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError
from tidemill.domain.history import Why
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.payloads import DynamoPayloads
from tidemill.in_memory.single_job import Inline

SHORT, LONG = '{"n":2}', json.dumps({"padding": "x" * 2_000})


@pytest.fixture
def redriver(store: JobStore, clock: Clock) -> Redriver:
    return Redriver(store=store, clock=clock, new_token=fresh_token)


@pytest.fixture
def payloads(table: Table) -> DynamoPayloads:
    def no_bucket() -> None:
        raise AssertionError("no payload here is a file")

    return DynamoPayloads(table.client, table=table.name, bucket=no_bucket, new_token=fresh_token)  # type: ignore[arg-type]


def _dead(store: JobStore, payloads: DynamoPayloads, payload: str) -> Job:
    return brought_to(store, State.DEAD, **_place(payloads, payload))


def _place(payloads: DynamoPayloads, payload: str) -> dict[str, object]:
    return {"payload": payload, "payload_at": None}


@pytest.mark.parametrize("payload", [SHORT, LONG])
def test_the_job_runs_with_the_other_payload_and_says_so(
    redriver: Redriver, store: JobStore, payloads: DynamoPayloads, payload: str
) -> None:
    dead = brought_to(store, State.DEAD)

    assert redriver.redrive_with(dead, payload, payloads, by="ada", reason="a typo")

    job = stored(store, dead)
    assert (payloads.load(job), job.state, job.attempt) == (payload, State.QUEUED, 0)
    assert (job.payload.text is None, job.payload.location is not None) == (payload == LONG, payload == LONG)
    assert (job.redrives[-1].edited, job.redrives[-1].by, job.history[-1].cause) == (True, "ada", Why.EDITED)
    # A replay of the submission has the old body, and must find this job.
    assert (job.id, job.body_hash) == (dead.id, dead.body_hash)


def test_a_short_payload_replaces_a_long_one(redriver: Redriver, store: JobStore, payloads: DynamoPayloads) -> None:
    dead = brought_to(store, State.DEAD)
    redriver.redrive_with(dead, LONG, payloads, by="ada")
    again = brought_to(store, State.DEAD, id=f"{dead.id}-2", payload=None, payload_at="item/token")

    redriver.redrive_with(again, SHORT, payloads, by="ada")

    assert (stored(store, again).payload.text, stored(store, again).payload.location) == (SHORT, None)


def test_an_ordinary_redrive_keeps_the_payload(redriver: Redriver, store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)

    assert redriver.redrive(with_changes(dead, payload=SHORT), by="ada")

    assert (stored(store, dead).payload.text, stored(store, dead).redrives[-1].edited) == (dead.payload.text, False)


@pytest.mark.parametrize("late", [True, False])
def test_a_refused_redrive_leaves_no_payload_behind(
    redriver: Redriver, store: JobStore, payloads: DynamoPayloads, table: Table, clock: Clock, *, late: bool
) -> None:
    dead = brought_to(store, State.DEAD)
    if late:
        clock.now += RETENTION + SECOND
    else:
        redriver.redrive(dead, by="bob")

    assert not redriver.redrive_with(dead, LONG, payloads, by="ada")

    keys = [item["pk"]["S"] for item in table.client.scan(TableName=table.name)["Items"]]
    assert not [key for key in keys if key.startswith("!payload")]
    assert stored(store, dead).payload.text == dead.payload.text


@pytest.mark.parametrize("applied", [True, False])
def test_a_redrive_that_meets_another_transaction_keeps_its_payload_if_the_document_names_it(
    redriver: Redriver, store: JobStore, payloads: DynamoPayloads, monkeypatch: pytest.MonkeyPatch, *, applied: bool
) -> None:
    dead, redrive, deleted = brought_to(store, State.DEAD), store.redrive, list[str | None]()

    def conflict(*arguments: Any, **named: Any) -> Job:
        if applied:
            redrive(*arguments, **named)
        raise TransactionConflictError("others were faster")

    monkeypatch.setattr(store, "redrive", conflict)
    monkeypatch.setattr(payloads, "delete", lambda _tenant, _job_id, location: deleted.append(location))

    with pytest.raises(TransactionConflictError):
        redriver.redrive_with(dead, LONG, payloads, by="ada")

    location = stored(store, dead).payload.location
    assert (location is not None, len(deleted)) == (applied, 0 if applied else 1)


def test_a_refused_redrive_is_reported_though_its_payload_stays(redriver: Redriver, store: JobStore) -> None:
    """Reconcile deletes it."""

    class Undeletable(Inline):
        def delete(self, tenant: str, job_id: str, location: str | None) -> None:
            raise StoreUnavailableError(f"{tenant}, {job_id}, {location}")

    dead = brought_to(store, State.DEAD)
    redriver.redrive(dead, by="bob")

    assert not redriver.redrive_with(dead, LONG, Undeletable(), by="ada")


def test_a_new_payload_is_young_for_reconcile_though_its_job_is_old(
    redriver: Redriver, store: JobStore, payloads: DynamoPayloads, table: Table, clock: Clock
) -> None:
    """Reconcile may read it before the document names it, and deletes what is old."""
    dead = brought_to(store, State.DEAD)
    clock.now += RETENTION / 2

    redriver.redrive_with(dead, LONG, payloads, by="ada")

    (stored_at,) = [
        int(item["stored_at"]["N"])
        for item in table.client.scan(TableName=table.name)["Items"]
        if item["pk"]["S"].startswith("!payload")
    ]
    assert stored_at == int(clock.now.timestamp() * 1000)

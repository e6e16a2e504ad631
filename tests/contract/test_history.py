"""The flight recorder: each write adds its transition, in order, and the document stays small."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import (
    LEASE,
    NOW,
    SECOND,
    SETTLEMENTS,
    a_job,
    behind_an_ended_head,
    brought_to,
    fresh_token,
    reference_to,
    stored,
    with_changes,
)
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.history import LEAST_KEPT, LEAST_KEPT_AFTER_FAILURE, MOST_UNREAD, Transition, Why
from tidemill.domain.job import OWNER, Job
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.history_entries import WRITE_UNIT_BYTES, size_bytes
from tidemill.dynamodb.job_store import DynamoJobStore

_LATER = NOW + LEASE + timedelta(hours=1)
_SNOOZED = Settlement(state=State.QUEUED, cause=Why.SNOOZED, due=NOW, attempt=0, hops=1)


def _story(job: Job) -> list[tuple[str, str, int | None]]:
    return [(entry.state, entry.cause, entry.attempt) for entry in job.known_history]


def _claim(store: DynamoJobStore, job: Job, worker: str = "") -> Job:
    now = max(NOW, job.due or NOW)
    return store.claim(reference_to(job), token=fresh_token(), now=now, lease_end=now + LEASE, worker=worker)


def test_a_job_records_its_runs(store: DynamoJobStore) -> None:
    job = a_job()
    store.insert_if_absent(job)
    failed = Settlement(state=State.RETRYING, cause="ValueError", due=NOW + SECOND)
    store.settle(_claim(store, job, "first/v1"), failed, now=NOW + SECOND)
    lost = _claim(store, stored(store, job), "second/v1")
    store.nudge(lost, now=_LATER, limit=SECOND)
    again = _claim(store, stored(store, job), "third/v2")
    store.settle(again, SETTLEMENTS[State.DEAD], now=_LATER)
    store.redrive(stored(store, job), token="a redrive", now=_LATER, by="ada")
    store.settle(_claim(store, stored(store, job), "fourth/v2"), SETTLEMENTS[State.SUCCEEDED], now=_LATER)

    ended = stored(store, job)

    assert _story(ended) == [
        ("accepted", "accepted", None),
        ("running", "claimed", 1),
        ("retrying", "ValueError", 1),
        ("running", "claimed", 2),
        ("retrying", "run lost", 2),
        ("running", "claimed", 3),
        ("dead", "dead", 3),
        ("queued", "redriven", None),
        ("running", "claimed", 1),
        ("succeeded", "succeeded", 1),
    ]
    assert [entry.worker for entry in ended.history if entry.worker] == [
        "first/v1",
        "second/v1",
        "third/v2",
        "fourth/v2",
    ]
    assert ended.history[0] == Transition(at=NOW, state=State.RUNNING, cause=Why.CLAIMED, worker="first/v1")


def test_a_run_that_another_takes_over_keeps_its_claim(store: DynamoJobStore) -> None:
    job = a_job()
    store.insert_if_absent(job)
    _claim(store, job, "killed")
    store.claim(reference_to(job), token="b", now=_LATER, lease_end=_LATER + LEASE, worker="next")

    assert _story(stored(store, job))[1:] == [("running", "claimed", 1), ("running", "claimed", 2)]
    assert [entry.worker for entry in stored(store, job).history] == ["killed", "next"]


def test_a_claim_that_is_given_back_does_not_count(store: DynamoJobStore) -> None:
    job = a_job()
    store.insert_if_absent(job)
    _claim(store, job)
    token = stored(store, job).lease.owner
    assert token is not None
    store.unclaim(reference_to(job), token=token, now=NOW)
    _claim(store, stored(store, job))

    assert _story(stored(store, job))[1:] == [
        ("running", "claimed", 1),
        ("retrying", "claim unanswered", 1),
        ("running", "claimed", 1),
    ]


def test_a_release_is_recorded(store: DynamoJobStore) -> None:
    running = brought_to(store, State.RUNNING)
    store.release(running, now=NOW, due=NOW + SECOND)

    assert _story(stored(store, running))[1:] == [("running", "claimed", 1), ("retrying", "conflict", 1)]


def test_the_ends_of_all_waits_are_recorded(store: DynamoJobStore) -> None:
    scheduled, parked = brought_to(store, State.SCHEDULED), brought_to(store, State.PARKED)
    store.wake(scheduled, now=_LATER)
    store.unpark(parked, now=_LATER, due=_LATER)
    waiting = behind_an_ended_head(store)
    store.advance(waiting.tenant, waiting.group.key or "", now=_LATER)
    queued = brought_to(store, State.QUEUED)
    store.nudge(queued, now=_LATER, limit=SECOND)

    last = [_story(stored(store, job))[-1] for job in (scheduled, parked, waiting, queued)]

    assert last == [
        ("queued", "due", None),
        ("queued", "released from its line", None),
        ("queued", "its turn in the group", None),
        ("queued", "nudged", None),
    ]
    assert {stored(store, job).history[-1].at for job in (scheduled, parked, waiting, queued)} == {_LATER}


def test_a_job_that_no_worker_claims_records_its_death(store: DynamoJobStore) -> None:
    queued = brought_to(store, State.QUEUED)
    store.nudge(queued, now=_LATER, limit=SECOND, last=True)

    assert _story(stored(store, queued))[1:] == [("dead", "undeliverable", None)]


def test_the_redrive_of_an_undeliverable_job_keeps_the_numbers_of_its_claims(store: DynamoJobStore) -> None:
    running = brought_to(store, State.RUNNING)
    for hours in (1, 2):
        store.nudge(stored(store, running), now=NOW + timedelta(hours=hours), limit=SECOND, last=hours == 2)

    redriven = store.redrive(stored(store, running), token="r", now=NOW + timedelta(hours=3), by="ada")

    assert [attempt for _, cause, attempt in _story(redriven) if cause == "claimed"] == [1]


def test_a_cancel_by_an_old_read_keeps_what_came_since(store: DynamoJobStore) -> None:
    job = a_job()
    store.insert_if_absent(job)
    store.settle(_claim(store, job), SETTLEMENTS[State.RETRYING], now=NOW)

    cancelled = store.cancel(job, now=_LATER, by=OWNER, reason="a typo")

    assert _story(cancelled)[1:] == [
        ("running", "claimed", 1),
        ("retrying", "retrying", 1),
        ("cancelled", "cancelled", None),
    ]
    assert cancelled.cancel.request == CancelRequest(by=OWNER, reason="a typo")


def test_a_request_to_end_a_run_is_recorded_at_its_time_and_survives_a_redrive(store: DynamoJobStore) -> None:
    running = brought_to(store, State.RUNNING)
    store.cancel(running, now=NOW + SECOND, by="arn:aws:sts::1:assumed-role/ops/ada")
    # The run is lost, and then each message. Otherwise a job that was asked to end does not die.
    store.nudge(stored(store, running), now=_LATER, limit=SECOND)
    store.nudge(stored(store, running), now=_LATER + 2 * SECOND, limit=SECOND, last=True)
    dead = stored(store, running)
    redriven = store.redrive(dead, token="a redrive", now=_LATER, by="ada", reason="fixed")

    lost = [("retrying", "run lost", 1), ("dead", "undeliverable", 1)]
    recorded = [("running", "claimed", 1), ("running", "cancel requested", None), *lost]
    assert _story(dead)[1:] == recorded
    assert dead.cancel.request == CancelRequest(by="arn:aws:sts::1:assumed-role/ops/ada")
    kept = {(state, cause) for state, cause, _attempt in _story(redriven)[1:]}
    assert kept == {("queued", "redriven"), *((state, cause) for state, cause, _attempt in recorded)}
    assert redriven.cancel.request is None
    assert redriven.redrives[-1].reason == "fixed"


def test_a_job_of_many_hops_keeps_its_last_transitions_within_one_write_unit(
    store: DynamoJobStore, table: Table
) -> None:
    job = a_job(trace="t" * 55, tags=("x" * 32,) * 5)
    store.insert_if_absent(job)
    kept, sizes = [], []
    for _ in range(30):
        running = _claim(store, stored(store, job), "0" * 36 + "/0123456789abcdef")
        sizes.append(size_bytes(table.item(job) or {}))
        store.settle(running, _SNOOZED, now=NOW)
        kept.append(len(stored(store, job).history))
        sizes.append(size_bytes(table.item(job) or {}))

    assert max(sizes) <= WRITE_UNIT_BYTES
    assert LEAST_KEPT <= kept[-1] == max(kept)
    assert _story(stored(store, job))[-2:] == [("running", "claimed", 1), ("queued", "snoozed", 1)]


def test_a_document_that_is_large_in_any_case_keeps_more(store: DynamoJobStore) -> None:
    job = a_job(checkpoint="x" * 2000)
    store.insert_if_absent(job)
    for _ in range(30):
        store.settle(_claim(store, stored(store, job)), _SNOOZED, now=NOW)

    assert 3 * LEAST_KEPT < len(stored(store, job).history) <= 32


def _past(job: Job) -> tuple[Transition, ...]:
    """Make as many claims as a document takes without a read. Each is taken back because its answer was lost."""
    taken_back = Transition(at=NOW, state=State.RETRYING, cause=Why.UNANSWERED)
    claim = Transition(at=NOW, state=State.RUNNING, cause=Why.CLAIMED, worker=f"of {job.id}")
    return (claim, taken_back) * (MOST_UNREAD // 2)


def test_claims_that_are_taken_back_do_not_fill_the_document(store: DynamoJobStore, table: Table) -> None:
    """In an outage that applies writes and swallows answers, nothing settles."""
    job = a_job()
    table.put(replace(job, history=_past(job)[: MOST_UNREAD - 4]))
    lengths = []
    for _ in range(6):
        claimed = _claim(store, stored(store, job), "worker")
        assert claimed.lease.owner
        store.unclaim(reference_to(claimed), token=claimed.lease.owner, now=NOW)
        lengths.append(len(stored(store, job).history))

    assert lengths == [98, 100, LEAST_KEPT_AFTER_FAILURE + 2, 16, 18, 20]
    assert _story(stored(store, job))[-2:] == [("running", "claimed", 1), ("retrying", "claim unanswered", 1)]


def test_a_claim_of_a_document_with_a_long_history_is_applied_once(
    store: DynamoJobStore, client: FaultyClient, table: Table
) -> None:
    job = a_job()
    table.put(replace(job, history=_past(job)))
    client.faults = [None, Fault.SENT_TWICE]

    claimed = _claim(store, job, "worker")

    assert claimed == stored(store, job)
    assert (claimed.attempt, claimed.state) == (1, State.RUNNING)
    assert [entry.worker for entry in claimed.history][-1] == "worker"


@pytest.mark.parametrize("change", [{"generation": 2}, {"due": _LATER}, {"due": None}], ids=str)
def test_a_long_history_allows_no_claim_that_is_otherwise_refused(
    store: DynamoJobStore, client: FaultyClient, table: Table, change: dict[str, Any]
) -> None:
    job = a_job()
    table.put(with_changes(job, history=_past(job), **change))
    before, writes = table.item(job), list[bool]()
    client.watch = writes.append

    with pytest.raises(WriteRefusedError):
        _claim(store, job)

    assert table.item(job) == before
    assert writes == [False], "it is not tried again"

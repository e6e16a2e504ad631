"""Attempts that are refused: by the handler's own condition, by other transactions, and by their documents."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import (
    LEASE,
    NOW,
    SECOND,
    a_job,
    a_job_type,
    brought_to,
    claimed,
    stored,
)
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tests.unit.conftest import Carry
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.attempt.run import Run
from tidemill.application.attempt.settle import MOST_RELEASES, SETTLE_TRIES
from tidemill.application.job_types import JobType
from tidemill.domain.attempt.return_values import Done
from tidemill.domain.dispatch.claim_verdict import AHEAD_DELAY, ClaimVerdict
from tidemill.domain.errors import EffectRefusedError, TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore


def _returning(value: Any) -> JobType:
    return a_job_type(lambda _payload, _run: value)


def _writes(table: Table, *, condition: str) -> Done:
    check = {"TableName": table.name, "Key": {"pk": {"S": "an effect"}}, "ConditionExpression": condition}
    return Done(writes=[{"ConditionCheck": check}])


def test_a_condition_of_the_handlers_that_does_not_hold_is_an_ordinary_failure(
    carry: Carry, store: DynamoJobStore, table: Table, queued: Job
) -> None:
    report = carry(queued, _returning(_writes(table, condition="attribute_exists(pk)")))

    assert report.ending is Ending.RETRYING
    assert stored(store, queued).errors[0].error_class == EffectRefusedError.__name__


def _conflict(monkeypatch: pytest.MonkeyPatch, store: DynamoJobStore, times: int) -> None:
    real = store.settle
    left = iter(range(times))

    def settle(*arguments: Any, **keywords: Any) -> Sequence[Job]:
        if next(left, None) is not None:
            raise TransactionConflictError
        return real(*arguments, **keywords)

    monkeypatch.setattr(store, "settle", settle)


def test_a_settle_is_tried_again_in_place_after_a_conflict(
    carry: Carry, store: DynamoJobStore, table: Table, queued: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    _conflict(monkeypatch, store, SETTLE_TRIES - 1)
    done = _writes(table, condition="attribute_not_exists(pk)")

    report = carry(queued, _returning(Done(writes=iter(done.writes))))  # type: ignore[arg-type]  # any iterable

    assert report.ending is Ending.SUCCEEDED
    assert stored(store, queued).attempt == 1


def test_an_attempt_that_only_meets_conflicts_is_given_back(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    _conflict(monkeypatch, store, SETTLE_TRIES)

    report = carry(queued)

    released = stored(store, queued)
    assert (report.ending, report.put_back_until) == (Ending.RELEASED, None)
    assert (released.state, released.attempt, released.generation) == (State.RETRYING, 0, 2)
    assert (released.lease.releases, released.due) == (1, clock.now + SECOND / 2)


def test_an_attempt_that_meets_conflicts_for_ever_fails_in_the_end(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = queued
    for _ in range(MOST_RELEASES):
        _conflict(monkeypatch, store, SETTLE_TRIES)
        assert carry(job).ending is Ending.RELEASED
        job = stored(store, queued)
        clock.now += timedelta(minutes=1)
    _conflict(monkeypatch, store, SETTLE_TRIES)

    assert carry(job).ending is Ending.RETRYING

    failed = stored(store, queued)
    assert (failed.attempt, failed.errors[0].error_class) == (1, "TransactionConflictError")


def test_an_attempt_that_lost_its_lease_while_it_met_conflicts_writes_nothing(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    _conflict(monkeypatch, store, SETTLE_TRIES)
    taken = []

    def stall(_payload: Any, _run: Run) -> None:
        clock.now += 2 * LEASE
        taken.append(claimed(store, queued, token="another", now=clock.now))

    report = carry(queued, a_job_type(stall))

    assert (report.ending, report.verdict, report.put_back_until) == (Ending.FENCED, ClaimVerdict.LEASED, taken[0].due)
    assert stored(store, queued) == taken[0]


def test_an_attempt_is_fenced_for_good_when_another_has_settled_the_job(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    def stall(_payload: Any, _run: Run) -> None:
        clock.now += 2 * LEASE
        store.release(claimed(store, queued, token="another", now=clock.now), now=clock.now, due=clock.now)

    report = carry(queued, a_job_type(stall))

    assert (report.ending, report.verdict, report.put_back_until) == (Ending.FENCED, ClaimVerdict.STALE, None)


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.DEAD])
def test_a_message_for_a_finished_job_is_acknowledged(carry: Carry, store: DynamoJobStore, state: State) -> None:
    job = brought_to(store, state)

    assert carry(job) == Report(ending=Ending.REFUSED, job=job, verdict=ClaimVerdict.DUPLICATE)


def test_a_message_of_an_earlier_dispatch_is_acknowledged(carry: Carry, store: DynamoJobStore) -> None:
    job = brought_to(store, State.RETRYING)

    assert carry(job, generation=1) == Report(ending=Ending.REFUSED, job=job, verdict=ClaimVerdict.STALE)


def test_a_message_for_no_job_is_acknowledged(carry: Carry) -> None:
    assert carry(a_job()) == Report(ending=Ending.REFUSED, verdict=ClaimVerdict.GONE)


def test_a_message_is_put_back_until_the_lease_of_another_ends(carry: Carry, store: DynamoJobStore) -> None:
    job = brought_to(store, State.RUNNING)

    assert carry(job) == Report(ending=Ending.REFUSED, job=job, verdict=ClaimVerdict.LEASED, put_back_until=NOW + LEASE)


def test_a_message_is_put_back_until_its_job_is_due(carry: Carry, store: DynamoJobStore) -> None:
    job = brought_to(store, State.QUEUED, due=NOW + 5 * SECOND)

    assert carry(job).put_back_until == NOW + 5 * SECOND


def test_a_message_ahead_of_its_document_waits_for_it(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    report = carry(queued, generation=2)

    assert (report.verdict, report.put_back_until) == (ClaimVerdict.AHEAD, NOW + AHEAD_DELAY)

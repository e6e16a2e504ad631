"""The payloads of follow-up jobs: stored before the settle, and deleted if another outcome was settled."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import LEASE, NOW, TENANT, a_job_type, claimed, reference_to, stored, types_of
from tests.support.group_jobs import items
from tests.support.in_memory_owed_work import owing
from tests.support.job_tables import Table
from tests.support.single_job import INVOCATION, Clock, carried_out, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.features import submit_features
from tidemill.application.submission.job_ids import keyed_job_id
from tidemill.domain.attempt.return_values import Done
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.names import PAYLOAD_PREFIX
from tidemill.powertools.idempotency import insert_once
from tidemill.system.ids import new_token

_LARGE = {"x": "x" * 1_000}

Meanwhile = Callable[[Attempt], Any]


def _no_bucket() -> Bucket:
    raise AssertionError("no payload here needs a bucket")


def _denied() -> ClientError:
    return ClientError({"Error": {"Code": "AccessDenied", "Message": "not authorized"}}, "DeleteObject")


@pytest.fixture
def carry(store: DynamoJobStore, table: Table, clock: Clock, queued: Job) -> Callable[..., Report]:
    def carry(meanwhile: Meanwhile = lambda _attempt: None, **done: Any) -> Report:
        def handler(_payload: Any, _run: Any) -> Done:
            meanwhile(attempt)
            return Done(**{"then": [Submission(type="test.job", payload=_LARGE)]} | done)

        payloads = DynamoPayloads(table.client, table=table.name, bucket=_no_bucket, new_token=new_token)
        types = types_of(a_job_type(handler))
        submit = submit_features.submit(
            store=store,
            payloads=owing(payloads),
            job_types=types,
            clock=clock,
            new_id=new_token,
            insert_once=insert_once,
        )
        with_payloads = replace(tools(store, types, clock), payloads=payloads, submit=submit)
        attempt = Attempt(reference_to(queued), with_payloads, deadline=NOW + INVOCATION)
        return carried_out(attempt)

    return carry


def test_it_stays_after_the_success(carry: Callable[..., Report], store: DynamoJobStore, table: Table) -> None:
    assert carry().ending is Ending.SUCCEEDED

    (follow_up,) = [job for job in store.overdue(before=NOW) if job.parent]
    assert follow_up.payload.location in items(table, PAYLOAD_PREFIX)[0]["pk"]["S"]


def test_two_follow_ups_with_one_key_store_one_payload(carry: Callable[..., Report], table: Table) -> None:
    carry(then=[Submission(type="test.job", key="one", payload=_LARGE)] * 2)

    assert len(items(table, PAYLOAD_PREFIX)) == 1


@pytest.mark.parametrize("error", [StoreUnavailableError("busy"), _denied()], ids=["unavailable", "denied"])
def test_a_payload_that_cannot_be_deleted_does_not_change_the_result(
    carry: Callable[..., Report],
    store: DynamoJobStore,
    queued: Job,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    def submitted(attempt: Attempt) -> None:
        attempt._context.submit(shared, tenant=TENANT, trace="another request")

    def delete(*_arguments: Any) -> None:
        raise error

    monkeypatch.setattr(DynamoPayloads, "delete", delete)
    shared = Submission(type="test.job", key="shared", payload=_LARGE)

    assert carry(submitted, then=[shared]).ending is Ending.SUCCEEDED
    assert stored(store, queued).state is State.SUCCEEDED


def test_it_is_deleted_when_the_job_exists_already(carry: Callable[..., Report], table: Table) -> None:
    def submitted(attempt: Attempt) -> None:
        attempt._context.submit(shared, tenant=TENANT, trace="another request")

    shared = Submission(type="test.job", key="shared", payload=_LARGE)

    assert carry(submitted, then=[shared]).ending is Ending.SUCCEEDED
    assert len(items(table, PAYLOAD_PREFIX)) == 1


def test_it_is_deleted_when_the_job_exists_already_and_the_answer_of_the_settle_was_lost(
    carry: Callable[..., Report], store: DynamoJobStore, table: Table, queued: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submitted(attempt: Attempt) -> None:
        attempt._context.submit(shared, tenant=TENANT, trace="another request")

    real, troubles = store.settle, iter([StoreUnavailableError("its answer was lost")])

    def settle(*arguments: Any, **named: Any) -> Sequence[Job]:
        existed = real(*arguments, **named)
        if trouble := next(troubles, None):
            raise trouble
        return existed

    monkeypatch.setattr(store, "settle", settle)
    shared = Submission(type="test.job", key="shared", payload=_LARGE)
    own = Submission(type="test.job", payload=_LARGE)

    assert carry(submitted, then=[shared, own]).ending is Ending.SUCCEEDED
    # The payload of the job which existed remains, and that of the other follow-up job.
    assert len(items(table, PAYLOAD_PREFIX)) == 2
    assert all(str(job.payload.location) in str(items(table, PAYLOAD_PREFIX)) for job in store.overdue(before=NOW))


def test_a_follow_up_whose_key_belongs_to_another_body_fails_the_attempt(
    carry: Callable[..., Report], store: DynamoJobStore, table: Table, queued: Job
) -> None:
    def submitted(attempt: Attempt) -> None:
        other = Submission(type="test.job", key="shared", payload={"other": "body"})
        attempt._context.submit(other, tenant=TENANT, trace="another request")

    report = carry(submitted, then=[Submission(type="test.job", key="shared", payload=_LARGE)])

    failed = stored(store, queued)
    assert (report.ending, failed.errors[0].error_class) == (Ending.RETRYING, "KeyReusedError")
    assert keyed_job_id(TENANT, "shared") in failed.errors[0].message
    assert items(table, PAYLOAD_PREFIX) == []


def test_two_follow_ups_with_one_key_and_two_bodies_fail_the_attempt(
    carry: Callable[..., Report], store: DynamoJobStore, table: Table, queued: Job
) -> None:
    then = [Submission(type="test.job", key="one", payload=_LARGE | {"n": number}) for number in range(2)]

    assert carry(then=then).ending is Ending.RETRYING
    assert stored(store, queued).errors[0].error_class == "KeyReusedError"
    assert items(table, PAYLOAD_PREFIX) == []


def test_it_is_deleted_when_the_run_is_released(
    carry: Callable[..., Report], store: DynamoJobStore, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def settle(*_arguments: Any, **_named: Any) -> Sequence[Job]:
        raise TransactionConflictError

    monkeypatch.setattr(store, "settle", settle)

    assert carry().ending is Ending.RELEASED
    assert items(table, PAYLOAD_PREFIX) == []


def test_it_stays_when_an_applied_success_causes_the_conflicts(
    carry: Callable[..., Report], store: DynamoJobStore, table: Table, queued: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, troubles = store.settle, iter([StoreUnavailableError("its answer was lost")])

    def settle(*arguments: Any, **named: Any) -> Sequence[Job]:
        if trouble := next(troubles, None):
            real(*arguments, **named)
            raise trouble
        raise TransactionConflictError

    monkeypatch.setattr(store, "settle", settle)

    carry()

    assert stored(store, queued).state is State.SUCCEEDED
    assert len(items(table, PAYLOAD_PREFIX)) == 1


def test_it_is_deleted_when_a_condition_of_the_handler_fails(carry: Callable[..., Report], table: Table) -> None:
    check = {
        "TableName": table.name,
        "Key": {"pk": {"S": "an effect"}},
        "ConditionExpression": "attribute_exists(pk)",
    }

    assert carry(writes=[{"ConditionCheck": check}]).ending is Ending.RETRYING
    assert items(table, PAYLOAD_PREFIX) == []


def test_it_is_deleted_when_the_run_timed_out(carry: Callable[..., Report], table: Table) -> None:
    assert carry(lambda attempt: attempt.expire()).ending is Ending.RETRYING

    assert items(table, PAYLOAD_PREFIX) == []


def test_it_stays_when_the_lease_was_lost_because_the_success_may_be_applied(
    carry: Callable[..., Report], store: DynamoJobStore, table: Table, clock: Clock, queued: Job
) -> None:
    def stall(_attempt: Attempt) -> None:
        clock.now += 2 * LEASE
        claimed(store, queued, token="another", now=clock.now)

    assert carry(stall).ending is Ending.FENCED
    assert len(items(table, PAYLOAD_PREFIX)) == 1

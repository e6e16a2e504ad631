"""Inserts of several jobs in one call: what each writes, what refuses it, and what a lost answer leaves behind."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from tests.support.builders import NOW, a_job, stored, with_changes
from tests.support.job_tables import Table
from tests.support.statements import statements_over
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.indexes import NOT_LISTED
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.submission.joint_inserts import JointInserts


class Client:
    """Passes the call on. `change` may change its answers, or raise instead."""

    def __init__(self, execute: Callable[..., Any]) -> None:
        self._execute = execute
        self.change: Callable[[Sequence[Any]], Sequence[Any]] = lambda answers: answers

    def batch_execute_statement(self, **request: Any) -> Any:
        return {"Responses": self.change(self._execute(**request)["Responses"])}


@pytest.fixture
def statements(table: Table, request: pytest.FixtureRequest) -> Client:
    on_moto = "moto" in request.node.name
    return Client(statements_over(table.client) if on_moto else table.client.batch_execute_statement)


@pytest.fixture
def failures() -> list[str]:
    return []


@pytest.fixture
def insert(table: Table, statements: Client, failures: list[str]) -> JointInserts:
    return JointInserts(
        statements,  # type: ignore[arg-type]  # a proxy
        table=table.name,
        indexes=NOT_LISTED,
        failed=failures.append,
    )


def _new(count: int = 3) -> list[Job]:
    return [a_job() for _ in range(count)]


def test_each_job_is_written_as_its_own_call_would_write_it(
    store: DynamoJobStore, insert: JointInserts, table: Table
) -> None:
    jobs, alone = _new(25), a_job()

    assert insert(jobs) == [True] * 25

    store.insert_if_absent(alone)
    like = table.item(alone)
    assert like
    for job in jobs:
        item = table.item(job)
        assert item
        assert item | {"pk": like["pk"], "trace": like["trace"]} == like
        assert stored(store, job) == job


@pytest.mark.parametrize("expired", [False, True])
def test_an_existing_job_stays_as_it_is_and_refuses_no_other(
    store: DynamoJobStore, insert: JointInserts, table: Table, failures: list[str], *, expired: bool
) -> None:
    first, second = _new(2)
    earlier = with_changes(first, trace="earlier", payload='{"n":1}')
    if expired:
        earlier = with_changes(earlier, state=State.SUCCEEDED, due=None, expires_at=NOW.replace(microsecond=0))
    table.put(earlier)

    assert insert([first, second]) == [False, True]
    assert stored(store, first) == earlier
    assert failures == []
    if expired:
        # The call of one job replaces it.
        assert store.insert_if_absent(first) == first
    else:
        with pytest.raises(WriteRefusedError):
            store.insert_if_absent(first)


def _fail(answers: Sequence[Any]) -> Sequence[Any]:
    return [{"Error": {"Code": "InternalServerError", "Message": "again"}} for _ in answers]


def _lose(_answers: Sequence[Any]) -> Sequence[Any]:
    raise ReadTimeoutError(endpoint_url="https://dynamodb.invalid")


@pytest.mark.parametrize("change", [_fail, _lose])
def test_a_job_whose_answer_was_lost_is_found_by_its_own_call(
    store: DynamoJobStore, insert: JointInserts, statements: Client, change: Callable[[Sequence[Any]], Sequence[Any]]
) -> None:
    jobs = _new(2)
    statements.change = change

    assert insert(jobs) == [False, False]
    assert [store.insert_if_absent(job) for job in jobs] == [stored(store, job) for job in jobs] == jobs


def test_a_call_that_is_sent_twice_leaves_its_jobs_to_calls_of_their_own(
    store: DynamoJobStore, insert: JointInserts
) -> None:
    jobs = _new(2)
    insert(jobs)

    assert insert(jobs) == [False, False]
    assert [store.insert_if_absent(job) for job in jobs] == jobs


#: AWS lists them: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementError.html
EXPECTED = [
    *("DuplicateItem", "TransactionConflict", "InternalServerError"),
    *("ProvisionedThroughputExceeded", "RequestLimitExceeded", "ThrottlingError"),
]


@pytest.mark.parametrize("code", EXPECTED)
def test_a_statement_that_may_fail_at_any_time_is_not_reported(
    insert: JointInserts, statements: Client, failures: list[str], code: str
) -> None:
    statements.change = lambda answers: [{"Error": {"Code": code}}, *answers[1:]]

    assert insert(_new(2)) == [False, True]
    assert failures == []


def test_a_statement_that_is_denied_or_wrong_is_reported_once(
    insert: JointInserts, statements: Client, failures: list[str]
) -> None:
    codes = ["ValidationError", "AccessDenied", "ValidationError", "ThrottlingError"]
    statements.change = lambda answers: [*({"Error": {"Code": code}} for code in codes), *answers[4:]]

    assert insert(_new(5)) == [False, False, False, False, True]
    assert failures == ["AccessDenied", "ValidationError"]


def test_a_denied_call_is_reported_and_raises_nothing(
    insert: JointInserts, statements: Client, failures: list[str]
) -> None:
    def deny(_answers: Sequence[Any]) -> Sequence[Any]:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "BatchExecuteStatement")

    statements.change = deny

    assert insert(_new(2)) == [False, False]
    (failure,) = failures
    assert "AccessDeniedException" in failure

"""The PartiQL of a request: the text, the order of its parameters, and what it does not say."""

import pytest

from tests.support.builders import LEASE, NOW, RETENTION, SETTLEMENTS, a_job
from tests.support.partiql_updates import UnknownStatementError, as_insert, as_update
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.states import State
from tidemill.dynamodb.attempt import settle_requests
from tidemill.dynamodb.attempt.first_claim import first_claim
from tidemill.dynamodb.document import HOLD_ATTRIBUTES
from tidemill.dynamodb.indexes import NOT_LISTED
from tidemill.dynamodb.partiql import insertion, statement
from tidemill.dynamodb.update_requests import Request, update_job

RUNNING = a_job(state=State.RUNNING, attempt=1, open_runs=1, owner="token")


def _settle(state: State) -> Request:
    return settle_requests.settle(RUNNING, SETTLEMENTS[state], now=NOW, retention=RETENTION, indexes=NOT_LISTED)


def test_the_claim_of_a_first_attempt() -> None:
    reference = reference_to(a_job())
    assert reference.first_run

    said = statement(
        "jobs", first_claim(reference, reference.first_run, token="token", now=NOW, lease_end=NOW + LEASE, worker="w")
    )

    assert said
    assert said["Statement"] == (
        'UPDATE "jobs" SET "state" = ? SET "owner" = ? SET "claimed_at" = ? SET "due" = ? SET "ready_at" = ? '
        'SET "attempt" = ? SET "open_runs" = ? SET "history" = ? SET "schema" = ? '
        'WHERE "pk" = ? AND "generation" = ? AND "due" = ? AND "type" = ? AND "attempt" = ? AND "history" IS MISSING '
        'AND "schema" <= ?'
    )
    assert said["Parameters"][0] == {"S": "running"}
    assert said["Parameters"][9] == {"S": f"{reference.tenant}#{reference.job_id}"}
    assert said["Parameters"][12] == {"S": "test.job"}


def test_a_success_removes_only_what_is_there() -> None:
    said = statement("jobs", _settle(State.SUCCEEDED), absent=[*HOLD_ATTRIBUTES, "wait"])

    assert said
    assert said["Statement"] == (
        'UPDATE "jobs" SET "state" = ? SET "result" = ? SET "finished_at" = ? SET "expires_at" = ? '
        'SET "last_owner" = ? SET "history" = ? SET "schema" = ? REMOVE "owner" REMOVE "open_runs" REMOVE "due" '
        'WHERE "pk" = ? AND "owner" = ? AND "schema" <= ?'
    )


def test_a_request_that_computes_a_value_is_not_said() -> None:
    assert statement("jobs", _settle(State.RETRYING)) is None


def test_a_request_with_another_condition_is_not_said() -> None:
    request = update_job(
        "tenant", "id", sets={}, conditions=["size(#steps) = :known"], names=["steps"], values={":known": {"N": "1"}}
    )

    assert statement("jobs", request) is None


@pytest.mark.parametrize("state", [State.SUCCEEDED])
def test_the_statement_says_what_the_request_does(state: State) -> None:
    """Read back by the parser that the simulator uses."""
    request = _settle(state)
    said = statement("jobs", request)
    assert said

    update = as_update(said)

    values = update["ExpressionAttributeValues"]
    assert update["Key"] == request["Key"]
    assert list(values.values()) == [
        value for name, value in request["ExpressionAttributeValues"].items() if name != ":owner"
    ] + [request["ExpressionAttributeValues"][name] for name in (":owner", ":new_schema")]


@pytest.mark.parametrize(
    "text",
    [
        'SELECT * FROM "jobs" WHERE "pk" = ?',
        'UPDATE "jobs" SET "a" = "b" WHERE "pk" = ?',
        'UPDATE "jobs" SET "a" = ? WHERE "pk" = ? OR "b" = ?',
        'UPDATE "jobs" SET "a" = ? WHERE "b" = ?',
        'UPDATE "jobs" SET "a" = ? WHERE "pk" = ? RETURNING ALL NEW *',
        'UPDATE jobs SET "a" = ? WHERE "pk" = ?',
    ],
)
def test_the_stand_in_refuses_what_the_code_does_not_send(text: str) -> None:
    with pytest.raises(UnknownStatementError):
        as_update({"Statement": text, "Parameters": [{"S": "1"}] * text.count("?")})


def test_an_insert_has_a_parameter_for_each_attribute() -> None:
    said = insertion("jobs", {"pk": {"S": "a"}, "generation": {"N": "1"}})

    assert said == {
        "Statement": """INSERT INTO "jobs" VALUE {'pk': ?, 'generation': ?}""",
        "Parameters": [{"S": "a"}, {"N": "1"}],
    }
    assert as_insert(said) == {
        "TableName": "jobs",
        "Item": {"pk": {"S": "a"}, "generation": {"N": "1"}},
        "ConditionExpression": "attribute_not_exists(pk)",
    }


def test_the_stand_in_knows_no_other_insert() -> None:
    assert as_insert({"Statement": 'INSERT INTO "jobs" VALUE ?', "Parameters": []}) is None
    with pytest.raises(UnknownStatementError):
        as_insert({"Statement": """INSERT INTO "jobs" VALUE {'pk': ?, 'pk': ?}""", "Parameters": []})

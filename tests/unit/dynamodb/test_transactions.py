"""What a cancelled or refused transaction means, by the purpose of the entry that DynamoDB names."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tidemill.domain.errors import (
    EffectRefusedError,
    InvalidEffectError,
    MissingResourceError,
    PermanentJobError,
    StoreUnavailableError,
    TransactionConflictError,
    TransactionTooLargeError,
)
from tidemill.dynamodb.transactions import Entry, Part, RefusedError, own, transact

ITEM = {"pk": {"S": "a"}}
HELD = "ConditionalCheckFailed"


class Client:
    """Raises `error`, or takes the transaction."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.requests: list[dict[str, Any]] = []

    def transact_write_items(self, **request: Any) -> None:
        self.requests.append(request)
        if self.error:
            raise self.error


def cancelled(*codes: str) -> ClientError:
    reasons = [{"Code": code} | ({"Item": ITEM} if code == HELD else {}) for code in codes]
    response: Any = {"Error": {"Code": "TransactionCanceledException", "Message": "no"}, "CancellationReasons": reasons}
    return ClientError(response, "TransactWriteItems")


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "TransactWriteItems")


def entries(*parts: Part) -> list[Entry]:
    return [Entry(part, {"Delete": {"Key": ITEM}}) for part in parts]


def sent(error: Exception | None, *parts: Part) -> Client:
    client: Any = Client(error)
    transact(client, entries(*parts))
    found: Client = client
    return found


@pytest.mark.parametrize("part", [part for part in Part if part is not Part.EFFECT])
def test_a_condition_of_tidemill_refuses_with_its_entry_and_item(part: Part) -> None:
    with pytest.raises(RefusedError) as refusal:
        sent(cancelled("None", HELD, "TransactionConflict"), Part.OWN, part, Part.EFFECT)

    (only,) = refusal.value.refusals
    assert (only.entry.part, only.item, refusal.value.of(part)) == (part, ITEM, [only])
    assert refusal.value.of(Part.EFFECT) == []


def test_a_condition_of_the_handler_refuses_its_effect() -> None:
    with pytest.raises(EffectRefusedError, match="write 1: ConditionalCheckFailed"):
        sent(cancelled("None", HELD), Part.OWN, Part.EFFECT)


def test_the_condition_of_the_job_counts_before_that_of_the_handler() -> None:
    with pytest.raises(RefusedError) as refusal:
        sent(cancelled(HELD, HELD), Part.OWN, Part.EFFECT)

    assert [one.entry.part for one in refusal.value.refusals] == [Part.OWN]


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
@pytest.mark.parametrize("part", [Part.GROUP, Part.EFFECT])
def test_contention_is_a_conflict(code: str, part: Part) -> None:
    with pytest.raises(TransactionConflictError):
        sent(cancelled("None", code), Part.OWN, part)


@pytest.mark.parametrize("part", [Part.JOB, Part.EFFECT])
def test_a_fault_besides_contention_is_the_fault_of_the_handler(part: Part) -> None:
    with pytest.raises(EffectRefusedError, match=r"^write 1: ValidationError: $"):
        sent(cancelled("TransactionConflict", "ValidationError"), Part.OWN, part)


def test_a_fault_without_a_handler_is_a_bug() -> None:
    with pytest.raises(ClientError):
        sent(cancelled("None", "ValidationError"), Part.OWN, Part.GROUP)


@pytest.mark.parametrize("error", [refused("ValidationException"), refused("ResourceNotFoundException")])
def test_a_request_that_is_refused_as_a_whole_is_the_fault_of_the_handler_if_it_has_a_part(error: ClientError) -> None:
    with pytest.raises(EffectRefusedError) as refusal:
        sent(error, Part.OWN, Part.JOB)
    assert not isinstance(refusal.value, PermanentJobError)
    with pytest.raises(InvalidEffectError):
        sent(error, Part.OWN, Part.EFFECT)
    for part in (Part.GROUP, Part.BATCH, Part.PARTNER):
        with pytest.raises((ClientError, MissingResourceError)):
            sent(error, Part.OWN, part)


def test_missing_rights_may_come_with_the_next_deployment() -> None:
    with pytest.raises(EffectRefusedError) as refusal:
        sent(refused("AccessDeniedException"), Part.OWN, Part.EFFECT)
    assert not isinstance(refusal.value, PermanentJobError)


@pytest.mark.parametrize("error", [KeyError("a"), TypeError("a"), ValueError("a"), RuntimeError("a"), RecursionError()])
def test_a_write_that_cannot_be_encoded_is_the_fault_of_the_handler(error: Exception) -> None:
    with pytest.raises(EffectRefusedError, match="not valid"):
        sent(error, Part.OWN, Part.EFFECT)
    with pytest.raises(type(error)):
        sent(error, Part.OWN, Part.GROUP)


def test_an_outage_is_nobodys_fault() -> None:
    with pytest.raises(StoreUnavailableError):
        sent(refused("InternalServerError"), Part.OWN, Part.EFFECT)


def test_a_transaction_has_at_most_a_hundred_entries() -> None:
    assert len(sent(None, *[Part.OWN] * 100).requests) == 1
    with pytest.raises(TransactionTooLargeError):
        sent(None, *[Part.OWN] * 101)


def test_each_transaction_has_a_token_of_its_own() -> None:
    tokens = [sent(None, Part.OWN).requests[0]["ClientRequestToken"] for _ in range(2)]

    assert all(tokens)
    assert tokens[0] != tokens[1]


def test_a_conditional_entry_returns_the_item_that_refuses_it() -> None:
    entry = own("Put", {"Item": ITEM, "ConditionExpression": "attribute_not_exists(pk)"}, table="jobs")

    assert entry.part is Part.OWN
    assert entry.write["Put"]["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"
    assert own("Delete", {"Key": ITEM}, table="jobs", part=Part.GROUP) == Entry(
        Part.GROUP, {"Delete": {"Key": ITEM, "TableName": "jobs"}}
    )

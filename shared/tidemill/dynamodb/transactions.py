"""Transactions of the jobs table: their entries, and the meaning of a cancelled transaction."""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError
from msgspec import Struct

from tidemill.aws.clients import Item, translated
from tidemill.domain.attempt.effects import TransactWrite
from tidemill.domain.error_text import text_of
from tidemill.domain.errors import (
    EffectRefusedError,
    InvalidEffectError,
    MissingResourceError,
    TidemillError,
    TransactionConflictError,
    TransactionTooLargeError,
)
from tidemill.dynamodb.update_requests import Request
from tidemill.system import ids

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
MOST_ENTRIES: Final = 100
_CANCELLED: Final = "TransactionCanceledException"
#: For example, that two entries write the same item. The data of an item is refused as a cancellation.
_INVALID: Final = "ValidationException"
#: Cancellation reasons that a retry can resolve.
_CONTENTION: Final = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


class Part(Enum):
    """The purpose of an entry of a transaction."""

    #: The main write of the transaction.
    OWN = auto()
    #: The insert of a follow-up job.
    JOB = auto()
    #: The order of a group. Refused when another write entered or advanced the group since it was read.
    GROUP = auto()
    #: The place of a job in its batch. Refused when the batch is closed, or its page is full.
    BATCH = auto()
    #: The insert of the job that undoes the own one.
    PARTNER = auto()
    #: A write of the handler.
    EFFECT = auto()


#: Parts that a handler requested, so that a fault in them is the handler's.
_REQUESTED: Final = frozenset({Part.JOB, Part.EFFECT})


class Entry(Struct, frozen=True):
    """One write of a transaction."""

    part: Part
    write: TransactWrite


class Refusal(Struct, frozen=True):
    """An entry whose condition did not hold, and the item that refused it, or None if it is missing."""

    entry: Entry
    item: Item | None


class RefusedError(Exception):
    """Conditions of Tidemill cancelled a transaction. Nothing was written."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__(f"{len(refusals)} conditions did not hold")
        self.refusals = refusals

    def of(self, part: Part) -> list[Refusal]:
        return [refusal for refusal in self.refusals if refusal.entry.part is part]


def own(kind: str, request: Request, *, table: str, part: Part = Part.OWN) -> Entry:
    """A request of Tidemill as an entry. `kind` is `Put`, `Update` or `Delete`."""
    returning = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"} if "ConditionExpression" in request else {}
    return Entry(part, {kind: request | {"TableName": table} | returning})


def transact(client: "DynamoDBClient", entries: Sequence[Entry]) -> None:
    """All or nothing.

    Raises `RefusedError`, `TransactionConflictError` and `StoreUnavailableError`; for entries that a handler requested
    also `EffectRefusedError` and `TransactionTooLargeError`. It is an `InvalidEffectError` if no retry can help.
    """
    if len(entries) > MOST_ENTRIES:
        raise TransactionTooLargeError(len(entries), MOST_ENTRIES)
    requested = any(entry.part in _REQUESTED for entry in entries)
    items: Any = [entry.write for entry in entries]
    try:
        with translated():
            # SDK retries carry the same token. A retry by Tidemill needs none: its condition finds the earlier write.
            client.transact_write_items(TransactItems=items, ClientRequestToken=ids.new_token())
    except (ClientError, MissingResourceError) as error:
        if isinstance(error, ClientError) and (meaning := _cancellation(error, entries)):
            raise meaning from error
        if not requested:
            raise
        # Invalid entries, a missing table or missing rights. The next settle, without those entries, reports it.
        raise _refusal(error, entries)(f"the handler's writes or follow-up jobs were refused: {error}") from error
    except TidemillError:
        raise
    except Exception as error:
        if not requested:
            raise
        # The client does not validate parameters, so invalid ones fail in its encoder, with any error.
        raise EffectRefusedError(f"the handler's writes are not valid: {text_of(error, repr)}") from error


def _refusal(error: ClientError | MissingResourceError, entries: Sequence[Entry]) -> type[EffectRefusedError]:
    """The rights of a function may be those of before a deployment. A missing table and an invalid write stay."""
    missing = isinstance(error, MissingResourceError) or error.response["Error"]["Code"] == _INVALID
    return InvalidEffectError if missing and any(entry.part is Part.EFFECT for entry in entries) else EffectRefusedError


def _cancellation(error: ClientError, entries: Sequence[Entry]) -> Exception | None:
    """The error for a cancelled transaction, from its reasons, which have the order of the entries.

    None for a programming error.
    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """
    response: Mapping[str, Any] = error.response
    if response["Error"]["Code"] != _CANCELLED:
        return None
    reasons = list(zip(entries, response["CancellationReasons"], strict=True))
    refusals = [
        Refusal(entry, reason.get("Item"))
        for entry, reason in reasons
        if entry.part is not Part.EFFECT and reason["Code"] == "ConditionalCheckFailed"
    ]
    if refusals:
        return RefusedError(refusals)
    faults = [
        f"write {index}: {reason['Code']}: {reason.get('Message', '')}"
        for index, (_, reason) in enumerate(reasons)
        if reason["Code"] not in _CONTENTION | {"None"}
    ]
    if not faults:
        return TransactionConflictError(str(error))
    return EffectRefusedError("; ".join(faults)) if any(entry.part in _REQUESTED for entry in entries) else None

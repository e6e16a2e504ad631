"""Transactions of the jobs table: what goes into one, and what it means when one is cancelled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import EffectRefusedError, TransactionConflictError, TransactionTooLargeError
from tidemill.domain.outcomes import TransactWrite
from tidemill.dynamodb.update_requests import Request
from tidemill.system import ids

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
MOST_ENTRIES: Final = 100
_CANCELLED: Final = "TransactionCanceledException"
#: Reasons of a cancelled transaction that are nobody's fault.
_CONTENTION: Final = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


class Part(Enum):
    """Whose an entry of a transaction is."""

    #: The write that the transaction is about.
    OWN = auto()
    #: A job that comes into being with it.
    JOB = auto()
    #: The order of a group: refused when somebody else entered or advanced it since it was read.
    GROUP = auto()
    #: A handler's own.
    EFFECT = auto()


#: What a handler asks for, and may have got wrong.
_ASKED: Final = frozenset({Part.JOB, Part.EFFECT})


@dataclass(frozen=True, slots=True)
class Entry:
    """One write of a transaction."""

    part: Part
    write: TransactWrite


@dataclass(frozen=True, slots=True)
class Refusal:
    """An entry whose condition did not hold, and the item that refused it, if there is one."""

    entry: Entry
    item: Item | None


class RefusedError(Exception):
    """A transaction was cancelled by conditions of ours. Nothing was written."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__(f"{len(refusals)} conditions did not hold")
        self.refusals = refusals

    def of(self, part: Part) -> list[Refusal]:
        return [refusal for refusal in self.refusals if refusal.entry.part is part]


def own(kind: str, request: Request, *, table: str, part: Part = Part.OWN) -> Entry:
    """A request of ours as an entry. `kind` is `Put`, `Update` or `Delete`."""
    returning = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"} if "ConditionExpression" in request else {}
    return Entry(part, {kind: request | {"TableName": table} | returning})


def transact(client: "DynamoDBClient", entries: Sequence[Entry]) -> None:
    """All or nothing.

    Raises `RefusedError`, `TransactionConflictError` and `StoreUnavailableError`; with entries that a handler asked for
    also `EffectRefusedError` and `TransactionTooLargeError`.
    """
    if len(entries) > MOST_ENTRIES:
        raise TransactionTooLargeError(len(entries), MOST_ENTRIES)
    asked = any(entry.part in _ASKED for entry in entries)
    items: Any = [entry.write for entry in entries]
    try:
        with translated():
            # The SDK's own repeats carry the same token. A repeat of ours needs none: it finds what it wrote.
            client.transact_write_items(TransactItems=items, ClientRequestToken=ids.new_token())
    except ClientError as error:
        if meaning := _cancellation(error, entries):
            raise meaning from error
        if not asked:
            raise
        # Not valid, no such table, not allowed: a settle without what the handler asked for will tell of it.
        raise EffectRefusedError(f"the handler's writes or follow-up jobs were refused: {error}") from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        if not asked:
            raise
        # The client does not validate what it sends, so it trips over what it cannot encode.
        raise EffectRefusedError(f"the handler's writes are not valid: {error!r}") from error


def _cancellation(error: ClientError, entries: Sequence[Entry]) -> Exception | None:
    """What a cancelled transaction means, read reason by reason; they stand in the order of the entries.

    None for what has nothing to do with anybody else's writes.
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
    return EffectRefusedError("; ".join(faults)) if any(entry.part in _ASKED for entry in entries) else None

"""Transactions of the jobs table: what goes into one, and what it means when one is cancelled."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from shared.adapters.clients import Item, translated
from shared.adapters.requests import Request
from shared.domain.errors import EffectRefusedError, TransactionConflictError, TransactionTooLargeError
from shared.domain.outcomes import TransactWrite

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
_MOST_ENTRIES: Final = 100
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


@dataclass(frozen=True, slots=True)
class Entry:
    part: Part
    write: TransactWrite


@dataclass(frozen=True, slots=True)
class Refusal:
    """An entry whose condition did not hold, and the item that refused it, if there is one."""

    index: int
    part: Part
    item: Item | None


class RefusedError(Exception):
    """A transaction was cancelled by conditions of ours. Nothing was written."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__(f"{len(refusals)} conditions did not hold")
        self.refusals = refusals

    def of(self, part: Part) -> list[Refusal]:
        return [refusal for refusal in self.refusals if refusal.part is part]


def own(kind: str, request: Request, *, table: str, part: Part = Part.OWN) -> Entry:
    """A request of ours as an entry. `kind` is `Put`, `Update`, `Delete` or `ConditionCheck`."""
    returning = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"} if "ConditionExpression" in request else {}
    return Entry(part, {kind: request | {"TableName": table} | returning})


def transact(client: "DynamoDBClient", entries: Sequence[Entry], *, token: str) -> None:
    """All or nothing. `token` makes a repeat by the SDK harmless; other entries need another one.

    Raises `RefusedError`, `EffectRefusedError`, `TransactionConflictError`, `TransactionTooLargeError` and
    `StoreUnavailableError`.
    """
    if len(entries) > _MOST_ENTRIES:
        raise TransactionTooLargeError(len(entries), _MOST_ENTRIES)
    items: Any = [entry.write for entry in entries]
    try:
        with translated():
            client.transact_write_items(TransactItems=items, ClientRequestToken=token)
    except ClientError as error:
        raise _cancellation(error, entries) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # The client does not validate what it sends, so it trips over what it cannot encode.
        raise EffectRefusedError(f"the handler's writes are not valid: {error!r}") from error


def insist(attempt: Callable[[int], Any], *, tries: int, pause: Callable[[int], None]) -> Any:
    """`attempt(n)` until it is not refused by a group or another transaction; then what it raised last."""
    for number in range(tries):
        try:
            return attempt(number)
        except (RefusedError, TransactionConflictError) as error:
            if isinstance(error, RefusedError) and error.of(Part.OWN):
                raise
            trouble: Exception = error
            pause(number)
    raise TransactionConflictError(f"others were faster {tries} times: {trouble}") from trouble


def _cancellation(error: ClientError, entries: Sequence[Entry]) -> Exception:
    """What a cancelled transaction means, read reason by reason; they stand in the order of the entries.

    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """
    response: Mapping[str, Any] = error.response
    if response["Error"]["Code"] != "TransactionCanceledException":
        # Not valid, no such table, not allowed: a settle without the handler's writes will tell of it.
        return EffectRefusedError(f"the handler's writes were refused: {error}")
    reasons = list(enumerate(zip(entries, response["CancellationReasons"], strict=True)))
    refusals = [
        Refusal(index, entry.part, reason.get("Item"))
        for index, (entry, reason) in reasons
        if entry.part is not Part.EFFECT and reason["Code"] == "ConditionalCheckFailed"
    ]
    if refusals:
        return RefusedError(refusals)
    effects = [
        f"write {index}: {reason['Code']}: {reason.get('Message', '')}"
        for index, (_, reason) in reasons
        if reason["Code"] not in _CONTENTION | {"None"}
    ]
    return EffectRefusedError("; ".join(effects)) if effects else TransactionConflictError(str(error))

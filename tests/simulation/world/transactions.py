"""TransactWriteItems: it tests the conditions and holds the items at once, and writes all or none a little later.

https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import ReadTimeoutError

from tests.simulation.world.dynamodb import DynamoDB, holds, updated
from tests.simulation.world.dynamodb_table import Item, Key, Table, size
from tests.simulation.world.errors import ServiceError, invalid
from tests.simulation.world.faults import Fault
from tests.simulation.world.sdk import URL
from tests.simulation.world.task_scheduler import Task

_MOST_ENTRIES: Final = 100
_LARGEST_BYTES: Final = 4 * 1024 * 1024
#: "A client request token is valid for 10 minutes after the first request that uses it is completed."
TOKEN_KEPT_MS: Final = 10 * 60 * 1000
_LONGEST_MS: Final = 6
_SLOW_MS: Final = (1_900, 5_000)
_PATIENCE_MS: Final = 2_000

Request = Mapping[str, Any]


@dataclass(slots=True)
class _Completed:
    request: str
    #: None while it is in progress.
    at_ms: int | None = None
    waiting: list[tuple[Task, object]] = field(default_factory=list)


class Transactions:
    """The transactions of one world's tables."""

    def __init__(self, dynamodb: DynamoDB) -> None:
        self._dynamodb = dynamodb
        self._scheduler = dynamodb.scheduler
        self._tokens: dict[str, _Completed] = {}

    def transact_write_items(self, request: Request) -> dict[str, Any]:
        entries = [next(iter(entry.items())) for entry in request["TransactItems"]]
        if not 0 < len(entries) <= _MOST_ENTRIES:
            raise invalid("Member must have length less than or equal to 100")
        token = request.get("ClientRequestToken") or ""
        if token and (known := self._tokens.get(token)) and self._again(known, request):
            return {}
        rows = [self._row(write) for _, write in entries]
        if len({(table.name, key) for table, key in rows}) < len(rows):
            raise invalid("Transaction request cannot include multiple operations on one item")
        changes = self._changes(rows, entries)
        if sum(size(after) for _, _, after in changes if after is not None) > _LARGEST_BYTES:
            raise invalid("Transaction size cannot exceed 4 MB")
        completed = _Completed(_identity(request))
        if token:
            self._tokens[token] = completed
        for table, key in rows:
            table.held.add(key)
        self._commit_soon(rows, changes, completed)
        return {}

    def _again(self, known: _Completed, request: Request) -> bool:
        """Whether a transaction with this token has completed, so that the repeat does nothing."""
        if known.at_ms is not None and self._scheduler.now_ms - known.at_ms >= TOKEN_KEPT_MS:
            return False
        if known.request != _identity(request):
            raise ServiceError("IdempotentParameterMismatchException", "the token was used with other parameters")
        if known.at_ms is None:
            raise ServiceError("TransactionInProgressException", "The transaction with the given token is in progress")
        return True

    def _row(self, write: Request) -> tuple[Table, Key]:
        table = self._dynamodb.table(write["TableName"])
        return table, table.key(write.get("Key") or write["Item"])

    def _changes(
        self, rows: list[tuple[Table, Key]], entries: list[tuple[str, Request]]
    ) -> list[tuple[Table, Key, Item | None]]:
        """The writes of the transaction. Raises the cancellation, with reasons in the order of the entries."""
        reasons: list[dict[str, Any]] = []
        changes: list[tuple[Table, Key, Item | None]] = []
        for (table, key), (kind, write) in zip(rows, entries, strict=True):
            reason = self._reason(table, key, write)
            if not reason and kind != "ConditionCheck":
                try:
                    changes.append((table, key, _after(table, kind, key, write)))
                except ServiceError as error:
                    if kind != "Update":
                        raise
                    # The present item makes the update invalid.
                    reason = {"Code": "ValidationError", "Message": error.message}
            reasons.append(reason or {"Code": "None"})
        if any(reason["Code"] != "None" for reason in reasons):
            codes = ", ".join(reason["Code"] for reason in reasons)
            raise ServiceError(
                "TransactionCanceledException",
                f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
                CancellationReasons=reasons,
            )
        return changes

    def _reason(self, table: Table, key: Key, write: Request) -> dict[str, Any] | None:
        """The reason that cancels an entry, apart from its own update."""
        item = table.items.get(key)
        if key in table.held or self._dynamodb.faults.occurs(Fault.TRANSACTION_CONFLICT):
            return {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
        if holds(item, write):
            return None
        reason: dict[str, Any] = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
        if item is not None and write.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD":
            reason["Item"] = dict(item)
        return reason

    def _commit_soon(
        self, rows: list[tuple[Table, Key]], changes: list[tuple[Table, Key, Item | None]], completed: _Completed
    ) -> None:
        """Commit later, even if the caller has died by then."""
        task, token = self._scheduler.current, object()

        def commit() -> None:
            for table, key in rows:
                table.held.discard(key)
            for table, key, after in changes:
                table.put(key, after, now_ms=self._scheduler.now_ms)
            completed.at_ms = self._scheduler.now_ms
            if task:
                self._scheduler.wake(task, token)

        if task is None:
            commit()
            return
        if self._dynamodb.faults.occurs(Fault.TRANSACTION_UNDER_WAY):
            # Longer than the timeout of the client. Its retry meets the transaction.
            self._scheduler.after(self._scheduler.random.randint(*_SLOW_MS), commit)
            self._scheduler.sleep(_PATIENCE_MS)
            raise ReadTimeoutError(endpoint_url=URL)
        self._scheduler.after(self._scheduler.random.randint(1, _LONGEST_MS), commit)
        self._scheduler.park(token)


def _identity(request: Request) -> str:
    """The parameters of a request, independent of the order within objects."""
    return json.dumps(request["TransactItems"], sort_keys=True, default=repr)


def _after(table: Table, kind: str, key: Key, write: Request) -> Item | None:
    match kind:
        case "Put":
            return table.checked(dict(write["Item"]))
        case "Update":
            return table.checked(updated(table, table.items.get(key), write))
        case _:
            return None

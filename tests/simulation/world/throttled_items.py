"""Throttled items: for a while DynamoDB rejects every call that touches one of them, and no other call.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.simulation.world.dynamodb import DynamoDB
from tests.simulation.world.dynamodb_table import Item, Record, Table
from tests.simulation.world.errors import ServiceError
from tests.simulation.world.faults import Fault
from tests.simulation.world.transactions import Transactions
from tidemill.domain.states import TERMINAL
from tidemill.dynamodb.groups.group_items import head_key

#: Some periods end before publish gives the group up, some long after.
_THROTTLED_FOR_MS: Final = (20_000, 400_000, 1_500_000, 1_500_000)

#: Time after which the SDK retries.
_PATIENCE_MS: Final = 2_000

Request = Mapping[str, Any]


class ThrottledItems:
    """Handles calls before `DynamoDB`. It throttles a group item when it is needed: as a job of the group ends."""

    def __init__(self, jobs: Table, dynamodb: DynamoDB, transactions: Transactions) -> None:
        self._dynamodb = dynamodb
        self._transactions = transactions
        self._until_ms: dict[str, int] = {}
        jobs.watchers.append(self._changed)

    def throttle(self, key: str, *, for_ms: int) -> None:
        self._until_ms[key] = self._dynamodb.now_ms + for_ms

    def put_item(self, request: Request) -> dict[str, Any]:
        """The response to an insert may be lost, and its retry meet the transaction that settles the first run."""
        self._refuse([request["Item"]])
        answer = self._dynamodb.put_item(request)
        if "state" in request["Item"] and self._dynamodb.faults.occurs(Fault.REPEAT_CONFLICTS):
            self._dynamodb.scheduler.sleep(_PATIENCE_MS)
            raise ServiceError("TransactionConflictException", "Transaction is ongoing for the item")
        return answer

    def get_item(self, request: Request) -> Item:
        self._refuse([request["Key"]])
        return self._dynamodb.get_item(request)

    def update_item(self, request: Request) -> dict[str, Any]:
        self._refuse([request["Key"]])
        return self._dynamodb.update_item(request)

    def transact_write_items(self, request: Request) -> dict[str, Any]:
        writes = [write for entry in request["TransactItems"] for write in entry.values()]
        self._refuse([write.get("Key") or write["Item"] for write in writes])
        return self._transactions.transact_write_items(request)

    def _refuse(self, items: Sequence[Item]) -> None:
        if self._dynamodb.faults.stopped or not self._until_ms:
            return
        for item in items:
            key = item.get("pk", {}).get("S", "")
            if self._dynamodb.now_ms < self._until_ms.get(key, 0):
                raise ServiceError("ThrottlingException", f"{key} is asked for too much")

    def _changed(self, record: Record) -> None:
        before, after = record.before or {}, record.after or {}
        if "group" in after and "state" in after and before.get("state") != after["state"]:
            ended = after["state"]["S"] in TERMINAL
            if ended and self._dynamodb.faults.occurs(Fault.GROUP_THROTTLED):
                tenant = record.keys["pk"]["S"].rpartition("#")[0]
                key: str = head_key(tenant, after["group"]["S"])["pk"]["S"]
                random = self._dynamodb.scheduler.random
                self.throttle(key, for_ms=random.randint(1_000, random.choice(_THROTTLED_FOR_MS)))

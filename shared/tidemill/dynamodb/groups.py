"""The order of groups: the job at the head, the jobs that wait behind it, and the next job.

The transaction that inserts a job of a group gives it a position. The order item of the group holds the positions of
its head and its tail. Each waiting job has a small position item, which leads from its position to its id. Every change
of an order is conditional on the version that was read, so one of two concurrent changes fails and reads again.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job, Redrive
from tidemill.domain.outcomes import parked_until
from tidemill.domain.states import State, Write
from tidemill.dynamodb import group_items, operator_writes
from tidemill.dynamodb.document import decode
from tidemill.dynamodb.group_items import Order
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.transactions import Entry, Part, RefusedError, own, transact
from tidemill.dynamodb.update_requests import Request
from tidemill.system import ids, random_draw

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: How long the item of an empty group is kept, so that the positions of a group in use keep rising.
EMPTY_GROUP_KEPT: Final = timedelta(days=1)
#: The most position items that one transaction deletes.
MOST_PASSED: Final = 25
#: The most such transactions in one call, because other callers wait for it.
MOST_STEPS: Final = 20
#: How often a write is tried when other writes changed the order, and the ceiling of the random pause before a retry.
#: The ceiling doubles up to the longest, so that all tries together take one or two seconds.
TRIES: Final = 10
_FIRST_PAUSE_SECONDS: Final = 0.02
_LONGEST_PAUSE_SECONDS: Final = 0.5

Result = TypeVar("Result")


class DynamoGroups:
    """The groups of one table of jobs. `read` reads a job, consistently.

    Methods that write raise `TransactionConflictError` after too many conflicts with other writes to the group.
    """

    def __init__(
        self, client: "DynamoDBClient", *, table: str, read: Callable[[str, str], Job | None], indexes: Indexes
    ) -> None:
        self._client = client
        self._table = table
        self._read = read
        self._indexes = indexes

    def enter(self, jobs: Sequence[Job]) -> tuple[list[Job], list[Entry]]:
        """The jobs, with positions in their groups, and the further entries of the transaction that inserts them."""
        orders: dict[tuple[str, str], Order] = {}
        placed: list[Job] = []
        positions: list[Entry] = []
        for job in jobs:
            if job.group is None:
                placed.append(job)
                continue
            name = (job.tenant, job.group)
            orders[name], joined = (orders.get(name) or self._order(*name)).joined_by(job)
            placed.append(joined)
            positions += self._position(orders[name], joined)
        return placed, [*positions, *(self._write(order) for order in orders.values())]

    def insert(self, job: Job, insertion: Callable[[Job], Request], *, mine: Callable[[Job], bool]) -> Job:
        """Raises `WriteRefusedError`."""

        def attempt() -> Job:
            (placed,), entries = self.enter([job])
            self._transact([own("Put", insertion(placed), table=self._table), *entries])
            return placed

        return self._unless_refused(attempt, Write.INSERT, mine)

    def redrive(self, job: Job, entry: Redrive, *, mine: Callable[[Job], bool]) -> Job:
        """Queue the job if it is the head of its group, else put it at the tail. Raises `WriteRefusedError`."""

        def attempt() -> Job | None:
            order, revived = self._order(job.tenant, job.group or ""), replace(job, state=State.QUEUED)
            if not order.led_by(job):
                order, revived = order.joined_by(revived)
            # Write the order even if it is unchanged: a concurrent advance that read the dead job must read again.
            entries = [self._write(order), *self._position(order, revived)]
            request = operator_writes.redrive(job, entry, state=revived.state, sequence=revived.sequence)
            self._transact([own("Update", request, table=self._table), *entries])
            return self._read(job.tenant, job.id)

        written = self._unless_refused(attempt, Write.REDRIVE, mine)
        if written is None:
            raise WriteRefusedError(Write.REDRIVE, None)
        return written

    def advance(self, tenant: str, group: str, *, now: datetime) -> Job | None:
        """As `advance` of the port. Raises `TransactionConflictError` when one call skips too many cancelled jobs."""
        for _ in range(MOST_STEPS):
            job, further = _retried(lambda: self._step(tenant, group, now))
            if not further:
                return job
        raise TransactionConflictError(
            f"{MOST_STEPS * MOST_PASSED} cancelled jobs were skipped and more remain; advance again"
        )

    @staticmethod
    def open(items: Iterable[Item]) -> Iterator[tuple[str, str]]:
        """Tenant and name of the non-empty groups among these items of the table."""
        for item in items:
            if group_items.is_order(item) and not (order := group_items.decoded(item)).empty:
                yield order.tenant, order.group

    def _step(self, tenant: str, group: str, now: datetime) -> tuple[Job | None, bool]:
        """Move the head to the next waiting job. Returns that job, and whether another step is needed to find one."""
        order = self._order(tenant, group)
        if order.empty or self._waits_for_head(order):
            return None, False
        cleared = []
        for sequence in range(order.head + 1, min(order.head + MOST_PASSED, order.tail) + 1):
            cleared.append(self._entry("Delete", group_items.delete_position(order, sequence)))
            if job := self._waiting_at(order, sequence):
                due = max(job.run_at or now, now)
                job = replace(job, state=parked_until(due, now=now, otherwise=State.QUEUED), due=due)
                moved = replace(order, head=sequence, head_id=job.id)
                self._transact(
                    [
                        self._entry("Update", group_items.take_turn(job, indexes=self._indexes)),
                        self._write(moved),
                        *cleared,
                    ]
                )
                return job, False
        passed = order.head + len(cleared)
        if passed < order.tail:
            self._transact([self._write(replace(order, head=passed, head_id=None)), *cleared])
            return None, True
        emptied = replace(order, head=order.tail + 1, head_id=None)
        self._transact([self._write(emptied, expires_at=now + EMPTY_GROUP_KEPT), *cleared])
        return None, False

    def _waits_for_head(self, order: Order) -> bool:
        """Whether the group must wait for its head: the head is live, or it is dead and blocks."""
        head = self._read(order.tenant, order.head_id) if order.head_id else None
        if head is None or not order.led_by(head):
            return False
        return not head.state.terminal or (head.state is State.DEAD and head.blocks)

    def _waiting_at(self, order: Order, sequence: int) -> Job | None:
        """The waiting job at this position; None if it was cancelled."""
        position = self._get(group_items.position_key(order, sequence))
        job = self._read(order.tenant, position["job"]["S"]) if position else None
        return job if job and order.holds(job, sequence) and job.state is State.WAITING else None

    def _order(self, tenant: str, group: str) -> Order:
        item = self._get(group_items.order_key(tenant, group))
        return group_items.decoded(item) if item else Order(tenant=tenant, group=group)

    def _get(self, item_key: Item) -> Item | None:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=item_key, ConsistentRead=True)
        return answer.get("Item")

    def _write(self, order: Order, *, expires_at: datetime | None = None) -> Entry:
        return self._entry("Put", group_items.put_order(order, version=ids.new_token(), expires_at=expires_at))

    def _position(self, order: Order, job: Job) -> list[Entry]:
        """The position item of a waiting job. The head needs none: the order item names it."""
        return [self._entry("Put", group_items.put_position(order, job))] if job.state is State.WAITING else []

    def _entry(self, kind: str, request: Request) -> Entry:
        return own(kind, request, table=self._table, part=Part.GROUP)

    def _transact(self, entries: Sequence[Entry]) -> None:
        transact(self._client, entries)

    @staticmethod
    def _unless_refused(attempt: Callable[[], Result], write: Write, mine: Callable[[Job], bool]) -> Result | Job:
        """A refusal by a document that this call wrote is the SDK's retry of its own success."""
        try:
            return _retried(attempt)
        except RefusedError as refused:
            (refusal,) = refused.of(Part.OWN)
            current = decode(refusal.item) if refusal.item else None
            if current and mine(current):
                return current
            raise WriteRefusedError(write, current) from None


def _retried(attempt: Callable[[], Result]) -> Result:
    """Retry `attempt` while other writes change the order. Raises `RefusedError` when its own write is refused."""
    tries = 0
    while True:
        try:
            return attempt()
        except (RefusedError, TransactionConflictError) as error:
            if isinstance(error, RefusedError) and error.of(Part.OWN):
                raise
            if (tries := tries + 1) == TRIES:
                raise TransactionConflictError(f"others were faster {TRIES} times: {error}") from error
        ceiling_seconds = min(_FIRST_PAUSE_SECONDS * 2**tries, _LONGEST_PAUSE_SECONDS)
        time.sleep(ceiling_seconds * random_draw.draw())

"""The order of groups: the job at the head, the jobs that wait behind it, and the next job.

The transaction that inserts a job of a group gives it a position. A job that waits writes the tail; a turn writes the
head; so the two do not contend. Each waiting job has a small position item, which leads from its position to its id.
Every change is conditional on the version that was read, so one of two concurrent changes fails and reads again.

A job may enter to wait just as the head ends. Its own stream record then advances the group.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from tidemill.aws.clients import Item, translated
from tidemill.domain.attempt.outcomes import state_until
from tidemill.domain.errors import TransactionConflictError, WriteRefusedError
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import Job, Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State, Write
from tidemill.dynamodb.document import decode
from tidemill.dynamodb.groups import group_items
from tidemill.dynamodb.groups.group_items import Head, Order, Tail
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.operations import operator_writes
from tidemill.dynamodb.transactions import Entry, Part, RefusedError, own, transact
from tidemill.dynamodb.update_requests import Request
from tidemill.system import ids, random_draw

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: How long the head of an idle group is kept, so that the positions of a group in use keep rising.
IDLE_GROUP_KEPT: Final = timedelta(days=1)
#: The most position items that one transaction deletes.
MOST_PASSED: Final = 25
#: The most such transactions in one call, because other callers wait for it.
MOST_STEPS: Final = 20
#: For how long a write is tried while other writes change the group: callers wait for it, and it may be repeated later.
TRIED_FOR: Final = timedelta(seconds=1)
#: The ceiling of the random pause before a retry. It doubles up to the longest.
_FIRST_PAUSE_SECONDS: Final = 0.02
_LONGEST_PAUSE_SECONDS: Final = 0.25

Result = TypeVar("Result")


class DynamoGroups:
    """The groups of one table of jobs. `read` reads a job, consistently.

    Methods that write raise `TransactionConflictError` if other writes to the group were faster for `TRIED_FOR`.
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
            if job.group.key is None:
                placed.append(job)
                continue
            name = (job.tenant, job.group.key)
            orders[name], joined = (orders.get(name) or self._order(*name)).joined_by(job)
            placed.append(joined)
            positions += self._position(joined)
        return placed, [*positions, *(entry for order in orders.values() for entry in self._write(order))]

    def insert(
        self,
        job: Job,
        insertion: Callable[[Job], Request],
        *,
        mine: Callable[[Job], bool],
        beside: Sequence[Entry] = (),
    ) -> Job:
        """Insert a job, in a group or not, in one transaction with the entries `beside`.

        Raises `WriteRefusedError`, and `RefusedError` if one of `beside` is refused.
        """

        def attempt() -> Job:
            (placed,), entries = self.enter([job])
            self._transact([own("Put", insertion(placed), table=self._table), *entries, *beside])
            return placed

        return self._unless_refused(attempt, Write.INSERT, mine)

    def insert_with(
        self,
        job: Job,
        insertion: Callable[[Job], Request],
        *,
        update: Request,
        write: Write,
        mine: Callable[[Job], bool],
    ) -> Job:
        """Insert `job`, in a group or not, in one transaction with the update of another job, whose `write` it is.

        Raises `WriteRefusedError` if the other job refuses.
        """

        def attempt() -> Job:
            (placed,), entries = self.enter([job])
            put = own("Put", insertion(placed), table=self._table, part=Part.PARTNER)
            self._transact([own("Update", update, table=self._table), put, *entries])
            return placed

        written = self._unless_refused(attempt, write, mine)
        if written.id == job.id:
            return written
        if (inserted := self._read(job.tenant, job.id)) is None:
            # The mark was that of an earlier call with the same id, whose job has been deleted.
            raise WriteRefusedError(write, written)
        return inserted

    def redrive(self, job: Job, group: str, entry: Redrive, *, mine: Callable[[Job], bool]) -> Job:
        """Queue the job if it is the head of its group, else put it at the tail. Raises `WriteRefusedError`."""

        def attempt() -> Job | None:
            revived, head = replace(job, state=State.QUEUED), self._head(job.tenant, group)
            if head.leads(job):
                # Write the head unchanged: a concurrent advance that read the dead job must read again.
                entries = [self._put_head(head)]
            else:
                (revived,), entries = self.enter([revived])
            request = operator_writes.redrive(job, entry, state=revived.state, sequence=revived.group.sequence)
            self._transact([own("Update", request, table=self._table), *entries])
            return self._read(job.tenant, job.id)

        written = self._unless_refused(attempt, Write.REDRIVE, mine)
        if written is None:
            raise WriteRefusedError(Write.REDRIVE, None)
        return written

    def advance(self, tenant: str, group: str, *, now: datetime) -> Job | None:
        """Advance the group. Raises `TransactionConflictError` if the next job is not found in `MOST_STEPS`."""
        for _ in range(MOST_STEPS):
            job, further = retried(lambda: self._step(tenant, group, now))
            if not further:
                return job
        raise TransactionConflictError(
            f"no next job in {MOST_STEPS} steps, each past at most {MOST_PASSED} cancelled jobs; advance again"
        )

    @staticmethod
    def open(items: Iterable[Item]) -> Iterator[tuple[str, str]]:
        """Tenant and name of the groups with jobs among these items of the table."""
        for item in items:
            if group_items.is_head(item) and not (head := group_items.decoded_head(item)).idle:
                yield head.tenant, head.group

    def _step(self, tenant: str, group: str, now: datetime) -> tuple[Job | None, bool]:
        """Move the head to the next waiting job. Returns that job, and whether another step is needed to find one."""
        head = self._head(tenant, group)
        if head.idle or self._waits_for_head(head):
            return None, False
        cleared: list[Entry] = []
        while len(cleared) < MOST_PASSED:
            sequence = head.sequence + len(cleared) + 1
            position = self._get(group_items.position_key(head, sequence))
            if position is None:
                break
            cleared.append(self._entry("Delete", group_items.delete_position(head, sequence)))
            if job := self._waiting_at(head, sequence, position["job"]["S"]):
                due = max(job.run_at or now, now)
                state = state_until(due, now=now, otherwise=State.QUEUED)
                turn = Transition(at=now, state=state, cause=Why.TURN)
                job = replace(job, state=state, due=due, history=(*job.history, turn))
                moved = replace(head, sequence=sequence, job_id=job.id)
                taken = self._entry("Update", group_items.become_head(job, indexes=self._indexes))
                self._transact([taken, self._put_head(moved), *cleared])
                return job, False
        if cleared:
            passed = replace(head, sequence=head.sequence + len(cleared), job_id=None)
            self._transact([self._put_head(passed), *cleared])
            return None, True
        return None, not self._leave(head, now)

    def _leave(self, head: Head, now: datetime) -> bool:
        """Mark the group as idle. False if it has changed since the head was read, so that it must be read again.

        If the tail is ahead, then a job has entered, or another advance has passed cancelled jobs. That advance may
        have been killed before it reached the next job.
        """
        tail = self._tail(head.tenant, head.group)
        if tail is not None and tail.sequence != head.sequence:
            return False
        request = group_items.put_idle_head(head, version=ids.new_token(), expires_at=now + IDLE_GROUP_KEPT)
        entries = [self._entry("Put", request)]
        if tail is not None:
            entries.append(self._entry("Delete", group_items.delete_tail(tail)))
        # A job enters at this moment, and its record advances the group. Otherwise reconcile finds the group again.
        with contextlib.suppress(TransactionConflictError):
            self._transact(entries)
        return True

    def _waits_for_head(self, head: Head) -> bool:
        """Whether the group must wait for its head: the head is live, or it is dead and blocks."""
        job = self._read(head.tenant, head.job_id) if head.job_id else None
        if job is None or not head.leads(job):
            return False
        return not job.state.terminal or (job.state is State.DEAD and job.group.blocks)

    def _waiting_at(self, head: Head, sequence: int, job_id: str) -> Job | None:
        """The job at this position if it still waits there. One that does not was cancelled, or had its turn."""
        job = self._read(head.tenant, job_id)
        there = job is not None and group_items.at_position(job, head.group, sequence)
        return job if job and there and job.state is State.WAITING else None

    def _order(self, tenant: str, group: str) -> Order:
        """An idle group has no tail, and a new tail is written together with the head."""
        tail = self._tail(tenant, group)
        return Order(None, tail) if tail else Order(self._head(tenant, group), None)

    def _head(self, tenant: str, group: str) -> Head:
        item = self._get(group_items.head_key(tenant, group))
        return group_items.decoded_head(item) if item else Head(tenant=tenant, group=group)

    def _tail(self, tenant: str, group: str) -> Tail | None:
        item = self._get(group_items.tail_key(tenant, group))
        return group_items.decoded_tail(item) if item else None

    def _get(self, item_key: Item) -> Item | None:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=item_key, ConsistentRead=True)
        return answer.get("Item")

    def _write(self, order: Order) -> Iterator[Entry]:
        """What was read is written: what the job's position was derived from must not have changed."""
        if order.head is not None:
            yield self._put_head(order.head)
        if order.tail is not None:
            yield self._entry("Put", group_items.put_tail(order.tail, version=ids.new_token()))

    def _put_head(self, head: Head) -> Entry:
        return self._entry("Put", group_items.put_head(head, version=ids.new_token()))

    def _position(self, job: Job) -> list[Entry]:
        """The position item of a waiting job. The head needs none: its item names it."""
        return [self._entry("Put", group_items.put_position(job))] if job.state is State.WAITING else []

    def _entry(self, kind: str, request: Request) -> Entry:
        return own(kind, request, table=self._table, part=Part.GROUP)

    def _transact(self, entries: Sequence[Entry]) -> None:
        transact(self._client, entries)

    @staticmethod
    def _unless_refused(attempt: Callable[[], Result], write: Write, mine: Callable[[Job], bool]) -> Result | Job:
        """A refusal by a document that this call wrote is the SDK's retry of its own success."""
        try:
            return retried(attempt)
        except RefusedError as refused:
            if not refused.of(Part.OWN):
                raise
            (refusal,) = refused.of(Part.OWN)
            current = decode(refusal.item) if refusal.item else None
            if current and mine(current):
                return current
            raise WriteRefusedError(write, current) from None


def retried(attempt: Callable[[], Result]) -> Result:
    """Retry `attempt` while other writes change what it depends on.

    Raises `RefusedError` when its own write is refused, or the place in its batch.
    """
    deadline = time.monotonic() + TRIED_FOR.total_seconds()
    ceiling_seconds = _FIRST_PAUSE_SECONDS
    while True:
        try:
            return attempt()
        except (RefusedError, TransactionConflictError) as error:
            if isinstance(error, RefusedError) and (error.of(Part.OWN) or error.of(Part.BATCH)):
                raise
            pause_seconds = ceiling_seconds * random_draw.draw()
            if time.monotonic() + pause_seconds >= deadline:
                raise TransactionConflictError(f"others were faster for {TRIED_FOR.total_seconds():g} s") from error
        time.sleep(pause_seconds)
        ceiling_seconds = min(2 * ceiling_seconds, _LONGEST_PAUSE_SECONDS)

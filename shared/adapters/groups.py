"""The order of groups: who is its head, who waits behind, and who comes next.

A group has one item with the sequence numbers of its `head` and `tail`, and each job that waits has a small item, its
place, that leads from its number to its id. Every write of the order asks for the version that was read, so of two that
meet one reads again. The head is the lowest job that has not ended; a group whose head is past its tail is empty.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from shared.adapters import clock, operator_writes
from shared.adapters.clients import Item, translated
from shared.adapters.document import decode, key, milliseconds, number, seconds, text
from shared.adapters.requests import Request, attention, update
from shared.adapters.transactions import Entry, Part, RefusedError, insist, own, transact
from shared.domain.errors import WriteRefusedError
from shared.domain.job import Job, Redrive
from shared.domain.outcomes import parked_until
from shared.domain.states import State, Write
from shared.names import JOB_KEY, TTL_ATTRIBUTE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: No tenant begins with it, so no key of a job does.
GROUP_PREFIX: Final = "!group#"
PLACE_PREFIX: Final = "!place#"
#: An empty group is remembered for so long. Its numbers may then begin anew: nobody is left who has one.
EMPTY_GROUP_KEPT: Final = timedelta(days=1)
#: How often an order is read again, and the ceiling of the first pause before, which doubles.
_TRIES: Final = 10
_PAUSE_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The item of a group."""

    tenant: str
    group: str
    head: int = 1
    tail: int = 0
    #: The job at the head; None when the group is empty.
    head_id: str | None = None
    #: Raised by every write; 0 before the first.
    version: int = 0

    @property
    def empty(self) -> bool:
        return self.head > self.tail

    def joined_by(self, job: Job) -> tuple["Order", Job]:
        """The order with `job` at its tail, and the job in its place."""
        sequence = self.tail + 1
        if self.empty:
            return replace(self, head=sequence, tail=sequence, head_id=job.id), replace(job, sequence=sequence)
        return replace(self, tail=sequence), replace(job, sequence=sequence, state=State.WAITING, due=None)


class DynamoGroups:
    """The groups of one table of jobs. `read` reads a job, consistently."""

    def __init__(self, client: "DynamoDBClient", *, table: str, read: Callable[[str, str], Job | None]) -> None:
        self._client = client
        self._table = table
        self._read = read

    def enter(self, jobs: Sequence[Job]) -> tuple[list[Job], list[Entry]]:
        """These jobs, those of a group in their places, and what a transaction that inserts them must hold besides."""
        orders: dict[tuple[str, str], Order] = {}
        read: dict[tuple[str, str], Order] = {}
        placed, entries = [], []
        for job in jobs:
            if job.group is None:
                placed.append(job)
                continue
            name = (job.tenant, job.group)
            if name not in orders:
                orders[name] = read[name] = self._order(*name)
            orders[name], job_in_place = orders[name].joined_by(job)
            placed.append(job_in_place)
            if job_in_place.state is State.WAITING:
                entries.append(self._put_place(job_in_place))
        entries += [self._put_order(order, read[name]) for name, order in orders.items()]
        return placed, entries

    def insert(self, job: Job, insertion: Callable[[Job], Request], *, mine: Callable[[Job], bool]) -> Job:
        """Raises `WriteRefusedError`, and `TransactionConflictError` when too many others enter at once."""

        def attempt(_number: int) -> Job:
            (placed,), entries = self.enter([job])
            self._transact([own("Put", insertion(placed), table=self._table), *entries])
            return placed

        return self._insisted(attempt, Write.INSERT, mine)

    def redrive(self, job: Job, entry: Redrive, *, mine: Callable[[Job], bool]) -> Job:
        """To its lane while its group stands for it, else to the tail. Raises as `insert` does."""

        def attempt(_number: int) -> Job:
            order = self._order(job.tenant, job.group or "")
            if not order.empty and order.head == job.sequence and order.head_id == job.id:
                request, entries = operator_writes.redrive(job, entry), [self._put_order(order, order)]
            else:
                after, placed = order.joined_by(replace(job, state=State.QUEUED))
                request = operator_writes.redrive(job, entry, state=placed.state, sequence=placed.sequence)
                entries = [self._put_order(after, order)]
                if placed.state is State.WAITING:
                    entries.append(self._put_place(placed))
            self._transact([own("Update", request, table=self._table), *entries])
            written = self._read(job.tenant, job.id)
            if written is None:
                raise WriteRefusedError(Write.REDRIVE, None)
            return written

        return self._insisted(attempt, Write.REDRIVE, mine)

    def advance(self, tenant: str, group: str, *, now: datetime) -> Job | None:
        """As `JobStore.advance`. Raises `TransactionConflictError` when too many others are at it."""
        while (step := insist(lambda _number: self._step(tenant, group, now), tries=_TRIES, pause=_pause)) is _FURTHER:
            pass
        job: Job | None = step
        return job

    def open(self, items: Iterable[Item]) -> Iterator[tuple[str, str]]:
        """Tenant and name of the groups among these items of the table that have somebody in them."""
        for item in items:
            if item[JOB_KEY]["S"].startswith(GROUP_PREFIX) and not (order := _decoded(item)).empty:
                yield order.tenant, order.group

    def _step(self, tenant: str, group: str, now: datetime) -> Any:
        """One move of the head: the next job if that is its turn now, `_FURTHER` if it has ended too, else None."""
        order = self._order(tenant, group)
        if order.empty or not self._passable(order, now):
            return None
        sequence = order.head + 1
        if sequence > order.tail:
            emptied = replace(order, head=sequence, head_id=None)
            self._transact([self._put_order(emptied, order, expires_at=now + EMPTY_GROUP_KEPT)])
            return None
        job_id = self._job_at(order, sequence)
        job = self._read(tenant, job_id)
        moved = replace(order, head=sequence, head_id=job_id)
        entries = [self._put_order(moved, order), self._delete_place(order, sequence)]
        if job is None or job.sequence != sequence or job.state is not State.WAITING:
            self._transact(entries)
            return _FURTHER
        due = max(job.run_at or now, now)
        state = parked_until(due, now=now, otherwise=State.QUEUED)
        turn = own("Update", _take_turn(job, state=state, due=due), table=self._table, part=Part.GROUP)
        self._transact([turn, *entries])
        return replace(job, state=state, due=due)

    def _passable(self, order: Order, now: datetime) -> bool:
        """Whether the head has ended for good, so that its group need not wait for it."""
        job = self._read(order.tenant, order.head_id or "")
        if job is None or job.expired(now) or job.sequence != order.head:
            return True
        return job.state.terminal and not (job.state is State.DEAD and job.blocks)

    def _order(self, tenant: str, group: str) -> Order:
        item = self._get(_name(GROUP_PREFIX, tenant, group))
        return _decoded(item) if item else Order(tenant=tenant, group=group)

    def _job_at(self, order: Order, sequence: int) -> str:
        item = self._get(_name(PLACE_PREFIX, order.tenant, order.group, sequence))
        # A place is written with the job that waits in it, and only taken away with the step past it.
        return item["job"]["S"] if item else ""

    def _get(self, name: str) -> Item | None:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key={JOB_KEY: text(name)}, ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item

    def _put_order(self, order: Order, read: Order, *, expires_at: datetime | None = None) -> Entry:
        item = {
            JOB_KEY: text(_name(GROUP_PREFIX, order.tenant, order.group)),
            "head": number(order.head),
            "tail": number(order.tail),
            "version": number(read.version + 1),
        }
        if order.head_id is not None:
            item["head_id"] = text(order.head_id)
        if expires_at:
            item[TTL_ATTRIBUTE] = seconds(expires_at)
        # Somebody entered the group, or moved its head, since it was read; or made it, if it was not there.
        condition = "#version = :read" if read.version else "attribute_not_exists(#version)"
        request: Request = {
            "Item": item,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#version": "version"},
        }
        if read.version:
            request["ExpressionAttributeValues"] = {":read": number(read.version)}
        return own("Put", request, table=self._table, part=Part.GROUP)

    def _put_place(self, job: Job) -> Entry:
        name = _name(PLACE_PREFIX, job.tenant, job.group, job.sequence)
        return own("Put", {"Item": {JOB_KEY: text(name), "job": text(job.id)}}, table=self._table, part=Part.GROUP)

    def _delete_place(self, order: Order, sequence: int) -> Entry:
        name = _name(PLACE_PREFIX, order.tenant, order.group, sequence)
        return own("Delete", {"Key": {JOB_KEY: text(name)}}, table=self._table, part=Part.GROUP)

    def _transact(self, entries: Sequence[Entry]) -> None:
        transact(self._client, entries, token=clock.new_token())

    def _insisted(self, attempt: Callable[[int], Job], write: Write, mine: Callable[[Job], bool]) -> Job:
        try:
            job: Job = insist(attempt, tries=_TRIES, pause=_pause)
        except RefusedError as refused:
            item = refused.of(Part.OWN)[0].item
            current = decode(item) if item else None
            if current and mine(current):
                return current
            raise WriteRefusedError(write, current) from refused
        return job


#: The head has moved, and may have to move again.
_FURTHER: Final = object()


def _take_turn(job: Job, *, state: State, due: datetime) -> Request:
    sets = {"state": text(state), "due": milliseconds(due)}
    if state is State.SCHEDULED:
        sets |= attention(State.SCHEDULED, job.id, due)
    return update(
        key(job.tenant, job.id),
        sets=sets,
        conditions=[
            # It was cancelled since it was read.
            "#state = :waiting"
        ],
        names=["state"],
        values={":waiting": text(State.WAITING)},
    )


def _name(prefix: str, *parts: object) -> str:
    """As JSON, so that no part can hold what parts them."""
    return prefix + json.dumps(parts, separators=(",", ":"))


def _decoded(item: Item) -> Order:
    tenant, group = json.loads(item[JOB_KEY]["S"].removeprefix(GROUP_PREFIX))
    return Order(
        tenant=tenant,
        group=group,
        head=int(item["head"]["N"]),
        tail=int(item["tail"]["N"]),
        head_id=item["head_id"]["S"] if "head_id" in item else None,
        version=int(item["version"]["N"]),
    )


def _pause(tries: int) -> None:
    time.sleep(_PAUSE_SECONDS * 2**tries * clock.draw())

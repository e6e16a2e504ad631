"""The items of a group, as requests: the order item, and a position item for each waiting job. Pure.

They are in the table of jobs, because one transaction changes a job and its order together.
"""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from tidemill.aws.attribute_values import milliseconds, number, seconds, text
from tidemill.aws.clients import Item
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.update_requests import Request, update_job
from tidemill.names import JOB_KEY, TTL_ATTRIBUTE

#: A tenant never begins with it, so it is never the prefix of a job's key.
GROUP_PREFIX: Final = "!group#"
POSITION_PREFIX: Final = "!place#"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order of a group. Positions from `head` to `tail` are taken; a head beyond the tail means an empty group."""

    tenant: str
    group: str
    head: int = 1
    tail: int = 0
    #: The id of the job at the head; None once the group need not wait for it.
    head_id: str | None = None
    #: A fresh token for each write; None before the first write. A counter could repeat after the item expires.
    version: str | None = None

    @property
    def empty(self) -> bool:
        return self.head > self.tail

    def holds(self, job: Job, sequence: int) -> bool:
        """Whether `job` still has that position. A new job may have replaced an expired one under its key."""
        return (job.group, job.sequence) == (self.group, sequence)

    def led_by(self, job: Job) -> bool:
        return self.head_id == job.id and self.holds(job, self.head)

    def joined_by(self, job: Job) -> tuple["Order", Job]:
        """The order with `job` at its tail, and the job with its position."""
        sequence = self.tail + 1
        if self.empty:
            return replace(self, head=sequence, tail=sequence, head_id=job.id), replace(job, sequence=sequence)
        return replace(self, tail=sequence), replace(job, sequence=sequence, state=State.WAITING, due=None)


def order_key(tenant: str, group: str) -> Item:
    return _key(GROUP_PREFIX, tenant, group)


def position_key(order: Order, sequence: int) -> Item:
    return _key(POSITION_PREFIX, order.tenant, order.group, sequence)


def is_order(item: Item) -> bool:
    return str(item[JOB_KEY]["S"]).startswith(GROUP_PREFIX)


def decoded(item: Item) -> Order:
    tenant, group = json.loads(item[JOB_KEY]["S"].removeprefix(GROUP_PREFIX))
    return Order(
        tenant=tenant,
        group=group,
        head=int(item["head"]["N"]),
        tail=int(item["tail"]["N"]),
        head_id=item["head_id"]["S"] if "head_id" in item else None,
        version=item["version"]["S"],
    )


def put_order(order: Order, *, version: str, expires_at: datetime | None = None) -> Request:
    """Write `order` over the order item that it was derived from. `order.version` is the version of that item."""
    item = order_key(order.tenant, order.group) | {
        "head": number(order.head),
        "tail": number(order.tail),
        "version": text(version),
    }
    if order.head_id is not None:
        item["head_id"] = text(order.head_id)
    if expires_at is not None:
        item[TTL_ATTRIBUTE] = seconds(expires_at)
    # Since it was read, another write entered the group or moved its head, or created or expired the order item.
    condition = "attribute_not_exists(#version)" if order.version is None else "#version = :read"
    values = {} if order.version is None else {"ExpressionAttributeValues": {":read": text(order.version)}}
    return {
        "Item": item,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {"#version": "version"},
    } | values


def put_position(order: Order, job: Job) -> Request:
    """The position item: leads from a position to the job. The condition on the order keeps positions unique."""
    return {"Item": position_key(order, job.sequence or 0) | {"job": text(job.id)}}


def delete_position(order: Order, sequence: int) -> Request:
    return {"Key": position_key(order, sequence)}


def take_turn(job: Job, *, indexes: Indexes) -> Request:
    """Write `job`, as it is after its turn has come: queued, or scheduled if it is not due yet."""
    sets = {"state": text(job.state)}
    if job.due:
        sets["due"] = milliseconds(job.due)
        if job.state is State.SCHEDULED:
            sets |= indexes.attention(State.SCHEDULED, job.id, job.due)
    return update_job(
        job.tenant,
        job.id,
        sets=sets,
        conditions=[
            # The job was cancelled since it was read.
            "#state = :waiting"
        ],
        names=["state"],
        values={":waiting": text(State.WAITING)},
    )


def _key(prefix: str, *parts: str | int) -> Item:
    """As JSON, so that no part can contain the separator. Unescaped, since a key has at most 2 KiB."""
    return {JOB_KEY: text(prefix + json.dumps(parts, separators=(",", ":"), ensure_ascii=False))}

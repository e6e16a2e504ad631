"""The items of a group, as requests: head, tail, and a position for each waiting job. Pure.

The head says whose turn it is. The tail exists while jobs may wait, and says which position was given last. So a
submission that waits writes the tail, a turn writes the head, and the two do not contend. Both are in the table of
jobs, because one transaction changes a job and its group together.
"""

import json
from datetime import datetime
from typing import Final

from msgspec import Struct

from tidemill.aws.attribute_values import milliseconds, number, seconds, text
from tidemill.aws.clients import Item
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.item_keys import prefixed_key
from tidemill.dynamodb.update_requests import Request, update_job
from tidemill.names import JOB_KEY, TTL_ATTRIBUTE

#: A tenant never begins with one of these, so none is ever the prefix of a job's key.
HEAD_PREFIX: Final = "!head#"
TAIL_PREFIX: Final = "!tail#"
POSITION_PREFIX: Final = "!place#"


class Head(Struct, frozen=True, kw_only=True):
    """The position whose turn it is."""

    tenant: str
    group: str
    sequence: int = 0
    #: The id of the job there; None once the group need not wait for it.
    job_id: str | None = None
    #: The group holds no job: it has no tail either, and the item expires.
    idle: bool = True
    #: A fresh token for each write; None before the first write. A counter could repeat after the item expires.
    version: str | None = None

    def leads(self, job: Job) -> bool:
        return self.job_id == job.id and at_position(job, self.group, self.sequence)


class Tail(Struct, frozen=True, kw_only=True):
    """The position that was given last. The item exists from the first job that waits until the group is idle."""

    tenant: str
    group: str
    sequence: int
    #: The version that was read; a fresh token for each write.
    version: str | None = None


class Order(Struct, frozen=True):
    """What a job needs to enter a group: the tail, or without a tail the head. Both if the job is the first to wait."""

    head: Head | None
    tail: Tail | None

    def joined_by(self, job: Job) -> tuple["Order", Job]:
        """The order with `job` at its end, and the job with its position."""
        if self.head is not None and self.head.idle:
            sequence = self.head.sequence + 1
            head = replace(self.head, sequence=sequence, job_id=job.id, idle=False)
            return Order(head, None), replace(job, group=replace(job.group, sequence=sequence))
        tail = self.tail or _first_tail(self.head)
        tail = replace(tail, sequence=tail.sequence + 1)
        return Order(self.head, tail), replace(
            job, group=replace(job.group, sequence=tail.sequence), state=State.WAITING, due=None
        )


def _first_tail(head: Head | None) -> Tail:
    if head is None:
        raise AssertionError("an order has a head or a tail")
    return Tail(tenant=head.tenant, group=head.group, sequence=head.sequence)


def at_position(job: Job, group: str, sequence: int) -> bool:
    """Whether `job` still has that position. A new job may have replaced an expired one under its key."""
    return (job.group.key, job.group.sequence) == (group, sequence)


def head_key(tenant: str, group: str) -> Item:
    return prefixed_key(HEAD_PREFIX, tenant, group)


def tail_key(tenant: str, group: str) -> Item:
    return prefixed_key(TAIL_PREFIX, tenant, group)


def position_key(head: Head, sequence: int) -> Item:
    return prefixed_key(POSITION_PREFIX, head.tenant, head.group, sequence)


def is_head(item: Item) -> bool:
    return str(item[JOB_KEY]["S"]).startswith(HEAD_PREFIX)


def decoded_head(item: Item) -> Head:
    tenant, group = json.loads(item[JOB_KEY]["S"].removeprefix(HEAD_PREFIX))
    return Head(
        tenant=tenant,
        group=group,
        sequence=int(item["sequence"]["N"]),
        job_id=item["job"]["S"] if "job" in item else None,
        idle=TTL_ATTRIBUTE in item,
        version=item["version"]["S"],
    )


def decoded_tail(item: Item) -> Tail:
    tenant, group = json.loads(item[JOB_KEY]["S"].removeprefix(TAIL_PREFIX))
    return Tail(tenant=tenant, group=group, sequence=int(item["sequence"]["N"]), version=item["version"]["S"])


def put_head(head: Head, *, version: str) -> Request:
    """Write `head` over the item that it was derived from. `head.version` is the version of that item."""
    item = head_key(head.tenant, head.group) | {"sequence": number(head.sequence), "version": text(version)}
    if head.job_id is not None:
        item["job"] = text(head.job_id)
    return {
        "Item": item,
        # Since it was read, another write moved the head, entered the idle group, redrove the job at the head, or was
        # the first to wait; or the item was created or expired.
        **_unchanged(head.version),
    }


def put_idle_head(head: Head, *, version: str, expires_at: datetime) -> Request:
    """Write the head of a group that holds no job."""
    request = put_head(replace(head, job_id=None), version=version)
    return request | {"Item": request["Item"] | {TTL_ATTRIBUTE: seconds(expires_at)}}


def put_tail(tail: Tail, *, version: str) -> Request:
    """Write `tail` over the item that it was derived from. It gives the position `tail.sequence` to one job."""
    item = tail_key(tail.tenant, tail.group) | {"sequence": number(tail.sequence), "version": text(version)}
    # Since it was read, another job took the position, or the group became idle and perhaps began anew.
    return {"Item": item, **_unchanged(tail.version)}


def delete_tail(tail: Tail) -> Request:
    # Since it was read, a job has entered the group, and waits.
    return {"Key": tail_key(tail.tenant, tail.group), **_unchanged(tail.version)}


def _unchanged(version: str | None) -> Request:
    names = {"#version": "version"}
    if version is None:
        return {"ConditionExpression": "attribute_not_exists(#version)", "ExpressionAttributeNames": names}
    return {
        "ConditionExpression": "#version = :read",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {":read": text(version)},
    }


def put_position(job: Job) -> Request:
    """The position item: leads from a position to the job. The condition on the tail keeps positions unique."""
    return {
        "Item": prefixed_key(POSITION_PREFIX, job.tenant, job.group.key or "", job.group.sequence or 0)
        | {"job": text(job.id)}
    }


def delete_position(head: Head, sequence: int) -> Request:
    return {"Key": position_key(head, sequence)}


def become_head(job: Job, *, indexes: Indexes) -> Request:
    """Write `job`, as it is after its turn has come: queued, or scheduled if it is not due yet.

    The last entry of its history is the turn.
    """
    sets = {"state": text(job.state)}
    if job.due:
        sets["due"] = milliseconds(job.due)
        if job.state is State.SCHEDULED:
            sets |= indexes.attention(State.SCHEDULED, job.id, job.due)
    return update_job(
        job.tenant,
        job.id,
        sets=sets,
        entries=job.history[-1:],
        conditions=[
            # The job was cancelled since it was read.
            "#state = :waiting"
        ],
        names=["state"],
        values={":waiting": text(State.WAITING)},
    )

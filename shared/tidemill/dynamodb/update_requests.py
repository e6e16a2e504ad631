"""How the requests of the protocol's writes are put together. Says nothing of what they mean."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from zlib import crc32

from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.aws.clients import Item
from tidemill.domain.states import State
from tidemill.dynamodb.document import SCHEMA_ATTRIBUTE, SCHEMA_VERSION, key
from tidemill.names import ATTENTION_KEY, ATTENTION_SHARDS, ATTENTION_SORT_KEY

Request = dict[str, Any]

#: The attributes by which a job stands in the index of those that wait for a clock or a person.
ATTENTION: Final = (ATTENTION_KEY, ATTENTION_SORT_KEY)


def attention(state: State, job_id: str, at: datetime) -> dict[str, Item]:
    """What puts a job into the index: of the scheduled by when they are due, of the dead by when they died."""
    shard = crc32(job_id.encode()) % ATTENTION_SHARDS
    return {ATTENTION_KEY: text(attention_partition(state, shard)), ATTENTION_SORT_KEY: milliseconds(at)}


def attention_partition(state: State, shard: int) -> str:
    return f"{state}#{shard}"


def whole_seconds(now: datetime) -> Item:
    """The present, to compare with the TTL: what expires at this second has expired."""
    return number(int(now.timestamp()))


def update_job(
    tenant: str, job_id: str, *, sets: Mapping[str, Item], conditions: Sequence[str], **request: Any
) -> Request:
    """As `update`, for a job. What this version writes, an older one may not be able to read: it is told so."""
    return update(
        key(tenant, job_id),
        sets={**sets, SCHEMA_ATTRIBUTE: number(SCHEMA_VERSION)},
        conditions=[
            *conditions,
            # A newer version, running beside this one, has written it since it was read: this one cannot read it any
            # more, and what it takes for its own form would stay behind under its own number.
            f"#{SCHEMA_ATTRIBUTE} <= :new_{SCHEMA_ATTRIBUTE}",
        ],
        **request,
    )


def update(
    item_key: Item,
    *,
    sets: Mapping[str, Item],
    conditions: Sequence[str],
    names: Sequence[str],
    values: Mapping[str, Item],
    removes: Sequence[str] = (),
    expressions: Sequence[str] = (),
) -> Request:
    """One UpdateItem. Every name goes through an alias, since `state`, `owner` and others are reserved words."""
    assignments = [f"#{name} = :new_{name}" for name in sets]
    expression = "SET " + ", ".join([*assignments, *expressions])
    if removes:
        expression += " REMOVE " + ", ".join(f"#{name}" for name in removes)
    return {
        "Key": item_key,
        "UpdateExpression": expression,
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": {f"#{name}": name for name in {*sets, *removes, *names}},
        "ExpressionAttributeValues": {f":new_{name}": value for name, value in sets.items()} | dict(values),
    }

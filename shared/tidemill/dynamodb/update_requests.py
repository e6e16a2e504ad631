"""Builds the UpdateItem requests of the protocol's writes."""

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

#: The attributes that put a job into the attention index, of scheduled jobs and dead jobs.
ATTENTION: Final = (ATTENTION_KEY, ATTENTION_SORT_KEY)


def attention(state: State, job_id: str, at: datetime) -> dict[str, Item]:
    """The attributes for the attention index: scheduled jobs by due time, dead jobs by time of death."""
    shard = crc32(job_id.encode()) % ATTENTION_SHARDS
    return {ATTENTION_KEY: text(attention_partition(state, shard)), ATTENTION_SORT_KEY: milliseconds(at)}


def attention_partition(state: State, shard: int) -> str:
    return f"{state}#{shard}"


def update_job(
    tenant: str, job_id: str, *, sets: Mapping[str, Item], conditions: Sequence[str], **request: Any
) -> Request:
    """As `update`, for a job. Marks the document with this version's schema, which an older version may not read."""
    return update(
        key(tenant, job_id),
        sets={**sets, SCHEMA_ATTRIBUTE: number(SCHEMA_VERSION)},
        conditions=[
            *conditions,
            # A newer version, which runs beside this one, has written the document since it was read. This version
            # cannot read it, and would mark the newer form with its own schema number.
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
    """One UpdateItem. Every name uses an alias, since `state`, `owner` and others are reserved words."""
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

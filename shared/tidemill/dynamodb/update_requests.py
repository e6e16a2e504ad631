"""Builds the UpdateItem requests of the protocol's writes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidemill.aws.attribute_values import number, text
from tidemill.aws.clients import Item
from tidemill.domain.history import Transition
from tidemill.domain.job import Job
from tidemill.dynamodb.document import HISTORY_ATTRIBUTE, SCHEMA_ATTRIBUTE, SCHEMA_VERSION, key
from tidemill.dynamodb.history_entries import history
from tidemill.names import ATTENTION_KEY, ATTENTION_SORT_KEY, PAYLOAD_LOCATION_ATTRIBUTE

Request = dict[str, Any]

#: The attributes that put an item into the attention index, of scheduled, dead and parked jobs, and owed work.
ATTENTION: Final = (ATTENTION_KEY, ATTENTION_SORT_KEY)


def update_job(
    tenant: str,
    job_id: str,
    *,
    sets: Mapping[str, Item],
    conditions: Sequence[str],
    names: Sequence[str],
    values: Mapping[str, Item],
    expressions: Sequence[str] = (),
    entries: Sequence[Transition] = (),
    **request: Any,
) -> Request:
    """Update a job. Marks the document with this version's schema, which an older version may not read.

    `entries` are added to the history of the job.
    """
    if entries:
        # Absent until the first run.
        recorded = f"#{HISTORY_ATTRIBUTE} = list_append(if_not_exists(#{HISTORY_ATTRIBUTE}, :no_entries), :entries)"
        expressions = [*expressions, recorded]
        names = [*names, HISTORY_ATTRIBUTE]
        values = {**values, ":no_entries": history([]), ":entries": history(entries)}
    return update(
        key(tenant, job_id),
        sets={**sets, SCHEMA_ATTRIBUTE: number(SCHEMA_VERSION)},
        conditions=[
            *conditions,
            # A newer version, which runs beside this one, has written the document since it was read. This version
            # cannot read it, and would mark the newer form with its own schema number.
            f"#{SCHEMA_ATTRIBUTE} <= :new_{SCHEMA_ATTRIBUTE}",
        ],
        names=names,
        values=values,
        expressions=expressions,
        **request,
    )


def payload_changes(job: Job) -> tuple[dict[str, Item], list[str]]:
    """What an update sets and removes so that a document has the payload of `job`, inline or apart."""
    held = {"payload": job.payload.text, PAYLOAD_LOCATION_ATTRIBUTE: job.payload.location}
    return (
        {name: text(value) for name, value in held.items() if value is not None},
        [name for name, value in held.items() if value is None],
    )


def also(
    request: Request,
    *,
    sets: Mapping[str, Item],
    conditions: Sequence[str],
    values: Mapping[str, Item],
) -> Request:
    """The same UpdateItem, which sets more under further conditions."""
    further = update(request["Key"], sets=sets, conditions=conditions, names=(), values=values)
    return {
        "Key": request["Key"],
        "UpdateExpression": f"{further['UpdateExpression']}, {request['UpdateExpression'].removeprefix('SET ')}",
        "ConditionExpression": f"{request['ConditionExpression']} AND {further['ConditionExpression']}",
        "ExpressionAttributeNames": request["ExpressionAttributeNames"] | further["ExpressionAttributeNames"],
        "ExpressionAttributeValues": request["ExpressionAttributeValues"] | further["ExpressionAttributeValues"],
    }


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

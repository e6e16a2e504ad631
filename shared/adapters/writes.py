"""The conditional writes of the protocol as DynamoDB requests. Pure; above each clause stands the race it closes."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from zlib import crc32

from shared.adapters.clients import Item
from shared.adapters.document import (
    ATTEMPT_ERRORS,
    REDRIVES,
    SCHEMA_ATTRIBUTE,
    SCHEMA_VERSION,
    encode,
    key,
    milliseconds,
    number,
    seconds,
    text,
)
from shared.domain.job import Job, Redrive, Reference
from shared.domain.outcomes import Settlement
from shared.domain.states import TRANSITIONS, State, Write
from shared.names import ATTENTION_KEY, ATTENTION_SHARDS, ATTENTION_SORT_KEY, JOB_KEY, TTL_ATTRIBUTE

Request = dict[str, Any]

ERRORS_KEPT: Final = 10


def insert(job: Job) -> Request:
    conditions = [
        # Two submissions under one key: the second finds the first.
        "attribute_not_exists(#pk)",
        # DynamoDB deletes days late: what is past its time is as good as absent.
        "#expires_at <= :now",
    ]
    return {
        "Item": encode(job),
        "ConditionExpression": " OR ".join(conditions),
        "ExpressionAttributeNames": {"#pk": JOB_KEY, "#expires_at": TTL_ATTRIBUTE},
        "ExpressionAttributeValues": {":now": _whole_seconds(job.created_at)},
    }


def claim(reference: Reference, *, token: str, now: datetime, lease_end: datetime) -> Request:
    return _update(
        key(reference.tenant, reference.job_id),
        sets={
            "state": text(State.RUNNING),
            "owner": text(token),
            "claimed_at": milliseconds(now),
            "due": milliseconds(lease_end),
        },
        # DynamoDB reads the right-hand sides before it writes, so this is the old `due`.
        expressions=["#ready_at = #due", "#attempt = #attempt + :one"],
        conditions=[
            # A late or doubled message of an earlier dispatch must not start a run of its own.
            "#generation = :generation",
            # Not before its time, not while another worker's lease lasts, and not when terminal (no `due` then).
            "#due <= :now",
            # A worker of the version before, still running beside the one that wrote this, could not read what it took.
            "#schema <= :schema",
        ],
        names=["ready_at", "due", "attempt", "generation", SCHEMA_ATTRIBUTE],
        values={
            ":one": number(1),
            ":generation": number(reference.generation),
            ":now": milliseconds(now),
            ":schema": number(SCHEMA_VERSION),
        },
    )


def settle(job: Job, settlement: Settlement, *, now: datetime, retention: timedelta) -> Request:
    sets = {"state": text(settlement.state)}
    if settlement.error:
        sets["errors"] = ATTEMPT_ERRORS.encode((*job.errors, settlement.error)[-ERRORS_KEPT:])
    if settlement.result is not None:
        sets["result"] = text(settlement.result)
    if settlement.death:
        sets["death"] = text(settlement.death)
    if settlement.state is State.DEAD:
        sets[ATTENTION_KEY] = text(attention_partition(crc32(job.id.encode()) % ATTENTION_SHARDS))
        sets[ATTENTION_SORT_KEY] = milliseconds(now)
    if settlement.state.terminal:
        # Only a terminal job may ever be forgotten.
        sets |= {"finished_at": milliseconds(now), TTL_ATTRIBUTE: seconds(now + retention)}
        return _ending(job, sets=sets, removes=["due"])
    return _living_on(job, sets=sets, due=settlement.due or now)


def release(job: Job, *, due: datetime) -> Request:
    given_back = {"attempt": number(job.attempt - 1), "releases": number(job.releases + 1)}
    return _living_on(job, sets={"state": text(State.RETRYING)} | given_back, due=due)


def nudge(job: Job, *, now: datetime, limit: timedelta) -> Request:
    running = job.state is State.RUNNING
    return _update(
        key(job.tenant, job.id),
        # A lost run is taken back: a state change is what publish looks for, and the generation stays, so that a
        # late message is still good.
        sets={"nudged_at": milliseconds(now)} | ({"state": text(State.RETRYING)} if running else {}),
        removes=["owner"] if running else [],
        conditions=[
            # The job has asked for a newer dispatch since it was read.
            "#generation = :generation",
            # It was claimed, or its run ended, since it was read.
            "#state = :state",
            # Not overdue: somebody holds its lease, or its time has not come.
            "#due <= :overdue",
            # Two who find it at once make one dispatch.
            "(attribute_not_exists(#nudged_at) OR #nudged_at <= :overdue)",
        ],
        names=["generation", "state", "due"],
        values={
            ":generation": number(job.generation),
            ":state": text(job.state),
            ":overdue": milliseconds(now - limit),
        },
    )


def redrive(job: Job, entry: Redrive) -> Request:
    redrivable = {f":was_{state}": text(state) for state in TRANSITIONS[Write.REDRIVE] if state}
    return _update(
        key(job.tenant, job.id),
        sets={
            "state": text(State.QUEUED),
            "attempt": number(0),
            "due": milliseconds(entry.at),
            "redrives": REDRIVES.encode((*job.redrives, entry)[-ERRORS_KEPT:]),
        },
        removes=[TTL_ATTRIBUTE, "finished_at", "death", "releases", ATTENTION_KEY, ATTENTION_SORT_KEY],
        expressions=["#generation = #generation + :one"],
        conditions=[
            # Only the dead are given another life.
            "#state IN (" + ", ".join(redrivable) + ")",
            # Two operators at once: the second finds the generation raised.
            "#generation = :generation",
            # What is past its time is as good as absent, though DynamoDB deletes it days late.
            "#expires_at > :now",
        ],
        names=["generation", "state", TTL_ATTRIBUTE],
        values={":one": number(1), ":generation": number(job.generation), ":now": _whole_seconds(entry.at)}
        | redrivable,
    )


def attention_partition(shard: int) -> str:
    return f"{State.DEAD}#{shard}"


def _whole_seconds(now: datetime) -> Item:
    """The present, to compare with the TTL: what expires at this second has expired."""
    return number(int(now.timestamp()))


def _living_on(job: Job, *, sets: Mapping[str, Item], due: datetime) -> Request:
    """The job asks for another dispatch, which a change of the generation is."""
    return _ending(
        job,
        sets={**sets, "due": milliseconds(due)},
        expressions=["#generation = #generation + :one"],
        names=["generation"],
        values={":one": number(1)},
    )


def _ending(
    job: Job,
    *,
    sets: Mapping[str, Item],
    removes: Sequence[str] = (),
    expressions: Sequence[str] = (),
    names: Sequence[str] = (),
    values: Mapping[str, Item] | None = None,
) -> Request:
    """Whatever ends a run gives up its lease, and only the holder of the lease may end it."""
    token = text(job.owner or "")
    return _update(
        key(job.tenant, job.id),
        sets={**sets, "last_owner": token},
        removes=["owner", *removes],
        expressions=expressions,
        # The fence: a worker whose lease was taken over can write nothing any more.
        conditions=["#owner = :owner"],
        names=["owner", *names],
        values={":owner": token, **(values or {})},
    )


def _update(
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

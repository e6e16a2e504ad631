"""The writes of debounced jobs as DynamoDB requests. Pure. Each clause has a comment with its race.

An item for each name of a burst leads to the job of its last burst. A submission that becomes part of that job writes
the job alone, with no transaction.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field

from tidemill.aws.attribute_values import milliseconds, number, seconds, text
from tidemill.aws.clients import Item
from tidemill.domain.debounce.debounce import joined_at
from tidemill.domain.debounce.debounce_record import DebounceWindow
from tidemill.domain.history import LEAST_KEPT_AFTER_FAILURE, Transition, Why
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.document import HISTORY_ATTRIBUTE, SIGNALS_ATTRIBUTE
from tidemill.dynamodb.history_entries import history
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.item_keys import prefixed_key
from tidemill.dynamodb.update_requests import ATTENTION, Request, payload_changes, update_job
from tidemill.names import DEBOUNCE_ATTRIBUTE, DEBOUNCE_PREFIX, JOB_KEY, PAYLOAD_LOCATION_ATTRIBUTE, TTL_ATTRIBUTE

JOB_ATTRIBUTE: Final = "job"
#: How long after the end of its burst an item leads to a job. A job that has not begun by then, such as one that an
#: operator has paused for months, takes no more submissions.
KEPT: Final = timedelta(days=90)


def debounce_item_key(tenant: str, name: str) -> Item:
    return prefixed_key(DEBOUNCE_PREFIX, tenant, name)


def lead_to(job: Job, *, after: str | None) -> Request:
    """Let the name of its burst lead to `job`, and no more to the job `after`."""
    burst = job.burst
    if burst is None:
        raise AssertionError(f"job {job.id} is not debounced")
    # Two submissions at once begin a burst: the second finds the job of the first.
    condition = f"attribute_not_exists(#{JOB_KEY})" if after is None else f"#{JOB_ATTRIBUTE} = :after"
    return {
        "Key": debounce_item_key(job.tenant, burst.name),
        "UpdateExpression": f"SET #{JOB_ATTRIBUTE} = :job, #{TTL_ATTRIBUTE} = :expires_at",
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {
            f"#{JOB_ATTRIBUTE}": JOB_ATTRIBUTE,
            f"#{TTL_ATTRIBUTE}": TTL_ATTRIBUTE,
            **({f"#{JOB_KEY}": JOB_KEY} if after is None else {}),
        },
        "ExpressionAttributeValues": {
            ":job": text(job.id),
            ":expires_at": seconds(burst.until + KEPT),
            **({} if after is None else {":after": text(after)}),
        },
    }


def join(job: Job, changed: Job, *, by: str, now: datetime, replaces: bool, indexes: Indexes) -> Request:
    """Write the times of `changed` into `job`, as it was read, and with `replaces` the payload."""
    if job.due is None or changed.due is None or job.burst is None or changed.burst is None:
        raise AssertionError(f"job {job.id} does not wait for a time")
    moved = _Parts()
    if changed.due != job.due:
        moved = _moved(changed, changed.due, changed.burst, now=now, indexes=indexes)
    replaced = _replaced(changed) if replaces else _Parts()
    marks = {"last": text(by), "joined_at": milliseconds(joined_at(job.burst, now=now)), **moved.marks}
    sets, removes = {**moved.sets}, [*moved.removes, *replaced.removes]
    if changed.lifetime.useful_until and changed.lifetime.useful_until != job.lifetime.useful_until:
        sets["useful_until"] = milliseconds(changed.lifetime.useful_until)
    elif job.lifetime.useful_until and changed.lifetime.useful_until is None:
        removes.append("useful_until")
    if changed.state is not job.state:
        # Not appended, since nothing bounds how often a burst does this. An entry that another write adds now is lost.
        kept = job.history[-LEAST_KEPT_AFTER_FAILURE:]
        entry = Transition(at=now, state=changed.state, cause=Why.MOVED)
        sets[HISTORY_ATTRIBUTE] = history([*kept, entry])
    return update_job(
        job.tenant,
        job.id,
        sets={**sets, **replaced.sets},
        removes=removes,
        expressions=[*replaced.expressions, *(_in_window(name, f":burst_{name}") for name in marks)],
        conditions=[
            # A worker has claimed the job since it was read, and runs it with the payload that it had; or it was
            # cancelled, parked or woken.
            "#state = :read_state",
            # Since it was read, it was claimed and held back, or parked and released, and waits for another dispatch.
            "#generation = :read_generation",
            # It got a signal since it was read, which is for the payload that it had then.
            f"attribute_not_exists(#{SIGNALS_ATTRIBUTE})",
            # Another submission has moved it since it was read: this one must not move it back.
            "#due = :read_due",
            # Another submission has replaced the payload since it was read, and its location would be lost; or the SDK
            # sends this write again, after another submission has deleted its location.
            f"#{PAYLOAD_LOCATION_ATTRIBUTE} = :read_location"
            if job.payload.location
            else f"attribute_not_exists(#{PAYLOAD_LOCATION_ATTRIBUTE})",
            # This send was under way for long. The SDK has sent the call again with success: it must not count twice.
            # Or a later submission has changed the job since, and its payload must not be replaced by an earlier one.
            "(attribute_not_exists(#burst.#joined_at) OR #burst.#joined_at < :burst_joined_at)",
            # Another submission has asked for longer use still since it was read, or for use without an end.
            *(["#useful_until <= :new_useful_until"] if "useful_until" in sets else []),
        ],
        names=[
            *("state", "generation", "due", SIGNALS_ATTRIBUTE, PAYLOAD_LOCATION_ATTRIBUTE, DEBOUNCE_ATTRIBUTE, *marks),
            *(("replacements", "first_replaced_at") if replaces else ()),
        ],
        values={
            ":read_state": text(job.state),
            ":read_generation": number(job.generation),
            ":read_due": milliseconds(job.due),
            **({":read_location": text(job.payload.location)} if job.payload.location else {}),
            **({":zero": number(0), ":one": number(1), ":now": milliseconds(now)} if replaces else {}),
            **{f":burst_{name}": value for name, value in marks.items()},
        },
    )


class _Parts(Struct, frozen=True, kw_only=True):
    """What one part of a join adds to its update."""

    sets: Mapping[str, Item] = field(default_factory=dict)
    removes: Sequence[str] = ()
    #: Attributes of the burst.
    marks: Mapping[str, Item] = field(default_factory=dict)
    expressions: Sequence[str] = ()


def _moved(changed: Job, due: datetime, burst: DebounceWindow, *, now: datetime, indexes: Indexes) -> _Parts:
    """The job gets another time."""
    scheduled = changed.state is State.SCHEDULED
    return _Parts(
        sets={
            "state": text(changed.state),
            "generation": number(changed.generation),
            "due": milliseconds(due),
            "run_at": milliseconds(due),
            **(indexes.attention(State.SCHEDULED, changed.id, due) if scheduled else {}),
        },
        removes=() if scheduled else ATTENTION,
        marks={
            "sent_for": milliseconds(burst.sent_for),
            "moves": number(burst.moves),
            "first_moved_at": milliseconds(burst.first_moved_at or now),
        },
    )


def _replaced(changed: Job) -> _Parts:
    """The job gets another payload."""
    sets, removes = payload_changes(changed)
    return _Parts(
        sets=sets,
        removes=removes,
        # Several submissions may replace an inline payload at once, so each adds to the count.
        expressions=[
            _in_window("replacements", "if_not_exists(#burst.#replacements, :zero) + :one"),
            _in_window("first_replaced_at", "if_not_exists(#burst.#first_replaced_at, :now)"),
        ],
    )


def _in_window(name: str, value: str) -> str:
    return f"#{DEBOUNCE_ATTRIBUTE}.#{name} = {value}"

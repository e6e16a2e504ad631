"""The writes of operators, wake and reconcile as DynamoDB requests. Pure. Each clause has a comment with its race."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tidemill.aws.attribute_values import milliseconds, number, text, whole_seconds
from tidemill.aws.clients import Item
from tidemill.domain.attempt.outcomes import ERRORS_KEPT
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import GIVEN_TO_PAYLOAD, DeathReason, Job, Redrive
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import AT_REST, TRANSITIONS, State, Write
from tidemill.domain.waiting.signals import unused
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Wait
from tidemill.dynamodb.document import (
    ATTEMPT_ERRORS,
    CANCEL,
    DROPPED_STEPS,
    HOLD_ATTRIBUTES,
    REDRIVES,
    SCHEMA_ATTRIBUTE,
    SCHEMA_VERSION,
    SIGNALS_ATTRIBUTE,
    WAIT,
    key,
)
from tidemill.dynamodb.indexes import Indexes, in_line
from tidemill.dynamodb.job_writes import ended
from tidemill.dynamodb.update_requests import ATTENTION, Request, payload_changes, update, update_job
from tidemill.dynamodb.waiting.signal_writes import no_more_signals, signals_known
from tidemill.names import TTL_ATTRIBUTE


def cancel(job: Job, asked: CancelRequest, *, now: datetime, retention: timedelta, as_read: bool) -> Request:
    at_rest = _states(AT_REST)
    seen = _seen(job) if as_read else {}
    unchanged, read = _unchanged(seen)
    return update_job(
        job.tenant,
        job.id,
        sets={"state": text(State.CANCELLED), "cancel": CANCEL.encode(asked)}
        | ended(job, State.CANCELLED, now=now, retention=retention),
        removes=["due", "death", "wait", *ATTENTION],
        entries=[Transition(at=now, state=State.CANCELLED, cause=Why.CANCELLED)],
        conditions=[
            # A run may have begun since the job was read. Only the run may end the job then.
            f"#state IN ({', '.join(at_rest)})",
            # With `as_read`: it ran or was redriven since it was read, or a later job has its key. It may be none of
            # those that the operator asked for.
            *unchanged,
        ],
        names=[*seen],
        values=at_rest | read,
    )


def request_cancel(job: Job, asked: CancelRequest, *, now: datetime, as_read: bool = False) -> Request:
    """The write keeps the schema number: with a newer one, an older worker could not settle its run.

    It leaves the history alone, which the settle of the run writes as it was at the claim.
    """
    seen = _seen(job) if as_read else {}
    unchanged, read = _unchanged(seen)
    return update(
        key(job.tenant, job.id),
        sets={"cancel_requested_at": milliseconds(now), "cancel": CANCEL.encode(asked)},
        conditions=[
            # The run may have ended since the job was read: a request to one run must not apply to the next.
            "#state = :running",
            # A newer version may have written the document, as for every other write.
            "#schema <= :schema",
            # With `as_read`: another run has begun, or a later job has its key. See `cancel`.
            *unchanged,
        ],
        names=["state", SCHEMA_ATTRIBUTE, *seen],
        values={":running": text(State.RUNNING), ":schema": number(SCHEMA_VERSION), **read},
    )


def _seen(job: Job) -> dict[str, Item]:
    """What tells this moment of the job from each other one."""
    return {
        "state": text(job.state),
        "generation": number(job.generation),
        "created_at": milliseconds(job.created_at),
    }


def _unchanged(attributes: Mapping[str, Item]) -> tuple[list[str], dict[str, Item]]:
    """The conditions that these attributes are as they were read, and the values of the conditions."""
    return (
        [f"#{name} = :read_{name}" for name in attributes],
        {f":read_{name}": value for name, value in attributes.items()},
    )


def wake(job: Job, *, now: datetime) -> Request:
    return _update_as_read(
        job,
        sets={"state": text(State.QUEUED)},
        removes=ATTENTION,
        entries=[Transition(at=now, state=State.QUEUED, cause=Why.DUE)],
        conditions=[
            # Two concurrent calls of wake, or a cancel since the job was read.
            "#state = :scheduled",
            # Since it was read, the job was woken, ran, and was scheduled again.
            "#generation = :generation",
        ],
        names=["generation"],
        values={":scheduled": text(State.SCHEDULED), ":generation": number(job.generation)},
    )


def park(job: Job, wait: Wait, *, now: datetime) -> Request:
    to_send = _states(TRANSITIONS[Write.PARK])
    return _update_as_read(
        job,
        sets={"state": text(State.PARKED), "due": milliseconds(now + LONGEST_PARKED), "wait": WAIT.encode(wait)}
        # In the order submitted, as those that a worker parks.
        | in_line(wait.line, job.created_at),
        # They were of a dispatch that the release makes anew.
        removes=["nudges"],
        entries=[Transition(at=now, state=State.PARKED, cause=Why.PAUSED)],
        # A new generation: a message of the present one may have been sent before, and must not start the parked job.
        expressions=["#generation = #generation + :one"],
        conditions=[
            # A worker has claimed the job from such a message, or the job was cancelled, since its record was written.
            f"#state IN ({', '.join(to_send)})",
            # It was retried, redriven or released since. The record of that write comes, too.
            "#generation = :generation",
            # A submission of its burst has moved it since, with no new generation: it must not start before its time.
            "#due = :due",
        ],
        names=["generation"],
        values={
            **to_send,
            ":generation": number(job.generation),
            ":due": milliseconds(job.due or now),
            ":one": number(1),
        },
    )


def unpark(job: Job, *, now: datetime, due: datetime) -> Request:
    wait, awaited = job.wait, job.signals.awaited
    not_before = wait.not_before if wait else None
    # A pause has parked it while it was queued for the end of its wait. A signal that came since ends that wait.
    paused_wait = awaited if awaited and awaited.until == not_before else None
    if paused_wait and unused(job.signals.received, paused_wait.name):
        not_before = paused_wait = None
    due = max(due, not_before) if not_before else due
    return _update_as_read(
        job,
        sets={"state": text(State.QUEUED), "due": milliseconds(due)},
        # A job that waited alone has no line whose turn it could take.
        removes=["wait", *ATTENTION] if wait and wait.alone else ATTENTION,
        entries=[Transition(at=now, state=State.QUEUED, cause=_released_by(wait))],
        # A new generation: each message that was sent before the job was parked stays stale.
        expressions=["#generation = #generation + :one"],
        conditions=[
            # Two concurrent releases, a signal, or a cancel since the job was read.
            "#state = :parked",
            # Since it was read, the job was released, ran, and was parked again.
            "#generation = :generation",
            # A signal that came since it was read ends the wait. The next release finds it.
            *([no_more_signals(len(job.signals.received))] if paused_wait else ()),
        ],
        names=["generation", *([SIGNALS_ATTRIBUTE] if paused_wait else ())],
        values={
            ":parked": text(State.PARKED),
            ":generation": number(job.generation),
            ":one": number(1),
            **(signals_known(len(job.signals.received)) if paused_wait else {}),
        },
    )


def _released_by(wait: Wait | None) -> Why:
    causes = {
        Cause.PAUSE: Why.RESUMED,
        Cause.BREAKER: Why.BREAKER,
        Cause.SIGNAL: Why.WAITED,
        Cause.INPUT: Why.WAITED,
    }
    return causes.get(wait.cause, Why.ROOM) if wait else Why.ROOM


def nudge(job: Job, *, now: datetime, limit: timedelta, last: bool, retention: timedelta, indexes: Indexes) -> Request:
    sets: dict[str, Item] = {"nudged_at": milliseconds(now), "nudges": number(job.nudges.count + 1)}
    removes: Sequence[str] = ()
    entry = Transition(at=now, state=job.state, cause=Why.NUDGED)
    if job.state is State.RUNNING:
        # Take a lost run back. The change of state makes publish dispatch the job. The generation stays, so that a late
        # message remains valid.
        sets["state"] = text(State.RETRYING)
        removes = ["owner"]
        entry = replace(entry, state=State.RETRYING, cause=Why.RUN_LOST)
    elif job.state is State.SCHEDULED:
        # The scheduler missed the job.
        sets["state"] = text(State.QUEUED)
        removes = ATTENTION
        entry = replace(entry, state=State.QUEUED)
    elif last:
        sets |= {"state": text(State.DEAD), "death": text(DeathReason.UNDELIVERABLE)}
        sets |= indexes.attention(State.DEAD, job.id, now) | ended(job, State.DEAD, now=now, retention=retention)
        removes = ["due"]
        # The entry has the attempt, as at the end of a run: the redrive counts attempts from 1 again.
        entry = replace(entry, state=State.DEAD, cause=DeathReason.UNDELIVERABLE, attempt=job.attempt or None)
    return _update_as_read(
        job,
        sets=sets,
        removes=removes,
        entries=[entry],
        conditions=[
            # The job has requested a newer dispatch since it was read.
            "#generation = :generation",
            # The job was claimed, or its run ended, since it was read.
            "#state = :state",
            # Not overdue: a worker holds its lease, or the job is not due yet.
            "#due <= :overdue",
            # Two concurrent nudges of the job make one dispatch.
            "(attribute_not_exists(#nudged_at) OR #nudged_at <= :overdue)",
            # Others have counted since it was read, long ago.
            "#nudges = :counted" if job.nudges.count else "attribute_not_exists(#nudges)",
        ],
        names=["generation", "state", "due"],
        values={
            ":generation": number(job.generation),
            ":state": text(job.state),
            ":overdue": milliseconds(now - limit),
            **({":counted": number(job.nudges.count)} if job.nudges.count else {}),
        },
    )


def resend(job: Job, *, now: datetime) -> Request:
    """Nudge at once and without a count, because the message is known to be missing."""
    sendable = _states(TRANSITIONS[Write.RESEND])
    earlier = "attribute_not_exists(#nudged_at)" if job.nudges.last_at is None else "#nudged_at = :nudged_at"
    return _update_as_read(
        job,
        sets={"nudged_at": milliseconds(now)},
        conditions=[
            # The job was claimed, cancelled or redriven since it was read, so the message arrived or is obsolete.
            f"#state IN ({', '.join(sendable)})",
            # Since it was read, the job has requested another dispatch, which has a record of its own.
            "#generation = :generation",
            # Two concurrent callers, or a nudge since it was read, make one dispatch.
            earlier,
        ],
        names=["state", "generation"],
        values={":generation": number(job.generation)}
        | sendable
        | ({":nudged_at": milliseconds(job.nudges.last_at)} if job.nudges.last_at else {}),
    )


def redrive(job: Job, entry: Redrive, *, state: State = State.QUEUED, sequence: int | None = None) -> Request:
    """Queue the job, or with a `sequence` put it at that position in its group, where it may wait.

    If the entry says so, the payload of `job` replaces the stored one. Publish then deletes what that was stored in.
    """
    redrivable = _states(TRANSITIONS[Write.REDRIVE])
    sets = {
        "state": text(state),
        "attempt": number(0),
        "redrives": REDRIVES.encode((*job.redrives, entry)[-ERRORS_KEPT:]),
    }
    removes = [
        *(TTL_ATTRIBUTE, "finished_at", "death", "releases", "nudges", "nudged_at", "hops", "deadline"),
        *("useful_until", "cancel_requested_at", "cancel", "run_at", "open_runs", "awaited", *ATTENTION),
        # A job that died on its way to a worker still has them; otherwise a settle has removed them.
        *("wait", *HOLD_ATTRIBUTES),
    ]
    entries = [Transition(at=entry.at, state=state, cause=Why.EDITED if entry.edited else Why.REDRIVEN)]
    if entry.edited:
        # Also a signal that came since the job was read: what it approves is the other payload.
        removes += GIVEN_TO_PAYLOAD
        if job.steps.recorded:
            sets["dropped_steps"] = DROPPED_STEPS.encode(job.steps.with_effects)
        held, absent = payload_changes(job)
        sets |= held
        removes += absent
    if job.state is State.DEAD and job.cancel.requested_at:
        # This write removes the request from the document.
        asked = Transition(at=job.cancel.requested_at, state=State.RUNNING, cause=Why.CANCEL_REQUESTED)
        entries = [asked, *entries]
    if job.state is State.DEAD and job.lost:
        # The last chance to record these runs, since attempts count from 1 again. The errors of a dead job never change
        # within its generation; those of a job that was read before its death may have changed since.
        sets["errors"] = ATTEMPT_ERRORS.encode(job.known_errors[-ERRORS_KEPT:])
    if state is State.QUEUED:
        sets["due"] = milliseconds(entry.at)
    if sequence is not None:
        sets["sequence"] = number(sequence)
    return _update_as_read(
        job,
        sets=sets,
        removes=removes,
        entries=entries,
        expressions=["#generation = #generation + :one"],
        conditions=[
            # Only dead jobs can be redriven.
            f"#state IN ({', '.join(redrivable)})",
            # Two concurrent operators: the second finds a higher generation.
            "#generation = :generation",
            # An expired job counts as missing, although DynamoDB deletes it days late.
            "(attribute_not_exists(#expires_at) OR #expires_at > :now)",
        ],
        names=["generation", "state", TTL_ATTRIBUTE],
        values={":one": number(1), ":generation": number(job.generation), ":now": whole_seconds(entry.at)} | redrivable,
    )


def rewrite(job: Job, stored: Job) -> Request:
    """Replace the payload of `job`, as it was read, by that of `stored`. Its messages stay valid."""
    at_rest = _states(TRANSITIONS[Write.REWRITE])
    was, _ = payload_changes(job)
    sets, absent = payload_changes(stored)
    unchanged, read = _unchanged(was)
    return _update_as_read(
        job,
        sets=sets,
        removes=[name for name in absent if name in was],
        conditions=[
            # A worker has claimed the job since it was read, and runs it with the payload that would be deleted.
            f"#state IN ({', '.join(at_rest)})",
            # It ran, or was redriven, since it was read.
            "#generation = :generation",
            # Another migration has replaced the payload since it was read, and the new one would belong to no job.
            *unchanged,
        ],
        names=["state", "generation", *was],
        values=at_rest | read | {":generation": number(job.generation)},
    )


def forget(job: Job) -> Request:
    return {
        "Key": key(job.tenant, job.id),
        # Since it was read, the job was redriven, or a new job replaced it under the same key.
        "ConditionExpression": "#generation = :generation AND #finished_at = :finished_at",
        "ExpressionAttributeNames": {"#generation": "generation", "#finished_at": "finished_at"},
        "ExpressionAttributeValues": {
            ":generation": number(job.generation),
            ":finished_at": milliseconds(job.finished_at or job.created_at),
        },
    }


def _update_as_read(
    job: Job, *, conditions: Sequence[str], names: Sequence[str], values: Mapping[str, Item], **request: Any
) -> Request:
    """Update only the job that was read, not a later job under its key."""
    return update_job(
        job.tenant,
        job.id,
        conditions=[
            *conditions,
            # Since it was read, the job expired and a new job replaced it, whose generations begin again at 1.
            "#created_at = :created_at",
        ],
        names=[*names, "created_at"],
        values={**values, ":created_at": milliseconds(job.created_at)},
        **request,
    )


def _states(states: Iterable[State | None]) -> dict[str, Item]:
    return {f":was_{state}": text(state) for state in sorted(state for state in states if state)}

"""The writes of submit and work as DynamoDB requests. Pure. Each clause has a comment with its race."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from tidemill.aws.attribute_values import milliseconds, number, seconds, text, whole_seconds
from tidemill.aws.clients import Item
from tidemill.domain.attempt.outcomes import Settlement, errors_after, history_after
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.history import LEAST_KEPT, MOST_UNREAD, Transition, Why
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.clauses import NO_CLAUSE, Clause
from tidemill.dynamodb.document import ATTEMPT_ERRORS, HISTORY_ATTRIBUTE, HOLD_ATTRIBUTES, encode
from tidemill.dynamodb.history_entries import history, kept
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.update_requests import ATTENTION, Request, update_job
from tidemill.names import JOB_KEY, TTL_ATTRIBUTE

#: It is absent until the first run.
_HISTORY_HAS_ROOM: Final = f"(attribute_not_exists(#{HISTORY_ATTRIBUTE}) OR size(#{HISTORY_ATTRIBUTE}) < :most_entries)"


def insert(job: Job, *, indexes: Indexes, replaces: Clause = NO_CLAUSE) -> Request:
    """Create the job. `replaces` has further conditions, on any of which it may take the place of a document."""
    conditions = [
        # Two submissions under one idempotency key: the second one finds the first.
        "attribute_not_exists(#pk)",
        # DynamoDB deletes expired items days late: an expired job counts as missing.
        "#expires_at <= :now",
    ]
    names = {"#pk": JOB_KEY, "#expires_at": TTL_ATTRIBUTE} | {f"#{name}": name for name in replaces.names}
    item = encode(job) | indexes.listing(job.tenant, job.id)
    if job.state is State.SCHEDULED and job.due:
        item |= indexes.attention(State.SCHEDULED, job.id, job.due)
    return {
        "Item": item,
        "ConditionExpression": " OR ".join([*conditions, *replaces.conditions]),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {":now": whole_seconds(job.created_at), **replaces.values},
    }


def claim(
    reference: Reference,
    *,
    token: str,
    now: datetime,
    lease_end: datetime,
    worker: str,
    known: Sequence[Transition] | None = None,
) -> Request:
    """The only transition that is written without knowledge of the document, apart from `unclaim`.

    `known` replaces the history of a document whose history is too long.
    """
    entry = Transition(at=now, state=State.RUNNING, cause=Why.CLAIMED, worker=worker)
    blind = known is None
    recorded = {} if known is None else {HISTORY_ATTRIBUTE: history([*known, entry])}
    return update_job(
        reference.tenant,
        reference.job_id,
        sets={**claimed(token, now=now, lease_end=lease_end), **recorded},
        removes=["nudges", *ATTENTION],
        entries=[entry] if blind else [],
        # DynamoDB evaluates the right-hand sides before it writes, so this reads the old `due`.
        expressions=[
            "#ready_at = #due",
            "#attempt = #attempt + :one",
            # Absent while no run has an open end.
            "#open_runs = if_not_exists(#open_runs, :zero) + :one",
        ],
        conditions=[
            # A late or duplicate message of an earlier dispatch must not start another run.
            "#generation = :generation",
            # Not before the job is due, not during another worker's lease, and not when terminal (no `due` then).
            "#due <= :now",
            # Claims that are taken back, one after another, must not fill the document.
            *([_HISTORY_HAS_ROOM] if blind else []),
        ],
        names=["ready_at", "due", "attempt", "open_runs", "generation", HISTORY_ATTRIBUTE],
        values={
            **({":most_entries": number(MOST_UNREAD)} if blind else {}),
            ":zero": number(0),
            ":one": number(1),
            ":generation": number(reference.generation),
            ":now": milliseconds(now),
        },
    )


def claimed(token: str, *, now: datetime, lease_end: datetime) -> dict[str, Item]:
    """What each claim sets."""
    return {
        "state": text(State.RUNNING),
        "owner": text(token),
        "claimed_at": milliseconds(now),
        "due": milliseconds(lease_end),
    }


def settle(
    job: Job,
    settlement: Settlement,
    clauses: Sequence[Clause],
    *,
    now: datetime,
    retention: timedelta,
    indexes: Indexes,
) -> Request:
    """End the run. Each clause is the part of one feature: see `settle_requests`, which knows them all."""
    sets = _outcome(job, settlement)
    for clause in clauses:
        sets |= clause.sets
    removes = [name for clause in clauses for name in clause.removes if name not in sets]
    if not (settlement.error or settlement.holds or settlement.state.terminal):
        # It goes on. The conflicts of a job that has failed still count.
        removes.append("releases")
    entries = history_after(job, settlement, now=now)
    conditions = _as_at_claim(settlement, clauses)
    if settlement.state.terminal:
        if settlement.state is State.DEAD:
            sets |= indexes.attention(State.DEAD, job.id, now)
        sets |= ended(job, settlement.state, now=now, retention=retention)
        removes = [*removes, "due"]
        return _end_run(job, sets=sets, entries=entries, removes=removes, **conditions)
    due = settlement.due or now
    if settlement.state is State.SCHEDULED:
        sets |= indexes.attention(State.SCHEDULED, job.id, due)
    return _continue_job(job, sets=sets, entries=entries, removes=removes, due=due, **conditions)


def _outcome(job: Job, settlement: Settlement) -> dict[str, Item]:
    """The attributes that an outcome of any job may set."""
    sets = {"state": text(settlement.state)}
    if (errors := errors_after(job, settlement)) != job.errors:
        sets["errors"] = ATTEMPT_ERRORS.encode(errors)
    for name in ("result", "death", "checkpoint"):
        if (value := getattr(settlement, name)) is not None:
            sets[name] = text(value)
    for name in ("attempt", "hops"):
        if (count := getattr(settlement, name)) is not None:
            sets[name] = number(count)
    return sets


def _as_at_claim(settlement: Settlement, clauses: Sequence[Clause]) -> dict[str, Any]:
    """The conditions on which an outcome that rests on the document as claimed may be written, with their values."""
    conditions, names = [], []
    if settlement.state is State.DEAD or not settlement.state.terminal:
        # A cancel was requested since the claim: the job must not continue, or wait dead for a person.
        conditions.append("attribute_not_exists(#cancel_requested_at)")
        names.append("cancel_requested_at")
    values: dict[str, Item] = {}
    for clause in clauses:
        conditions += clause.conditions
        names += clause.names
        values |= clause.values
    return {"conditions": conditions, "names": names, "values": values}


def ended(job: Job, state: State, *, now: datetime, retention: timedelta) -> dict[str, Item]:
    """The attributes of a terminal job. Only a terminal job may expire, and not while it blocks its group."""
    finished = {"finished_at": milliseconds(now)}
    if state is State.DEAD and job.group.blocks and job.group.key:
        return finished
    kept_until = now + (job.lifetime.retention or retention)
    return finished | {TTL_ATTRIBUTE: seconds(max(kept_until, job.lifetime.unique_until or kept_until))}


def release(job: Job, *, now: datetime, due: datetime, cause: Why = Why.CONFLICT) -> Request:
    counts = {"attempt": job.attempt - 1, "open_runs": job.lease.open_runs - 1}
    if cause is Why.CONFLICT:
        counts["releases"] = job.lease.releases + 1
    given_back = {name: number(count) for name, count in counts.items()}
    entry = Transition(at=now, state=State.RETRYING, cause=cause, attempt=job.attempt)
    return _continue_job(
        job,
        sets={"state": text(State.RETRYING)} | given_back,
        entries=[*job.history, entry],
        removes=[*HOLD_ATTRIBUTES, "wait"],
        due=due,
    )


def unclaim(reference: Reference, *, token: str, now: datetime) -> Request:
    """Release a claim whose response was lost, so that this worker has no claimed document."""
    return update_job(
        reference.tenant,
        reference.job_id,
        sets={"state": text(State.RETRYING), "last_owner": text(token), "due": milliseconds(now)},
        removes=["owner"],
        entries=[Transition(at=now, state=State.RETRYING, cause=Why.UNANSWERED)],
        expressions=[
            "#attempt = #attempt - :one",
            "#open_runs = #open_runs - :one",
            "#generation = #generation + :one",
        ],
        # The claim did not take effect, or another worker has claimed the job since.
        conditions=["#owner = :owner"],
        names=["attempt", "open_runs", "generation", "owner"],
        values={":one": number(1), ":owner": text(token)},
    )


def _continue_job(
    job: Job,
    *,
    sets: Mapping[str, Item],
    entries: Sequence[Transition],
    due: datetime,
    removes: Sequence[str] = (),
    conditions: Sequence[str] = (),
    names: Sequence[str] = (),
    values: Mapping[str, Item] | None = None,
) -> Request:
    """End the run and request another dispatch: a new generation makes publish dispatch the job."""
    return _end_run(
        job,
        sets={**sets, "due": milliseconds(due)},
        entries=entries,
        removes=removes,
        expressions=["#generation = #generation + :one"],
        conditions=conditions,
        names=["generation", *names],
        values={":one": number(1), **(values or {})},
    )


def _end_run(
    job: Job,
    *,
    sets: Mapping[str, Item],
    entries: Sequence[Transition],
    removes: Sequence[str],
    expressions: Sequence[str] = (),
    conditions: Sequence[str],
    names: Sequence[str],
    values: Mapping[str, Item],
) -> Request:
    """End the run and its lease. Only the holder of the lease may do so.

    `entries` are the whole history: the holder of the lease knows it, so it drops the oldest.
    """
    token = text(job.lease.owner or "")
    sets, removes = {**sets, "last_owner": token}, ["owner", *removes]
    if len(entries) > LEAST_KEPT:
        written = encode(replace(job, history=())) | sets
        entries = kept(entries, {name: value for name, value in written.items() if name not in removes})
    return update_job(
        job.tenant,
        job.id,
        sets={**sets, HISTORY_ATTRIBUTE: history(entries)},
        removes=removes,
        expressions=expressions,
        # The fence: a worker that lost its lease cannot write.
        conditions=["#owner = :owner", *conditions],
        names=names,
        values={":owner": token, **values},
    )

"""The writes of submit and work as DynamoDB requests. Pure. Each clause has a comment with its race."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from tidemill.application.ports import Checkpoint
from tidemill.aws.attribute_values import milliseconds, number, seconds, text, whole_seconds
from tidemill.aws.clients import Item
from tidemill.domain.flow_place import Mark
from tidemill.domain.history import LEAST_KEPT, MOST_UNREAD, Transition, Why
from tidemill.domain.job import Job
from tidemill.domain.job_message import Reference
from tidemill.domain.outcomes import Settlement, errors_after, history_after, open_runs_after
from tidemill.domain.states import State
from tidemill.domain.steps import Step
from tidemill.dynamodb.document import (
    ATTEMPT_ERRORS,
    AWAITED,
    FLOW_ATTRIBUTE,
    HISTORY_ATTRIBUTE,
    HOLD_ATTRIBUTES,
    LOOKS_ATTRIBUTE,
    OTHER_HOLDS,
    SIGNALS,
    SIGNALS_ATTRIBUTE,
    SKIPPED,
    STEPS,
    STEPS_ATTRIBUTE,
    UNDO,
    WAIT,
    encode,
)
from tidemill.dynamodb.flow_writes import looks_as_known
from tidemill.dynamodb.history_entries import history, kept
from tidemill.dynamodb.indexes import Indexes, in_line
from tidemill.dynamodb.signal_writes import no_more_signals, signals_known
from tidemill.dynamodb.update_requests import ATTENTION, Request, update_job
from tidemill.names import JOB_KEY, TTL_ATTRIBUTE

#: It is absent until the first run.
_HISTORY_HAS_ROOM: Final = f"(attribute_not_exists(#{HISTORY_ATTRIBUTE}) OR size(#{HISTORY_ATTRIBUTE}) < :most_entries)"


def insert(job: Job, *, indexes: Indexes) -> Request:
    conditions = [
        # Two submissions under one idempotency key: the second one finds the first.
        "attribute_not_exists(#pk)",
        # DynamoDB deletes expired items days late: an expired job counts as missing.
        "#expires_at <= :now",
    ]
    names, values = {"#pk": JOB_KEY, "#expires_at": TTL_ATTRIBUTE}, {":now": whole_seconds(job.created_at)}
    if job.flow and job.flow.mark is not Mark.BLOCKED:
        # A node that starts or is skipped after all. Its document only says that its parents did not let it start.
        conditions.append(f"#{FLOW_ATTRIBUTE}.#mark = :blocked")
        names |= {f"#{FLOW_ATTRIBUTE}": FLOW_ATTRIBUTE, "#mark": "mark"}
        values[":blocked"] = text(Mark.BLOCKED)
    item = encode(job) | indexes.listing(job.tenant, job.id)
    if job.state is State.SCHEDULED and job.due:
        item |= indexes.attention(State.SCHEDULED, job.id, job.due)
    return {
        "Item": item,
        "ConditionExpression": " OR ".join(conditions),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
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


def settle(job: Job, settlement: Settlement, *, now: datetime, retention: timedelta, indexes: Indexes) -> Request:
    sets = {"state": text(settlement.state)}
    if (errors := errors_after(job, settlement)) != job.errors:
        sets["errors"] = ATTEMPT_ERRORS.encode(errors)
    for name in ("result", "death", "checkpoint"):
        if (value := getattr(settlement, name)) is not None:
            sets[name] = text(value)
    if settlement.undo is not None:
        sets["undo"] = UNDO.encode(settlement.undo)
    if settlement.skipped:
        sets["skipped"] = SKIPPED.encode(settlement.skipped)
    for name in ("attempt", "hops"):
        if (count := getattr(settlement, name)) is not None:
            sets[name] = number(count)
    sets |= _signals(settlement)
    held = _hold(job, settlement)
    sets |= held
    removes = [name for name in _rows_ended(settlement) if name not in held.keys() | sets.keys()]
    removes += _used_up_steps(job, settlement)
    entries = history_after(job, settlement, now=now)
    if settlement.state is State.DEAD:
        sets |= indexes.attention(State.DEAD, job.id, now)
    if settlement.state.terminal:
        sets |= ended(job, settlement.state, now=now, retention=retention)
        removes = [*removes, "due"]
        return _end_run(job, sets=sets, entries=entries, removes=removes, **_as_at_claim(job, settlement))
    due = settlement.due or now
    sets |= _index_entry(job, settlement, due, indexes)
    return _continue_job(job, sets=sets, entries=entries, removes=removes, due=due, **_as_at_claim(job, settlement))


def _rows_ended(settlement: Settlement) -> list[str]:
    """What is counted in a row, up to a run that came back. The conflicts of a job that has failed still count."""
    goes_on = not (settlement.error or settlement.holds or settlement.state.terminal)
    return [*HOLD_ATTRIBUTES, "open_runs", "wait", *(["releases"] if goes_on else [])]


def _as_at_claim(job: Job, settlement: Settlement) -> dict[str, Any]:
    """The conditions on which an outcome that rests on the document as claimed may be written, with their values."""
    conditions, names, values = [], [], {}
    if settlement.state is State.DEAD or not settlement.state.terminal:
        # A cancel was requested since the claim: the job must not continue, or wait dead for a person.
        conditions.append("attribute_not_exists(#cancel_requested_at)")
        names.append("cancel_requested_at")
    if (known := settlement.signals_known) is not None:
        # A signal came since the claim, perhaps the one to wait for.
        conditions.append(no_more_signals(known))
        names.append(SIGNALS_ATTRIBUTE)
        values = signals_known(known)
    if settlement.rests_on_look:
        # Since the claim, a node has ended or was added, perhaps after the run looked at it.
        condition, known_looks = looks_as_known(job)
        conditions.append(condition)
        names.append(LOOKS_ATTRIBUTE)
        values = values | known_looks
    return {"conditions": conditions, "names": names, "values": values}


def _used_up_steps(job: Job, settlement: Settlement) -> list[str]:
    """Their results are of use only to a later run, and count in the size of the item."""
    return [STEPS_ATTRIBUTE] if job.steps and settlement.state is State.SUCCEEDED else []


def _index_entry(job: Job, settlement: Settlement, due: datetime, indexes: Indexes) -> dict[str, Item]:
    if settlement.state is State.SCHEDULED or (settlement.state is State.PARKED and settlement.awaited):
        # A job that waits alone is beside the scheduled jobs, so that wake finds it at the end of its wait.
        return indexes.attention(State.SCHEDULED, job.id, due)
    if settlement.state is State.PARKED and settlement.wait:
        # In the order submitted, so that a job that is parked again keeps its place.
        return in_line(settlement.wait.line, job.created_at)
    return {}


def _signals(settlement: Settlement) -> dict[str, Item]:
    """The attributes of `Settlement.awaited`, and of the wait that it begins."""
    if settlement.awaited is None:
        return {}
    waits = {"awaited": AWAITED.encode(settlement.awaited)}
    if settlement.wait:
        waits["wait"] = WAIT.encode(settlement.wait)
    return waits | ({} if settlement.signals is None else {SIGNALS_ATTRIBUTE: SIGNALS.encode(settlement.signals)})


def _hold(job: Job, settlement: Settlement) -> dict[str, Item]:
    """The attributes of a hold; empty for every other outcome, which clears them."""
    if settlement.hold_cause is None:
        return {}
    held = {
        "holds": number(settlement.holds),
        "open_runs": number(open_runs_after(job, settlement)),
        "hold_cause": text(settlement.hold_cause),
    }
    if settlement.other_holds:
        held["other_holds"] = OTHER_HOLDS.encode(settlement.other_holds)
    return held | ({"wait": WAIT.encode(settlement.wait)} if settlement.wait else {})


def ended(job: Job, state: State, *, now: datetime, retention: timedelta) -> dict[str, Item]:
    """The attributes of a terminal job. Only a terminal job may expire, and not while it blocks its group."""
    finished = {"finished_at": milliseconds(now)}
    if state is State.DEAD and job.blocks and job.group:
        return finished
    kept_until = now + (job.retention or retention)
    return finished | {TTL_ATTRIBUTE: seconds(max(kept_until, job.unique_until or kept_until))}


def release(job: Job, *, now: datetime, due: datetime, cause: Why = Why.CONFLICT) -> Request:
    counts = {"attempt": job.attempt - 1, "open_runs": job.open_runs - 1}
    if cause is Why.CONFLICT:
        counts["releases"] = job.releases + 1
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
    """As `release`, for a claim whose response was lost, so that this worker has no claimed document."""
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


def checkpoint(job: Job, saved: Checkpoint, *, now: datetime) -> Request:
    sets = {"checkpoint_at": milliseconds(now)}
    if saved.state is not None:
        sets["checkpoint"] = text(saved.state)
    if saved.done is not None:
        sets["progress_done"] = number(saved.done)
    if saved.total is not None:
        sets["progress_total"] = number(saved.total)
    return update_job(
        job.tenant,
        job.id,
        sets=sets,
        conditions=[
            # The fence: a run that lost its lease must not overwrite the progress of the next run.
            "#owner = :owner",
            # A send that the network held up may arrive after a later checkpoint.
            "(attribute_not_exists(#checkpoint_at) OR #checkpoint_at < :new_checkpoint_at)",
        ],
        names=["owner"],
        values={":owner": text(job.owner or "")},
    )


def record_step(job: Job, step: Step) -> Request:
    """Add a step to those of `job`."""
    known = len(job.steps)
    added = f"#{STEPS_ATTRIBUTE} = list_append(if_not_exists(#{STEPS_ATTRIBUTE}, :no_steps), :step)"
    return update_job(
        job.tenant,
        job.id,
        sets={},
        expressions=[added],
        conditions=[
            # The fence: a run that lost its lease must not add to the steps of the next run.
            "#owner = :owner",
            # The SDK sends the call again after its own success. Without this, the step would be there twice.
            f"size(#{STEPS_ATTRIBUTE}) = :known" if known else f"attribute_not_exists(#{STEPS_ATTRIBUTE})",
        ],
        names=["owner", STEPS_ATTRIBUTE],
        values={
            ":owner": text(job.owner or ""),
            ":step": STEPS.encode((step,)),
            ":no_steps": STEPS.encode(()),
            **({":known": number(known)} if known else {}),
        },
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
    token = text(job.owner or "")
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

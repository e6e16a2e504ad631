"""DynamoDB refuses a request with a name or a value that its expressions do not use, or one that they lack.

The tables of tests take some of them, above all in transactions.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ExpressionAttributeNames.html
"""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest

from tests.support.builders import (
    A_BURST,
    A_SIGNAL,
    A_STEP,
    A_WAIT,
    AN_UNDO,
    LEASE,
    NOW,
    RETENTION,
    SECOND,
    SETTLEMENTS,
    TENANT,
    a_job,
    an_error,
    an_undo_of,
    reference_to,
    with_changes,
)
from tidemill.application.ports import Checkpoint, LimitSlot
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.dispatch.job_message import FirstRun
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import Job, Redrive
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive, ConcurrencyChange, RunSample, Trouble
from tidemill.domain.limits.limit_state import LimitState, Turn, reservation_name, run_name
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.pauses import Drain
from tidemill.domain.waiting.signals import Awaited
from tidemill.domain.waiting.waiting import Cause, Line, Wait
from tidemill.dynamodb import job_writes
from tidemill.dynamodb.attempt import settle_requests
from tidemill.dynamodb.attempt.first_claim import first_claim
from tidemill.dynamodb.batches import batch_pages
from tidemill.dynamodb.corrections import undo_writes
from tidemill.dynamodb.debounce import debounce_writes
from tidemill.dynamodb.flows import flow_writes
from tidemill.dynamodb.groups import group_items
from tidemill.dynamodb.groups.group_items import Head, Tail
from tidemill.dynamodb.indexes import NOT_LISTED, Indexes
from tidemill.dynamodb.limits import limit_item
from tidemill.dynamodb.operations import operator_writes
from tidemill.dynamodb.steps import run_writes
from tidemill.dynamodb.waiting import signal_writes
from tidemill.system.ids import new_job_id

Requests = dict[str, Callable[[], Any]]

LATER = NOW + 40 * SECOND
DONE = a_job(state=State.SUCCEEDED, due=None, finished_at=NOW, expires_at=NOW + RETENTION)
UNDO, UNDONE = an_undo_of(DONE)
RUNNING = a_job(state=State.RUNNING, owner="t", attempt=1, open_runs=1, claimed_at=NOW, due=NOW + LEASE)
DEAD = a_job(state=State.DEAD, due=None, finished_at=NOW, errors=(an_error(),))
BATCH = a_job(id=new_job_id())
FIRST = a_job(due=NOW + SECOND, run_at=NOW + SECOND, burst=A_BURST)
FLOW = a_job(state=State.RUNNING, owner="t")
WAITS = a_job(
    state=State.PARKED,
    wait=Wait(cause=Cause.SIGNAL, key="a", since=NOW),
    awaited=Awaited(cause=Cause.SIGNAL, name="a", since=NOW, until=NOW),
)
ASKED = CancelRequest(by="ada", reason="a typo")
REDRIVE = Redrive(token="r", at=NOW, by="ada")
LONG = tuple(Transition(at=NOW, state=State.RUNNING, cause=Why.CLAIMED) for _ in range(40))
RATE = Rate(count=3, period=timedelta(minutes=1))
BOUNDS = Adaptive(floor=1, ceiling=4, target_seconds=1)
LINES = {"limit": Line.for_limit("a"), "breaker": Line.for_breaker("a")}
LIMITS = {
    "slots": Limit(concurrency=2),
    "rate": Limit(rate=RATE),
    "both": Limit(concurrency=2, rate=RATE),
    "adaptive": Limit(adaptive=BOUNDS),
    "adaptive and rate": Limit(adaptive=BOUNDS, rate=RATE),
}
STATES = {
    "nothing read": LimitState(held={}, blind=True),
    "no item": LimitState(held=None),
    "an idle item": LimitState(held={}, last_at=NOW - SECOND),
    "a busy item": LimitState(
        held={"a": NOW - SECOND, "b": NOW + SECOND, "+c": NOW + SECOND},
        arrival=NOW + SECOND,
        promised=NOW + SECOND,
        marked=True,
        last_at=NOW - SECOND,
        adapted=Adapted(allowed=2.5, falls=1),
    ),
    "an item whose slots are all over": LimitState(
        held=dict.fromkeys(["b", "+d", reservation_name(TENANT, "a")], NOW - SECOND), adapted=Adapted(allowed=2.5)
    ),
    "an item of another rate": LimitState(
        held={}, arrival=NOW + timedelta(days=1), promised=NOW + timedelta(days=1), spacing=SECOND
    ),
}
ENTERED = Adapted(allowed=2, falls=1)
SAMPLE = RunSample(entered=ENTERED, taken=1, seconds=2)
CHANGES = {
    "no change": None,
    "one more": ConcurrencyChange(step=1, sample=SAMPLE),
    "fewer": ConcurrencyChange(
        lowered=Adapted(allowed=1.5, falls=2, fell_at=NOW, why=Trouble.SLOW), sample=replace(SAMPLE, trouble=None)
    ),
}


def _insert_node(node: Job) -> Any:
    return job_writes.insert(node, indexes=NOT_LISTED, replaces=flow_writes.replaces_blocked(node))


ONCE: Requests = {
    "first claim": partial(
        first_claim,
        reference_to(BATCH),
        FirstRun(type="test.job", due=NOW),
        token="t",
        now=NOW,
        lease_end=NOW + LEASE,
        worker="w",
    ),
    "claim": partial(job_writes.claim, reference_to(BATCH), token="t", now=NOW, lease_end=NOW + LEASE, worker="w"),
    "claim of a long history": partial(
        job_writes.claim, reference_to(BATCH), token="t", now=NOW, lease_end=NOW + LEASE, worker="w", known=LONG
    ),
    "release": partial(job_writes.release, RUNNING, now=NOW, due=NOW),
    "unclaim": partial(job_writes.unclaim, reference_to(BATCH), token="t", now=NOW),
    "checkpoint": partial(run_writes.checkpoint, RUNNING, Checkpoint(state="{}", done=1, total=2), now=NOW),
    "checkpoint of nothing": partial(run_writes.checkpoint, RUNNING, Checkpoint(), now=NOW),
    "first step": partial(run_writes.record_step, RUNNING, A_STEP),
    "second step": partial(run_writes.record_step, with_changes(RUNNING, steps=(A_STEP,)), A_STEP),
    "insert of a node": partial(_insert_node, a_job(flow=FlowPlace(id="f", node="n", mark=Mark.BLOCKED))),
    "insert of a node that starts": partial(_insert_node, a_job(flow=FlowPlace(id="f", node="n", mark=Mark.SKIPPED))),
    "insert": partial(job_writes.insert, BATCH, indexes=Indexes(listed=True)),
    "wake": partial(operator_writes.wake, BATCH, now=NOW),
    "park": partial(operator_writes.park, BATCH, A_WAIT, now=NOW),
    "resend": partial(operator_writes.resend, BATCH, now=NOW),
    "second resend": partial(operator_writes.resend, with_changes(BATCH, nudged_at=NOW), now=LATER),
    "redrive": partial(operator_writes.redrive, DEAD, REDRIVE),
    "redrive into a group": partial(operator_writes.redrive, DEAD, REDRIVE, state=State.WAITING, sequence=3),
    "redrive with another payload": partial(operator_writes.redrive, DEAD, replace(REDRIVE, edited=True)),
    "redrive with a payload apart": partial(
        operator_writes.redrive, with_changes(DEAD, payload=None, payload_at="item/1"), replace(REDRIVE, edited=True)
    ),
    "rewrite": partial(operator_writes.rewrite, BATCH, with_changes(BATCH, payload='{"v":2}')),
    "rewrite apart": partial(operator_writes.rewrite, BATCH, with_changes(BATCH, payload=None, payload_at="item/1")),
    "rewrite back": partial(operator_writes.rewrite, with_changes(BATCH, payload=None, payload_at="item/1"), BATCH),
    "drain of a pause": partial(limit_item.mark_drain, Drain(line=Line.for_limit("a"), rate=RATE, ends_at=NOW)),
    "forget": partial(operator_writes.forget, DEAD),
    "undo": partial(undo_writes.mark_undone, DONE, UNDONE),
    "undo of an undone job": partial(undo_writes.mark_undone, with_changes(DONE, undone=UNDONE), UNDONE),
    "undo of a superseded job": partial(undo_writes.mark_undone, with_changes(DONE, superseded_by="b"), UNDONE),
    "member of a batch": partial(batch_pages.join, a_job(id=new_job_id()), BATCH),
    "first of a burst": partial(debounce_writes.lead_to, FIRST, after=None),
    "next burst": partial(debounce_writes.lead_to, FIRST, after="a"),
    "signal": partial(signal_writes.keep, RUNNING, A_SIGNAL),
    "second signal": partial(signal_writes.keep, with_changes(RUNNING, signals=(A_SIGNAL,)), A_SIGNAL),
    "signal that wakes": partial(signal_writes.wakes, WAITS, A_SIGNAL),
    "look at a flow": partial(flow_writes.look, FLOW, now=NOW),
    "look at a flow that waits": partial(flow_writes.look, WAITS, now=NOW),
    "first nodes": partial(flow_writes.count_addition, FLOW, now=NOW),
    "further nodes": partial(flow_writes.count_addition, with_changes(FLOW, additions=2), now=NOW),
    "turn": partial(
        group_items.become_head, replace(BATCH, state=State.SCHEDULED, due=LATER, history=LONG), indexes=NOT_LISTED
    ),
    "first head": partial(group_items.put_head, Head(tenant="t", group="g"), version="1"),
    "head": partial(group_items.put_head, Head(tenant="t", group="g", version="1", job_id="a"), version="2"),
    "idle head": partial(group_items.put_idle_head, Head(tenant="t", group="g"), version="2", expires_at=NOW),
    "first tail": partial(group_items.put_tail, Tail(tenant="t", group="g", sequence=1), version="1"),
    "end of a tail": partial(group_items.delete_tail, Tail(tenant="t", group="g", sequence=1, version="1")),
}


def of_operators() -> Requests:
    jobs = {"queued": BATCH, "running": RUNNING, "scheduled": replace(BATCH, state=State.SCHEDULED)}
    earlier = {"queued": BATCH, "running": RUNNING, "succeeded": DONE, "dead": DEAD}
    return {
        **{
            f"unpark from {cause}": partial(
                operator_writes.unpark,
                replace(BATCH, state=State.PARKED, wait=replace(A_WAIT, cause=cause)),
                now=NOW,
                due=LATER,
            )
            for cause in Cause
        },
        **{
            f"cancel, {as_read}": partial(
                operator_writes.cancel, BATCH, ASKED, now=NOW, retention=RETENTION, as_read=as_read
            )
            for as_read in (True, False)
        },
        **{
            f"request to cancel, {as_read}": partial(
                operator_writes.request_cancel, RUNNING, ASKED, now=NOW, as_read=as_read
            )
            for as_read in (True, False)
        },
        **{
            f"nudge, {name}, {last}, {nudges}": partial(
                operator_writes.nudge,
                with_changes(jobs[name], nudges=nudges),
                now=LATER,
                limit=SECOND,
                last=last,
                retention=RETENTION,
                indexes=NOT_LISTED,
            )
            for name, last, nudges in product(jobs, (True, False), (0, 2))
        },
        **{
            f"supersede, {name}, {by}": partial(
                undo_writes.mark_superseded,
                with_changes(earlier[name], superseded_by=by),
                a_job(created_at=LATER),
                retention=RETENTION,
            )
            for name, by in product(earlier, (None, "b"))
        },
    }


def of_bursts() -> Requests:
    changed: dict[str, Job] = {
        "nothing": FIRST,
        "another time": replace(FIRST, due=LATER, run_at=LATER),
        "a far time": replace(FIRST, due=LATER, run_at=LATER, state=State.SCHEDULED),
        "a payload": with_changes(FIRST, payload='{"v":2}'),
        "a payload apart": with_changes(FIRST, payload=None, payload_at="item/1"),
        "a longer use": with_changes(FIRST, useful_until=LATER + SECOND),
        "use without an end": FIRST,
    }
    aged = with_changes(FIRST, useful_until=LATER)
    return {
        f"join, {name}, {replaces}, {at}": partial(
            debounce_writes.join,
            with_changes(aged if "use" in name else FIRST, payload_at=at),
            changed[name],
            by="b",
            now=NOW,
            replaces=replaces,
            indexes=NOT_LISTED,
        )
        for name, replaces, at in product(changed, (True, False), (None, "item/0"))
    }


def of_runs() -> Requests:
    settlements: Mapping[str, Settlement] = {
        **{str(state): settlement for state, settlement in SETTLEMENTS.items()},
        "undo": replace(SETTLEMENTS[State.SUCCEEDED], undo=AN_UNDO, signals_known=0, rests_on_look=True),
        "signals": replace(SETTLEMENTS[State.PARKED], signals_known=2, signals=(A_SIGNAL,), rests_on_look=True),
    }
    jobs = {"": RUNNING, "long ": with_changes(RUNNING, history=LONG, steps=(A_STEP,), looks=2)}
    return {
        f"settle {kind}{name}": partial(
            settle_requests.settle, jobs[kind], settlements[name], now=NOW, retention=RETENTION, indexes=NOT_LISTED
        )
        for kind, name in product(jobs, settlements)
    }


def of_limits() -> Requests:
    turns = [Turn(reservation="+d", due=NOW), Turn(reservation="+e", due=LATER)]
    slots = {
        f"{line}, {name}, {released}": LimitSlot(
            line=LINES[line], limit=LIMITS[name], token="t", until=NOW + LEASE, job=(TENANT, "a"), released=released
        )
        for line, name, released in product(LINES, LIMITS, (True, False))
    }
    read = [kind for kind in STATES if kind != "nothing read"]
    return {
        **{
            f"enter, {slot}, {kind}": partial(limit_item.enter, slots[slot], STATES[kind], now=NOW)
            for slot, kind in product(slots, STATES)
        },
        **{
            f"mark, {slot}, {kind}": partial(limit_item.mark, slots[slot], STATES[kind], now=NOW)
            for slot, kind in product(slots, STATES)
        },
        **{
            f"promise, {kind}": partial(
                limit_item.promise, slots["limit, rate, False"], RATE, STATES[kind], NOW, now=NOW
            )
            for kind in read
        },
        **{
            f"reserve, {name}, {kind}, {how}, {leaving}": partial(
                limit_item.reserve,
                LINES["limit"],
                replace(STATES[kind], limit=LIMITS[name]),
                turns,
                leaving=leaving,
                now=NOW,
                change=CHANGES[how],
            )
            for name, kind, how, leaving in product(LIMITS, read, CHANGES, (None, "b"))
            # A run changes a number that it has found.
            if how == "no change" or (LIMITS[name].adaptive and STATES[kind].adapted)
        },
        **{
            f"leave, {how}": partial(limit_item.leave, slots["limit, adaptive, False"], CHANGES[how]) for how in CHANGES
        },
        **{
            f"vacate, {how}": partial(limit_item.vacate, LINES["limit"], run_name("t"), CHANGES[how]) for how in CHANGES
        },
        **{f"clear, {line}": partial(limit_item.clear, LINES[line], STATES["a busy item"]) for line in LINES},
    }


REQUESTS = {**ONCE, **of_operators(), **of_bursts(), **of_runs(), **of_limits()}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_has_the_names_and_the_values_that_its_expressions_use(name: str) -> None:
    """And it changes no path twice, and has no empty clause."""
    request = REQUESTS[name]()

    update: str = request.get("UpdateExpression", "")
    used = f"{update} {request.get('ConditionExpression', '')}"
    assert set(re.findall(r"#\w+", used)) == request.get("ExpressionAttributeNames", {}).keys()
    assert set(re.findall(r":\w+", used)) == request.get("ExpressionAttributeValues", {}).keys()
    clauses = [each.strip() for each in re.split(r"\b(?:SET|REMOVE|ADD)\b", update)[1:]]
    assert "" not in clauses
    paths = [re.split(r" = | ", change.strip())[0] for each in clauses for change in re.split(r",(?![^(]*\))", each)]
    assert len(paths) == len(set(paths))

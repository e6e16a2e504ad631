"""What the writes of operators, wake and reconcile change in a document, and on which document each one insists."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from tests.support.builders import (
    A_STEP,
    A_WAIT,
    LEASE,
    NOW,
    RETENTION,
    SECOND,
    a_job,
    an_error,
    with_changes,
)
from tidemill.aws.attribute_values import milliseconds, number, seconds, text, whole_seconds
from tidemill.aws.clients import Item
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import DeathReason, Redrive
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Awaited, Signal
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Wait
from tidemill.dynamodb.document import ATTEMPT_ERRORS, CANCEL, REDRIVES, WAIT
from tidemill.dynamodb.indexes import Indexes, in_line
from tidemill.dynamodb.operations import operator_writes

INDEXES = Indexes(shards=1)
AT = NOW + 10 * SECOND
LATER = NOW + 1000 * SECOND
QUEUED = a_job(generation=3, nudges=2, nudged_at=NOW)
RETRYING = with_changes(QUEUED, state=State.RETRYING, nudges=0, nudged_at=None)
RUNNING = a_job(state=State.RUNNING, owner="t", attempt=2, open_runs=2, generation=3, claimed_at=NOW, due=NOW + LEASE)
SCHEDULED = a_job(state=State.SCHEDULED, due=NOW, run_at=NOW)
PARKED = a_job(state=State.PARKED, due=LATER, wait=A_WAIT, generation=3)
AWAITED = Awaited(cause=Cause.SIGNAL, name="a", since=NOW, until=LATER)
#: A pause has parked it while it was queued for the end of its wait.
PAUSED = with_changes(PARKED, awaited=AWAITED, wait=replace(A_WAIT, not_before=LATER))
SIGNALLED = with_changes(PAUSED, signals=(Signal(name="a", at=NOW, data="1"),))
OTHERWISE = with_changes(PAUSED, signals=(Signal(name="a", at=NOW, data="1", used=True),))
ALONE = replace(PARKED, wait=Wait(cause=Cause.SIGNAL, key="a", since=NOW))
DEAD = a_job(state=State.DEAD, due=None, finished_at=NOW, errors=(an_error(),), generation=3, created_at=NOW - SECOND)
CRASHED = with_changes(
    DEAD,
    attempt=2,
    open_runs=1,
    history=(Transition(at=NOW, state=State.RUNNING, cause=Why.CLAIMED, attempt=2),),
)
ASKED = CancelRequest(by="ada", reason="a typo")
REDRIVE = Redrive(token="r", at=AT, by="ada")
NUDGE: dict[str, Any] = {"now": AT, "limit": SECOND, "retention": RETENTION, "indexes": INDEXES}
INDEX = {"attention", "attention_at"}
RESTARTED = INDEX | {
    *("expires_at", "finished_at", "death", "releases", "nudges", "nudged_at", "hops", "deadline", "useful_until"),
    *("cancel_requested_at", "cancel", "run_at", "open_runs", "awaited", "wait", "holds", "hold_cause", "other_holds"),
}
PROGRESS = {"steps", "checkpoint", "checkpoint_at", "progress_done", "progress_total", "signals"}
EDITED = replace(REDRIVE, edited=True)

Request = Callable[[], Mapping[str, Any]]


def parts(request: Mapping[str, Any]) -> tuple[dict[str, Item], set[str], list[str]]:
    """What the request sets, what it removes, and which other changes it makes."""
    values = request["ExpressionAttributeValues"]
    setting, _, removing = request["UpdateExpression"].removeprefix("SET ").partition(" REMOVE ")
    sets = {name: values[value] for name, value in re.findall(r"#(\w+) = (:new_\w+)", setting)}
    others = [each for each in setting.split(", #") if ":new_" not in each and "history" not in each]
    return (
        {name: value for name, value in sets.items() if name != "schema"},
        set(filter(None, removing.replace("#", "").split(", "))),
        [f"#{each.removeprefix('#')}" for each in others],
    )


NEXT = "#generation = #generation + :one"
ENDED: dict[str, Item] = {"finished_at": milliseconds(AT), "expires_at": seconds(AT + RETENTION)}
#: What each write sets and removes, and whether it makes messages that were sent before stale.
WRITES: dict[str, tuple[Request, dict[str, Item], set[str], bool]] = {
    "cancel": (
        partial(operator_writes.cancel, QUEUED, ASKED, now=AT, retention=RETENTION, as_read=False),
        {"state": text("cancelled"), "cancel": CANCEL.encode(ASKED), **ENDED},
        {"due", "death", "wait"} | INDEX,
        False,
    ),
    "request to cancel": (
        partial(operator_writes.request_cancel, RUNNING, ASKED, now=AT),
        {"cancel_requested_at": milliseconds(AT), "cancel": CANCEL.encode(ASKED)},
        set(),
        False,
    ),
    "wake": (partial(operator_writes.wake, SCHEDULED, now=AT), {"state": text("queued")}, INDEX, False),
    "park": (
        partial(operator_writes.park, QUEUED, A_WAIT, now=AT),
        {
            "state": text("parked"),
            "due": milliseconds(AT + LONGEST_PARKED),
            "wait": WAIT.encode(A_WAIT),
            **in_line(A_WAIT.line, QUEUED.created_at),
        },
        {"nudges"},
        True,
    ),
    # It keeps its wait, by which it takes its turn in the line.
    "unpark": (
        partial(operator_writes.unpark, PARKED, now=AT, due=LATER),
        {"state": text("queued"), "due": milliseconds(LATER)},
        INDEX,
        True,
    ),
    "unpark of a job that waits alone": (
        partial(operator_writes.unpark, ALONE, now=AT, due=LATER),
        {"state": text("queued"), "due": milliseconds(LATER)},
        INDEX | {"wait"},
        True,
    ),
    "unpark before its time": (
        partial(operator_writes.unpark, replace(PARKED, wait=replace(A_WAIT, not_before=LATER)), now=AT, due=AT),
        {"state": text("queued"), "due": milliseconds(LATER)},
        INDEX,
        True,
    ),
    "unpark of a paused wait without its signal": (
        partial(operator_writes.unpark, OTHERWISE, now=AT, due=AT),
        {"state": text("queued"), "due": milliseconds(LATER)},
        INDEX,
        True,
    ),
    "unpark of a paused wait whose signal came": (
        partial(operator_writes.unpark, SIGNALLED, now=AT, due=AT),
        {"state": text("queued"), "due": milliseconds(AT)},
        INDEX,
        True,
    ),
    "unpark after its time": (
        partial(operator_writes.unpark, replace(PARKED, wait=replace(A_WAIT, not_before=NOW)), now=AT, due=AT),
        {"state": text("queued"), "due": milliseconds(AT)},
        INDEX,
        True,
    ),
    "nudge": (
        partial(operator_writes.nudge, QUEUED, last=False, **NUDGE),
        {"nudged_at": milliseconds(AT), "nudges": number(3)},
        set(),
        False,
    ),
    "nudge of a lost run": (
        partial(operator_writes.nudge, RUNNING, last=True, **NUDGE),
        {"nudged_at": milliseconds(AT), "nudges": number(1), "state": text("retrying")},
        {"owner"},
        False,
    ),
    "nudge of a job that wake has missed": (
        partial(operator_writes.nudge, SCHEDULED, last=True, **NUDGE),
        {"nudged_at": milliseconds(AT), "nudges": number(1), "state": text("queued")},
        INDEX,
        False,
    ),
    "last nudge": (
        partial(operator_writes.nudge, QUEUED, last=True, **NUDGE),
        {
            "nudged_at": milliseconds(AT),
            "nudges": number(3),
            "state": text("dead"),
            "death": text(DeathReason.UNDELIVERABLE),
            **INDEXES.attention(State.DEAD, QUEUED.id, AT),
            **ENDED,
        },
        {"due"},
        False,
    ),
    "resend": (partial(operator_writes.resend, QUEUED, now=AT), {"nudged_at": milliseconds(AT)}, set(), False),
    "redrive": (
        partial(operator_writes.redrive, DEAD, REDRIVE),
        {
            "state": text("queued"),
            "attempt": number(0),
            "redrives": REDRIVES.encode((REDRIVE,)),
            "due": milliseconds(AT),
        },
        RESTARTED,
        True,
    ),
    "redrive into a line of its group": (
        partial(operator_writes.redrive, DEAD, REDRIVE, state=State.WAITING, sequence=7),
        {
            "state": text("waiting"),
            "attempt": number(0),
            "redrives": REDRIVES.encode((REDRIVE,)),
            "sequence": number(7),
        },
        RESTARTED,
        True,
    ),
    "redrive with another payload": (
        partial(
            operator_writes.redrive,
            with_changes(DEAD, payload='{"v":2}', steps=(A_STEP,), dropped_steps=("book", A_STEP.name)),
            EDITED,
        ),
        {
            "dropped_steps": {"L": [text("book"), text(A_STEP.name)]},
            "state": text("queued"),
            "attempt": number(0),
            "redrives": REDRIVES.encode((EDITED,)),
            "due": milliseconds(AT),
            "payload": text('{"v":2}'),
        },
        RESTARTED | PROGRESS | {"payload_at"},
        True,
    ),
    "redrive with a payload apart": (
        partial(operator_writes.redrive, with_changes(DEAD, payload=None, payload_at="item/1"), EDITED),
        {
            "state": text("queued"),
            "attempt": number(0),
            "redrives": REDRIVES.encode((EDITED,)),
            "due": milliseconds(AT),
            "payload_at": text("item/1"),
        },
        RESTARTED | PROGRESS | {"payload"},
        True,
    ),
    # Attempts count from 1 again, so this is the last chance to note a run that ended without a result.
    "redrive after a run without a result": (
        partial(operator_writes.redrive, CRASHED, REDRIVE),
        {
            "state": text("queued"),
            "attempt": number(0),
            "redrives": REDRIVES.encode((REDRIVE,)),
            "due": milliseconds(AT),
            "errors": ATTEMPT_ERRORS.encode((*CRASHED.errors, *CRASHED.lost)),
        },
        RESTARTED,
        True,
    ),
    # Its errors may have changed since, and it may have settled.
    "redrive of a job that was read while it ran": (
        partial(operator_writes.redrive, RUNNING, REDRIVE),
        {
            "state": text("queued"),
            "attempt": number(0),
            "redrives": REDRIVES.encode((REDRIVE,)),
            "due": milliseconds(AT),
        },
        RESTARTED,
        True,
    ),
    "rewrite": (
        partial(operator_writes.rewrite, QUEUED, with_changes(QUEUED, payload='{"v":2}')),
        {"payload": text('{"v":2}')},
        set(),
        False,
    ),
    "rewrite apart": (
        partial(operator_writes.rewrite, QUEUED, with_changes(QUEUED, payload=None, payload_at="item/1")),
        {"payload_at": text("item/1")},
        {"payload"},
        False,
    ),
    "rewrite back": (
        partial(operator_writes.rewrite, with_changes(QUEUED, payload=None, payload_at="item/1"), QUEUED),
        {"payload": text("{}")},
        {"payload_at"},
        False,
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_changes_exactly_what_it_is_for(name: str) -> None:
    write, sets, removes, new_generation = WRITES[name]

    assert parts(write()) == (sets, removes, [NEXT] if new_generation else [])


def conditions(request: Mapping[str, Any]) -> set[str]:
    """With the values in their places, but for the schema and the owner of the key."""
    said: str = request["ConditionExpression"]
    for name, value in sorted(request["ExpressionAttributeValues"].items(), reverse=True):
        said = re.sub(rf"{name}\b", str(next(iter(value.values()))), said) if "new_" not in name else said
    return {each for each in said.split(" AND ") if not each.startswith("#schema")}


def ms(at: Any) -> str:
    return str(milliseconds(at)["N"])


def read(job: Any, *names: str) -> set[str]:
    """The conditions by which the write insists on the job as it was read."""
    values = {"state": str(job.state), "generation": str(job.generation), "created_at": ms(job.created_at)}
    return {f"#{name} = {values[name]}" for name in ("created_at", *names)}


AS_READ: dict[str, tuple[Request, set[str]]] = {
    "cancel": (
        WRITES["cancel"][0],
        {"#state IN (dead, parked, queued, retrying, scheduled, waiting)"},
    ),
    "cancel as read": (
        partial(operator_writes.cancel, QUEUED, ASKED, now=AT, retention=RETENTION, as_read=True),
        {"#state IN (dead, parked, queued, retrying, scheduled, waiting)"} | read(QUEUED, "state", "generation"),
    ),
    "request to cancel": (WRITES["request to cancel"][0], {"#state = running"}),
    "request to cancel as read": (
        partial(operator_writes.request_cancel, RUNNING, ASKED, now=AT, as_read=True),
        read(RUNNING, "state", "generation"),
    ),
    "wake": (WRITES["wake"][0], {"#state = scheduled"} | read(SCHEDULED, "generation")),
    "park": (
        WRITES["park"][0],
        {"#state IN (queued, retrying)", f"#due = {ms(NOW)}"} | read(QUEUED, "generation"),
    ),
    "unpark": (WRITES["unpark"][0], {"#state = parked"} | read(PARKED, "generation")),
    "unpark of a paused wait without a signal": (
        partial(operator_writes.unpark, PAUSED, now=AT, due=AT),
        {"#state = parked", "attribute_not_exists(#signals)"} | read(PARKED, "generation"),
    ),
    "unpark of a paused wait without its signal": (
        WRITES["unpark of a paused wait without its signal"][0],
        {"#state = parked", "size(#signals) = 1"} | read(PARKED, "generation"),
    ),
    "unpark of a paused wait whose signal came": (
        WRITES["unpark of a paused wait whose signal came"][0],
        {"#state = parked"} | read(PARKED, "generation"),
    ),
    "nudge": (
        WRITES["nudge"][0],
        {
            f"#due <= {ms(AT - SECOND)}",
            f"(attribute_not_exists(#nudged_at) OR #nudged_at <= {ms(AT - SECOND)})",
            "#nudges = 2",
        }
        | read(QUEUED, "state", "generation"),
    ),
    "first nudge": (
        partial(operator_writes.nudge, RETRYING, last=False, **NUDGE),
        {
            f"#due <= {ms(AT - SECOND)}",
            f"(attribute_not_exists(#nudged_at) OR #nudged_at <= {ms(AT - SECOND)})",
            "attribute_not_exists(#nudges)",
        }
        | read(RETRYING, "state", "generation"),
    ),
    "resend": (
        WRITES["resend"][0],
        {"#state IN (dead, queued, retrying)", f"#nudged_at = {ms(NOW)}"} | read(QUEUED, "generation"),
    ),
    "first resend": (
        partial(operator_writes.resend, RETRYING, now=AT),
        {"#state IN (dead, queued, retrying)", "attribute_not_exists(#nudged_at)"} | read(RETRYING, "generation"),
    ),
    "redrive": (
        WRITES["redrive"][0],
        {
            "#state IN (dead)",
            f"(attribute_not_exists(#expires_at) OR #expires_at > {whole_seconds(AT)['N']})",
        }
        | read(DEAD, "generation"),
    ),
    "rewrite": (
        WRITES["rewrite"][0],
        {"#state IN (cancelled, dead, expired, parked, queued, retrying, scheduled, succeeded, waiting)"}
        | {"#payload = {}"}
        | read(QUEUED, "generation"),
    ),
    "rewrite back": (
        WRITES["rewrite back"][0],
        {"#state IN (cancelled, dead, expired, parked, queued, retrying, scheduled, succeeded, waiting)"}
        | {"#payload_at = item/1"}
        | read(QUEUED, "generation"),
    ),
    "forget": (
        partial(operator_writes.forget, DEAD),
        {"#generation = 3", f"#finished_at = {ms(NOW)}"},
    ),
}


@pytest.mark.parametrize("name", AS_READ)
def test_a_write_insists_on_the_job_that_was_read(name: str) -> None:
    write, expected = AS_READ[name]

    assert conditions(write()) == expected


@pytest.mark.parametrize("edited", [True, False])
@pytest.mark.parametrize("state", [State.DEAD, State.RUNNING])
def test_a_redrive_notes_an_earlier_request_to_cancel_which_it_removes(state: State, edited: bool) -> None:
    job = with_changes(DEAD, state=state, cancel_requested_at=NOW)

    values = operator_writes.redrive(job, replace(REDRIVE, edited=edited))["ExpressionAttributeValues"]

    assert len(values[":entries"]["L"]) == (2 if state is State.DEAD else 1)

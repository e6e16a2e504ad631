"""What the end of a run writes into its document and removes from it, and what it must not have missed."""

import re
from typing import Any

import pytest

from tests.support.builders import (
    A_SIGNAL,
    A_STEP,
    A_WAIT,
    AN_UNDO,
    LEASE,
    NOW,
    RETENTION,
    SECOND,
    SETTLEMENTS,
    a_job,
    an_error,
    with_changes,
)
from tidemill.aws.attribute_values import milliseconds, number, seconds, text
from tidemill.aws.clients import Item
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.signals import Awaited
from tidemill.domain.waiting.waiting import Cause, Wait
from tidemill.dynamodb import job_writes
from tidemill.dynamodb.attempt import settle_requests
from tidemill.dynamodb.document import AWAITED, SIGNALS, UNDO, WAIT
from tidemill.dynamodb.indexes import Indexes, in_line

INDEXES = Indexes(shards=1)
AT = NOW + 10 * SECOND
LATER = NOW + 1000 * SECOND
RUNNING = a_job(state=State.RUNNING, owner="t", attempt=1, open_runs=1, claimed_at=NOW, due=NOW + LEASE)
AWAITS = Awaited(cause=Cause.SIGNAL, name="approval", since=NOW, until=LATER)
ALONE = Settlement(
    state=State.PARKED, due=LATER, wait=Wait(cause=Cause.SIGNAL, key="approval", since=NOW), awaited=AWAITS
)
ANSWERED = Settlement(state=State.QUEUED, due=NOW, awaited=AWAITS, signals=(A_SIGNAL,))
FENCE = "#owner = :owner"
NOT_ASKED_TO_END = "attribute_not_exists(#cancel_requested_at)"
#: Written by every settle, with other tests.
ALWAYS = {"history", "last_owner", "schema", "errors"}
GONE = {"owner", "holds", "hold_cause", "other_holds", "open_runs", "wait"}
OTHERS = ((HoldCause.OUTAGE, 3), (HoldCause.VERSION, 1))
#: The attributes that a run removes which came back and goes on.
GONE_ON = GONE | {"releases"}


def parts(request: Any) -> tuple[dict[str, Item], set[str], list[str]]:
    """What the request sets, what it removes, and its conditions but for the schema."""
    values = request["ExpressionAttributeValues"]
    setting, _, removing = request["UpdateExpression"].removeprefix("SET ").partition(" REMOVE ")
    sets = {name: values[value] for name, value in re.findall(r"#(\w+) = (:new_\w+)", setting)}
    conditions = [each for each in request["ConditionExpression"].split(" AND ") if not each.startswith("#schema")]
    return (
        {name: value for name, value in sets.items() if name not in ALWAYS},
        set(removing.replace("#", "").split(", ")),
        conditions,
    )


def settled(settlement: Settlement, job: Job = RUNNING) -> tuple[dict[str, Item], set[str], list[str]]:
    return parts(settle_requests.settle(job, settlement, now=AT, retention=RETENTION, indexes=INDEXES))


ENDED = {"finished_at": milliseconds(AT), "expires_at": seconds(AT + RETENTION)}
#: The outcome, what it sets, and what it removes besides.
OUTCOMES: dict[str, tuple[Settlement, dict[str, Item], set[str]]] = {
    "success": (
        SETTLEMENTS[State.SUCCEEDED],
        {"state": text("succeeded"), "result": text('{"n":1}'), **ENDED},
        GONE | {"due"},
    ),
    "success without a result": (
        Settlement(state=State.SUCCEEDED),
        {"state": text("succeeded"), **ENDED},
        GONE | {"due"},
    ),
    "success that can be undone": (
        Settlement(state=State.SUCCEEDED, undo=AN_UNDO),
        {
            "state": text("succeeded"),
            "undo": UNDO.encode(AN_UNDO),
            **ENDED,
        },
        GONE | {"due"},
    ),
    "death": (
        Settlement(state=State.DEAD, death=DeathReason.PERMANENT, error=an_error()),
        {
            "state": text("dead"),
            "death": text(DeathReason.PERMANENT),
            **INDEXES.attention(State.DEAD, RUNNING.id, AT),
            **ENDED,
        },
        GONE | {"due"},
    ),
    "cancel": (Settlement(state=State.CANCELLED), {"state": text("cancelled"), **ENDED}, GONE | {"due"}),
    "expiry": (Settlement(state=State.EXPIRED), {"state": text("expired"), **ENDED}, GONE | {"due"}),
    "retry": (
        Settlement(state=State.RETRYING, due=LATER, error=an_error()),
        {"state": text("retrying"), "due": milliseconds(LATER)},
        GONE,
    ),
    "continuation": (
        Settlement(state=State.QUEUED, due=LATER, attempt=0, hops=3, checkpoint="{}"),
        {
            "state": text("queued"),
            "due": milliseconds(LATER),
            "attempt": number(0),
            "hops": number(3),
            "checkpoint": text("{}"),
        },
        GONE_ON,
    ),
    "far continuation": (
        Settlement(state=State.SCHEDULED, due=LATER, attempt=0),
        {
            "state": text("scheduled"),
            "due": milliseconds(LATER),
            "attempt": number(0),
            **INDEXES.attention(State.SCHEDULED, RUNNING.id, LATER),
        },
        GONE_ON,
    ),
    "hold in a line": (
        SETTLEMENTS[State.PARKED],
        {
            "state": text("parked"),
            "due": milliseconds(SETTLEMENTS[State.PARKED].due or NOW),
            "attempt": number(0),
            "holds": number(1),
            "hold_cause": text("limit"),
            "open_runs": number(0),
            "wait": WAIT.encode(A_WAIT),
            # In the order submitted.
            **in_line(A_WAIT.line, RUNNING.created_at),
        },
        {"owner", "other_holds"},
    ),
    "hold without a line": (
        replace(SETTLEMENTS[State.PARKED], state=State.QUEUED, due=LATER, wait=None),
        {
            "state": text("queued"),
            "due": milliseconds(LATER),
            "attempt": number(0),
            "holds": number(1),
            "hold_cause": text("limit"),
            "open_runs": number(0),
        },
        {"owner", "other_holds", "wait"},
    ),
    "hold after others": (
        replace(SETTLEMENTS[State.PARKED], state=State.QUEUED, due=LATER, wait=None, other_holds=OTHERS),
        {
            "state": text("queued"),
            "due": milliseconds(LATER),
            "attempt": number(0),
            "holds": number(1),
            "hold_cause": text("limit"),
            "other_holds": {"M": {"outage": number(3), "version": number(1)}},
            "open_runs": number(0),
        },
        {"owner", "wait"},
    ),
    "wait for a signal": (
        ALONE,
        {
            "state": text("parked"),
            "due": milliseconds(LATER),
            "awaited": AWAITED.encode(AWAITS),
            "wait": WAIT.encode(Wait(cause=Cause.SIGNAL, key="approval", since=NOW)),
            # With the scheduled jobs, so that wake finds it at the end of its wait.
            **INDEXES.attention(State.SCHEDULED, RUNNING.id, LATER),
        },
        GONE_ON - {"wait"},
    ),
    "wait for a signal that is there": (
        ANSWERED,
        {
            "state": text("queued"),
            "due": milliseconds(NOW),
            "awaited": AWAITED.encode(AWAITS),
            "signals": SIGNALS.encode((A_SIGNAL,)),
        },
        GONE_ON,
    ),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_outcome_writes_what_it_says_and_clears_what_is_over(name: str) -> None:
    settlement, sets, removes = OUTCOMES[name]

    assert settled(settlement)[:2] == (sets, removes)


@pytest.mark.parametrize("name", OUTCOMES)
def test_only_an_end_that_a_cancel_would_not_change_is_written_over_a_request_to_cancel(name: str) -> None:
    """A job that was asked to end must not go on, nor wait dead for a person."""
    settlement, _, _ = OUTCOMES[name]
    over = settlement.state in {State.SUCCEEDED, State.CANCELLED, State.EXPIRED}

    assert settled(settlement)[2] == ([FENCE] if over else [FENCE, NOT_ASKED_TO_END])


@pytest.mark.parametrize(
    ("settlement", "job", "condition"),
    [
        (replace(ALONE, signals_known=0), RUNNING, "attribute_not_exists(#signals)"),
        (replace(ALONE, signals_known=2), RUNNING, "size(#signals) = :signals_known"),
        (replace(ALONE, rests_on_look=True), RUNNING, "attribute_not_exists(#looks)"),
        (replace(ALONE, rests_on_look=True), with_changes(RUNNING, looks=3), "#looks = :looks_known"),
    ],
)
def test_an_outcome_is_written_only_if_nothing_came_on_which_it_rests(
    settlement: Settlement, job: Job, condition: str
) -> None:
    assert settled(settlement, job)[2] == [FENCE, NOT_ASKED_TO_END, condition]


def test_an_outcome_may_rest_on_signals_and_nodes_at_once() -> None:
    request = settle_requests.settle(
        with_changes(RUNNING, looks=3),
        replace(ALONE, signals_known=2, rests_on_look=True),
        now=AT,
        retention=RETENTION,
        indexes=INDEXES,
    )

    assert parts(request)[2][2:] == ["size(#signals) = :signals_known", "#looks = :looks_known"]
    values = request["ExpressionAttributeValues"]
    assert (values[":signals_known"], values[":looks_known"]) == (number(2), number(3))


@pytest.mark.parametrize(
    ("state", "steps", "removed"),
    [
        (State.SUCCEEDED, (A_STEP,), True),
        (State.SUCCEEDED, (), False),
        (State.RETRYING, (A_STEP,), False),
        # They are of use to a redrive.
        (State.DEAD, (A_STEP,), False),
    ],
)
def test_the_steps_of_a_job_go_with_its_success(state: State, steps: tuple[()], removed: bool) -> None:
    _, removes, _ = settled(SETTLEMENTS[state], with_changes(RUNNING, steps=steps))

    assert ("steps" in removes) is removed


@pytest.mark.parametrize(
    ("changes", "state", "kept_until"),
    [
        ({}, State.SUCCEEDED, AT + RETENTION),
        ({"retention": SECOND}, State.SUCCEEDED, AT + SECOND),
        ({"retention": SECOND, "unique_until": LATER}, State.SUCCEEDED, LATER),
        ({"unique_until": LATER}, State.SUCCEEDED, AT + RETENTION),
        # It is what the others of its group wait for.
        ({"group": "g", "blocks": True}, State.DEAD, None),
        ({"group": "g", "blocks": True}, State.SUCCEEDED, AT + RETENTION),
        ({"group": "g"}, State.DEAD, AT + RETENTION),
        ({"blocks": True}, State.DEAD, AT + RETENTION),
    ],
)
def test_a_document_is_kept_as_long_as_its_type_and_its_key_say(
    changes: dict[str, Any], state: State, kept_until: Any
) -> None:
    sets, _, _ = settled(SETTLEMENTS[state], with_changes(RUNNING, **changes))

    assert sets.get("expires_at") == (None if kept_until is None else seconds(kept_until))
    assert sets["finished_at"] == milliseconds(AT)


@pytest.mark.parametrize(
    ("state", "due", "listed"),
    [(State.SCHEDULED, LATER, True), (State.QUEUED, NOW, False), (State.WAITING, None, False)],
)
def test_a_new_job_is_listed_for_wake_if_it_is_scheduled(state: State, due: Any, listed: bool) -> None:
    job = a_job(state=state, due=due)

    item = job_writes.insert(job, indexes=INDEXES)["Item"]

    expected = INDEXES.attention(State.SCHEDULED, job.id, LATER) if listed else {}
    assert {name: value for name, value in item.items() if name.startswith("attention")} == expected

"""The SDK sends a write again after its own success, and the document refuses it: which documents count as success.

And what a write asks for if its caller says nothing more.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import (
    A_BURST,
    A_SIGNAL,
    A_STEP,
    A_WAIT,
    LEASE,
    NOW,
    RETENTION,
    SECOND,
    SETTLEMENTS,
    a_job,
    an_undo_of,
    reference_to,
    with_changes,
)
from tidemill.application.ports import Checkpoint
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import Job, Redrive
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.document import encode
from tidemill.dynamodb.history_entries import transitions
from tidemill.dynamodb.job_store import DynamoJobStore

LATER = NOW + timedelta(hours=1)
QUEUED = a_job()
SCHEDULED = a_job(state=State.SCHEDULED, due=LATER, run_at=LATER, burst=A_BURST)
RUNNING = a_job(state=State.RUNNING, owner="t", attempt=1, open_runs=1, claimed_at=NOW, due=NOW + LEASE)
RELEASED = with_changes(RUNNING, state=State.RETRYING, owner=None, last_owner="t", releases=1)
PARKED = a_job(state=State.PARKED, wait=A_WAIT, due=LATER)
DONE = a_job(state=State.SUCCEEDED, due=None, finished_at=NOW)
DEAD = a_job(state=State.DEAD, due=None, finished_at=NOW)
UNDO, UNDONE = an_undo_of(DONE)
NEXT = a_job(created_at=LATER)
APART = with_changes(QUEUED, payload=None, payload_at="item/1")
EDITED = with_changes(QUEUED, payload='{"v":2}')
JOINED = replace(SCHEDULED, burst=replace(A_BURST, last="mine"))
REDRIVE = Redrive(token="mine", at=NOW, by="ada")
A_RUN: dict[str, Any] = {"state": State.RUNNING, "owner": "u", "generation": 2, "attempt": 2, "due": LATER}
A_LATER_JOB: dict[str, Any] = {"created_at": NOW + SECOND}


class Refuses:
    """This document refuses each write, or the first entry of a transaction. None: the job has no document."""

    def __init__(self, current: Job | None) -> None:
        self._item = {} if current is None else {"Item": encode(current)}

    def _refuse(self, **_request: Any) -> None:
        raise ClientError({"Error": {"Code": "ConditionalCheckFailedException", "Message": ""}, **self._item}, "Write")  # type: ignore[typeddict-item]

    put_item = update_item = delete_item = _refuse

    def transact_write_items(self, **request: Any) -> None:
        others = [{"Code": "None"} for _ in request["TransactItems"][1:]]
        reasons = [{"Code": "ConditionalCheckFailed", **self._item}, *others]
        error: Any = {
            "Error": {"Code": "TransactionCanceledException", "Message": ""},
            "CancellationReasons": reasons,
        }
        raise ClientError(error, "TransactWriteItems")

    def get_item(self, **_request: Any) -> Mapping[str, Any]:
        return self._item


def store_over(client: Any) -> DynamoJobStore:
    return DynamoJobStore(client, table="jobs", retention=RETENTION)


Call = Callable[[DynamoJobStore], object]

#: The write, and the documents that it may leave behind.
SUCCESSES: dict[str, tuple[Call, list[Job]]] = {
    "insert": (lambda store: store.insert_if_absent(QUEUED), [QUEUED, with_changes(QUEUED, **A_RUN)]),
    "claim": (
        lambda store: store.claim(reference_to(QUEUED), token="t", now=NOW, lease_end=NOW + LEASE),
        [with_changes(QUEUED, state=State.RUNNING, owner="t", due=NOW + LEASE)],
    ),
    "settle": (
        lambda store: store.settle(RUNNING, SETTLEMENTS[State.RETRYING], now=NOW),
        [
            with_changes(RUNNING, state=State.RETRYING, last_owner="t"),
            with_changes(RUNNING, last_owner="t", **A_RUN),
            with_changes(QUEUED, state=State.CANCELLED, last_owner="t"),
        ],
    ),
    "settle of a success": (
        lambda store: store.settle(RUNNING, SETTLEMENTS[State.SUCCEEDED], now=NOW),
        [with_changes(DONE, last_owner="t")],
    ),
    "settle of a death": (
        lambda store: store.settle(RUNNING, SETTLEMENTS[State.DEAD], now=NOW),
        [with_changes(DEAD, last_owner="t")],
    ),
    "release": (
        lambda store: store.release(RUNNING, now=NOW, due=NOW),
        [RELEASED, with_changes(RUNNING, last_owner="t", releases=1, **A_RUN)],
    ),
    "unclaim": (
        lambda store: store.unclaim(reference_to(QUEUED), token="t", now=NOW),
        [with_changes(QUEUED, state=State.RETRYING, last_owner="t"), with_changes(QUEUED, last_owner="t", **A_RUN)],
    ),
    "checkpoint": (
        lambda store: store.checkpoint(RUNNING, Checkpoint(done=1), now=NOW),
        [with_changes(RUNNING, checkpoint_at=at) for at in (NOW, LATER)],
    ),
    "first step": (lambda store: store.record_step(RUNNING, A_STEP), [with_changes(RUNNING, steps=(A_STEP,))]),
    "second step": (
        lambda store: store.record_step(with_changes(RUNNING, steps=(A_STEP,)), A_STEP),
        [with_changes(RUNNING, steps=(A_STEP, A_STEP))],
    ),
    "cancel": (
        lambda store: store.cancel(QUEUED, now=NOW),
        # Any job may have the key: nothing of it is left to do.
        [with_changes(QUEUED, state=State.CANCELLED, due=None, **more) for more in ({}, A_LATER_JOB)],
    ),
    "cancel as read": (
        lambda store: store.cancel(QUEUED, now=NOW, as_read=True),
        [replace(QUEUED, state=State.CANCELLED, due=None)],
    ),
    "signal": (
        lambda store: store.signal(RUNNING, A_SIGNAL, wakes=False),
        [with_changes(RUNNING, signals=(A_SIGNAL,))],
    ),
    "redrive": (
        lambda store: store.redrive(DEAD, token="mine", now=NOW, by="ada"),
        [
            replace(DEAD, state=State.QUEUED, due=NOW, generation=2, redrives=(REDRIVE,)),
            replace(DEAD, generation=3, redrives=(REDRIVE, replace(REDRIVE, token="another"))),
        ],
    ),
    "undo": (lambda store: store.undo(DONE, UNDO, UNDONE), [with_changes(DONE, undone=UNDONE)]),
    "supersede": (lambda store: store.supersede(DONE, NEXT), [with_changes(DONE, superseded_by=NEXT.id)]),
    "join": (
        lambda store: store.join_debounce(SCHEDULED, JOINED, by="mine", now=NOW, replaces=False),
        [JOINED, with_changes(JOINED, **A_RUN)],
    ),
    "rewrite": (lambda store: store.rewrite(QUEUED, EDITED), [EDITED]),
    # Its location is unique, so a document that names it is of this call.
    "rewrite apart": (lambda store: store.rewrite(QUEUED, APART), [APART, with_changes(APART, **A_RUN)]),
}
#: The same writes, and documents that others have left.
REFUSALS: dict[str, tuple[Call, list[Job | None]]] = {
    "insert": (
        SUCCESSES["insert"][0],
        [with_changes(QUEUED, **change) for change in ({"trace": "b"}, A_LATER_JOB, {"body_hash": "1" * 64})],
    ),
    "claim": (
        SUCCESSES["claim"][0],
        [
            None,
            with_changes(QUEUED, **A_RUN | {"generation": 1}),
            replace(QUEUED, generation=2),
            replace(QUEUED, due=None),
        ],
    ),
    **{
        name: (
            SUCCESSES[name][0],
            [
                None,
                with_changes(RUNNING, **A_RUN),
                with_changes(RUNNING, last_owner="u", **A_RUN),
                with_changes(RUNNING, owner="u"),
            ],
        )
        for name in ("settle", "release", "unclaim")
    },
    # An earlier settle of the same run, whose answers were lost, has written this end.
    **{
        f"{name} after another end": (
            SUCCESSES[name][0],
            [with_changes(DONE, last_owner="t"), with_changes(DEAD, last_owner="t")],
        )
        for name in ("settle", "release")
    },
    "settle after a release": (
        SUCCESSES["settle"][0],
        [RELEASED, with_changes(RUNNING, last_owner="t", releases=1, **A_RUN)],
    ),
    "release after a settle": (
        SUCCESSES["release"][0],
        [with_changes(RELEASED, releases=0), with_changes(RUNNING, last_owner="t", **A_RUN)],
    ),
    "checkpoint": (
        SUCCESSES["checkpoint"][0],
        [None, with_changes(RUNNING, **A_RUN), with_changes(RUNNING, last_owner="t", **A_RUN)],
    ),
    "first step": (
        SUCCESSES["first step"][0],
        # A run after it has read the step. It goes on from there, and this one must not.
        [None, RUNNING, with_changes(RUNNING, steps=(A_STEP,), **A_RUN), with_changes(RUNNING, steps=(A_STEP, A_STEP))],
    ),
    "second step": (SUCCESSES["second step"][0], [with_changes(RUNNING, steps=(A_STEP,))]),
    "cancel": (SUCCESSES["cancel"][0], [None, DONE, DEAD]),
    "cancel as read": (
        SUCCESSES["cancel as read"][0],
        [None, with_changes(QUEUED, state=State.CANCELLED, due=None, **A_LATER_JOB), with_changes(QUEUED, **A_RUN)],
    ),
    "cancel of a run as read": (
        lambda store: store.cancel(RUNNING, now=NOW, as_read=True),
        [
            None,
            with_changes(RUNNING, **A_RUN),
            replace(RUNNING, state=State.CANCELLED),
            with_changes(RUNNING, **A_LATER_JOB),
        ],
    ),
    "signal": (SUCCESSES["signal"][0], [None, RUNNING, with_changes(RUNNING, signals=(replace(A_SIGNAL, name="b"),))]),
    "signal that wakes": (lambda store: store.signal(PARKED, A_SIGNAL, wakes=True), [None, PARKED]),
    "redrive": (
        SUCCESSES["redrive"][0],
        [None, DONE, replace(DEAD, generation=2, redrives=(replace(REDRIVE, token="another"),))],
    ),
    "undo": (
        SUCCESSES["undo"][0],
        [
            None,
            DONE,
            with_changes(DONE, undone=UNDONE, **A_LATER_JOB),
            with_changes(DONE, undone=replace(UNDONE, at=LATER)),
        ],
    ),
    "supersede": (
        SUCCESSES["supersede"][0],
        [None, DONE, with_changes(DONE, superseded_by="b"), with_changes(DONE, superseded_by=NEXT.id, **A_LATER_JOB)],
    ),
    "join": (SUCCESSES["join"][0], [None, SCHEDULED, replace(SCHEDULED, burst=replace(A_BURST, last="another"))]),
    "rewrite": (
        SUCCESSES["rewrite"][0],
        [None, QUEUED, APART, replace(EDITED, generation=2), with_changes(EDITED, **A_LATER_JOB)],
    ),
    "rewrite apart": (
        SUCCESSES["rewrite apart"][0],
        [None, QUEUED, with_changes(APART, payload_at="item/2"), with_changes(APART, **A_LATER_JOB)],
    ),
    "forget": (
        lambda store: store.forget(DONE),
        [DONE, replace(DONE, generation=2), with_changes(DONE, **A_LATER_JOB)],
    ),
}


@pytest.mark.parametrize(
    ("call", "current"), [(call, document) for call, documents in SUCCESSES.values() for document in documents]
)
def test_a_document_that_the_write_has_left_is_its_success(call: Call, current: Job) -> None:
    call(store_over(Refuses(current)))


@pytest.mark.parametrize(
    ("call", "current"), [(call, document) for call, documents in REFUSALS.values() for document in documents]
)
def test_a_document_that_others_have_left_is_a_refusal_that_names_it(call: Call, current: Job | None) -> None:
    with pytest.raises(WriteRefusedError) as refused:
        call(store_over(Refuses(current)))

    assert refused.value.current == current


def test_a_job_that_is_gone_is_forgotten() -> None:
    store_over(Refuses(None)).forget(DONE)


class Grants:
    """Grants each call, and notes it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def granted(**request: Any) -> dict[str, Any]:
            self.calls.append((name, request))
            return {"Attributes": encode(RUNNING)} if request.get("ReturnValues") == "ALL_NEW" else {}

        return granted

    @property
    def request(self) -> Any:
        """Return the request of the only call, an update of one item: a transaction would cost twice as much."""
        ((name, request),) = self.calls
        assert name == "update_item"
        return request


def recorded(request: Any) -> list[str]:
    values = request["ExpressionAttributeValues"]
    return [str(each.cause) for each in transitions(values.get(":entries") or values[":new_history"])]


def test_a_release_is_one_of_a_conflict_which_counts() -> None:
    client = Grants()

    store_over(client).release(RUNNING, now=NOW, due=LATER)

    assert recorded(client.request) == [Why.CONFLICT]
    assert client.request["ExpressionAttributeValues"][":new_releases"] == {"N": "1"}


def test_a_nudge_is_not_the_last_one() -> None:
    client = Grants()

    store_over(client).nudge(with_changes(QUEUED, nudges=2), now=LATER, limit=SECOND)

    assert recorded(client.request) == [Why.NUDGED]


def test_a_redrive_keeps_the_payload_and_the_steps_of_the_job() -> None:
    client = Grants()

    store_over(client).redrive(with_changes(DEAD, payload="{}", steps=(A_STEP,)), token="t", now=NOW, by="ada")

    assert recorded(client.request) == [Why.REDRIVEN]
    assert {"#payload", "#steps"}.isdisjoint(client.request["ExpressionAttributeNames"])


def test_a_cancel_is_of_the_job_as_it_is_by_then() -> None:
    client = Grants()

    store_over(client).cancel(replace(QUEUED, generation=7), now=NOW)

    assert {"#generation", "#created_at"}.isdisjoint(client.request["ExpressionAttributeNames"])
    assert client.request["ExpressionAttributeValues"][":new_cancel"]["M"].keys() >= {"by"}


def test_a_run_that_began_before_a_cancel_is_asked_to_end_whichever_it_is() -> None:
    """Two calls: the job is at rest as it was read, and the document that refuses the first says otherwise."""
    grants, began = Grants(), with_changes(QUEUED, **A_RUN)

    class RefusesFirst:
        def update_item(self, **request: Any) -> Any:
            return grants.update_item(**request) if asked else self._first(**request)

        def _first(self, **request: Any) -> Any:
            asked.append(request)
            return Refuses(began)._refuse(**request)

    asked: list[Any] = []
    store_over(RefusesFirst()).cancel(QUEUED, now=NOW, by="ada", reason="a typo")

    assert "cancel_requested_at" in grants.request["ExpressionAttributeNames"].values()
    assert {"#generation", "#created_at"}.isdisjoint(grants.request["ExpressionAttributeNames"])
    assert CancelRequest(by="ada", reason="a typo").by in str(
        grants.request["ExpressionAttributeValues"][":new_cancel"]
    )


def test_a_job_alone_is_inserted_with_one_put_and_one_of_a_group_is_redriven_in_a_transaction() -> None:
    alone, together = Grants(), Grants()

    store_over(alone).insert_if_absent(QUEUED)
    with pytest.raises(WriteRefusedError):
        # The table is empty, so the job is gone by the end.
        store_over(together).redrive(with_changes(DEAD, group="g"), token="t", now=NOW, by="ada")

    assert [name for name, _ in alone.calls] == ["put_item"]
    assert "transact_write_items" in [name for name, _ in together.calls]


def test_a_claim_that_only_a_long_history_refuses_replaces_it_by_the_last_entries() -> None:
    """Not so a claim that would be refused in any case."""
    grants = Grants()
    entries = tuple(Transition(at=NOW, state=State.QUEUED, cause=Why.NUDGED) for _ in range(100))

    class RefusesFirst:
        def update_item(self, **request: Any) -> Any:
            asked.append(request)
            return grants.update_item(**request) if len(asked) > 1 else Refuses(full).put_item(**request)

    asked: list[Any] = []
    full = replace(QUEUED, history=entries)
    store_over(RefusesFirst()).claim(reference_to(QUEUED), token="t", now=NOW, lease_end=NOW + LEASE)

    assert len(recorded(grants.request)) == 13
    assert recorded(grants.request)[-1] == Why.CLAIMED

"""A job as its readers see it: every member, from the document and nothing else."""

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.builders import A_BURST, A_STEP, A_WAIT, AN_UNDO, NOW, SECOND, a_job, an_error, with_changes
from tidemill.application.job_view import batch_view, operator_view, payload_of, record, summary, view
from tidemill.domain.corrections.undo import Undone
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.flows.flow_place import FlowPlace
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import DeathReason, Job, Redrive
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Signal
from tidemill.in_memory.single_job import Inline

FULL = a_job(
    id="j",
    state=State.DEAD,
    attempt=3,
    death=DeathReason.EXHAUSTED,
    progress_done=1,
    progress_total=2,
    checkpoint_at=NOW + SECOND,
    cancel_requested_at=NOW + 2 * SECOND,
    group="g",
    sequence=4,
    run_at=NOW + 3 * SECOND,
    deadline=NOW + 4 * SECOND,
    useful_until=NOW + 4 * SECOND,
    due=NOW + 5 * SECOND,
    wait=A_WAIT,
    claimed_at=NOW + 6 * SECOND,
    finished_at=NOW + 7 * SECOND,
    expires_at=NOW + timedelta(days=1),
    result='{"n":1}',
    checkpoint="[2]",
    errors=(an_error(next_due=NOW + 8 * SECOND),),
    redrives=(Redrive(token="t", at=NOW, by="ada", death=DeathReason.HOPS),),
    hops=5,
    parent="p",
    batch="b",
    burst=replace(A_BURST, moves=2, first_moved_at=NOW + SECOND, replacements=1, first_replaced_at=NOW),
    flow=FlowPlace(id="f", node="n"),
    undoes="u",
    supersedes="e",
    superseded_by="l",
    undo=AN_UNDO,
    steps=(A_STEP,),
    undone=Undone(job_id="v", at=NOW + 9 * SECOND, by="ada", reason="a typo"),
)
SUMMARY = {
    "id": "j",
    "type": "test.job",
    "lane": "default",
    "state": "dead",
    "attempt": 3,
    "death": "attempts used up",
    "progress": {"done": 1, "total": 2, "at": "2045-03-04T05:06:08.891Z"},
    "cancel_requested_at": "2045-03-04T05:06:09.891Z",
    "group": "g",
    "sequence": 4,
    "run_at": "2045-03-04T05:06:10.891Z",
    "deadline": "2045-03-04T05:06:11.891Z",
    "useful_until": "2045-03-04T05:06:11.891Z",
    "created_at": "2045-03-04T05:06:07.891Z",
    "due": "2045-03-04T05:06:12.891Z",
    "wait": {"cause": "limit", "key": "test.job#a", "since": "2045-03-04T05:06:07.891Z"},
    "claimed_at": "2045-03-04T05:06:13.891Z",
    "finished_at": "2045-03-04T05:06:14.891Z",
    "expires_at": "2045-03-05T05:06:07.891Z",
    "tags": [],
    "batch": "b",
    "debounce": {
        "key": "ada",
        "until": "2045-03-04T07:06:07.891Z",
        "moves": 2,
        "first_moved_at": "2045-03-04T05:06:08.891Z",
        "replacements": 1,
        "first_replaced_at": "2045-03-04T05:06:07.891Z",
    },
    "flow": "f",
    "node": "n",
    "undone_by": "v",
}
ERROR = {
    "attempt": 1,
    "at": "2045-03-04T05:06:07.891Z",
    "class": "ValueError",
    "message": "no such thing",
    "retryable": True,
    "next_due": "2045-03-04T05:06:15.891Z",
}


def test_a_listing_shows_every_small_member() -> None:
    assert summary(FULL) == SUMMARY


def test_a_job_shows_every_member() -> None:
    assert view(FULL, payload='{"a":1}') == SUMMARY | {
        "payload": {"a": 1},
        "result": {"n": 1},
        "errors": [ERROR],
        "redrives": [{"at": "2045-03-04T05:06:07.891Z", "by": "operator", "death": "too many hops"}],
        "checkpoint": [2],
        "steps": [{"name": "charge", "at": "2045-03-04T05:06:07.891Z", "attempt": 1}],
        "signals": [],
        "hops": 5,
        "parent": "p",
        "undo": {"type": "test.undo", "lane": "default", "payload": {"n": 1}, "tags": ["a"]},
        "undone_at": "2045-03-04T05:06:16.891Z",
        "undoes": "u",
        "supersedes": "e",
        "superseded_by": "l",
        "cancelled_by": None,
        "history": [
            {"at": "2045-03-04T05:06:07.891Z", "what": "accepted", "cause": "accepted", "attempt": None},
            {
                "at": "2045-03-04T05:06:07.891Z",
                "what": "payload replaced",
                "cause": "payload replaced",
                "attempt": None,
            },
            {"at": "2045-03-04T05:06:08.891Z", "what": "moved", "cause": "moved", "attempt": None},
            {"at": "2045-03-04T05:06:09.891Z", "what": "running", "cause": "cancel requested", "attempt": None},
            {"at": "2045-03-04T05:06:16.891Z", "what": "dead", "cause": "undone", "attempt": None},
        ],
    }


def test_a_record_has_nothing_that_callers_and_handlers_wrote() -> None:
    job = with_changes(FULL, signals=(Signal(name="paid", at=NOW, data="7"),))
    shown = operator_view(job, payload=None)
    undo = {"type": "test.undo", "lane": "default", "tags": ["a"]}

    assert {"payload", "result", "checkpoint", "signals"} == shown.keys() - record(job).keys()
    assert record(job) == {name: shown[name] for name in record(job)} | {"undo": undo}
    assert record(a_job())["undo"] is None


@pytest.mark.parametrize(("by", "shown"), [("owner", "owner"), ("ada", "operator"), (None, None)])
def test_the_owner_sees_whether_an_operator_cancelled_a_job(by: str | None, shown: str | None) -> None:
    job = with_changes(FULL, cancel=CancelRequest(by=by) if by else None)
    assert view(job, payload=None)["cancelled_by"] == shown


def test_a_job_shows_its_signals() -> None:
    job = a_job(signals=(Signal(name="paid", at=NOW, data='{"n":7}'),))
    assert view(job, payload=None)["signals"] == [{"name": "paid", "at": "2045-03-04T05:06:07.891Z", "data": {"n": 7}}]


COUNTED = {"counts": {"dead": 1, "succeeded": 2}, "counted_at": "then", "sealed_at": "sealed"}
LOOK: Any = SimpleNamespace(counts={"succeeded": 3}, at=NOW + SECOND)
CLOSE, CANCEL = Signal(name="closed", at=NOW, data="{}"), Signal(name="cancelled", at=NOW + SECOND, data="{}")


@pytest.mark.parametrize(
    ("checkpoint", "look", "signals", "expected"),
    [
        (None, None, (), {"jobs": 0, "counts": {}, "counted_at": None, "closed_at": None, "cancel_requested_at": None}),
        (COUNTED, None, (), {"jobs": 3, "counts": COUNTED["counts"], "counted_at": "then", "closed_at": "sealed"}),
        (
            COUNTED,
            LOOK,
            (CLOSE, CANCEL),
            {
                "jobs": 3,
                "counts": {"succeeded": 3},
                "counted_at": "2045-03-04T05:06:08.891Z",
                "closed_at": "2045-03-04T05:06:07.891Z",
                "cancel_requested_at": "2045-03-04T05:06:08.891Z",
            },
        ),
        (None, LOOK, (CLOSE,), {"counts": {"succeeded": 3}, "closed_at": "2045-03-04T05:06:07.891Z"}),
    ],
    ids=["before its first run", "of its last run", "of a look", "a look before its first run"],
)
def test_a_batch_shows_the_counts_of_the_look_or_of_its_last_run(
    checkpoint: dict[str, Any] | None, look: Any, signals: tuple[Signal, ...], expected: dict[str, Any]
) -> None:
    job = a_job(
        id="b",
        state=State.RUNNING,
        checkpoint=json.dumps(checkpoint) if checkpoint else None,
        signals=signals,
        finished_at=NOW + 2 * SECOND,
        expires_at=NOW + 3 * SECOND,
        batch="outer",
        tags=("t",),
    )
    shown = batch_view(job, look)

    assert {name: shown[name] for name in expected} == expected
    rest = {
        "id": "b",
        "state": "running",
        "created_at": "2045-03-04T05:06:07.891Z",
        "finished_at": "2045-03-04T05:06:09.891Z",
        "expires_at": "2045-03-04T05:06:10.891Z",
        "batch": "outer",
        "tags": ["t"],
    }
    assert {name: shown[name] for name in rest} == rest
    assert shown.keys() == rest.keys() | {"jobs", "counts", "counted_at", "closed_at", "cancel_requested_at"}


def test_an_operator_sees_who_did_what_and_why() -> None:
    job = with_changes(
        FULL,
        errors=(an_error(traceback="a line"), an_error(attempt=2)),
        redrives=(*FULL.redrives, Redrive(token="u", at=NOW, by="bob", death=DeathReason.HOPS, reason="repaired")),
        cancel=CancelRequest(by="cleo", reason="too late"),
        history=(Transition(at=NOW, state=State.RUNNING, cause=Why.CLAIMED, worker="w"),),
        payload_at="item/a",
    )

    shown = operator_view(job, payload=None)

    assert [error["traceback"] for error in shown["errors"]] == ["a line", None]
    assert [(each["by"], each["reason"]) for each in shown["redrives"]] == [("ada", None), ("bob", "repaired")]
    workers = [each["worker"] for each in shown["history"]]
    assert [(each["what"], each["worker"]) for each in shown["history"] if each["worker"]] == [("running", "w")]
    assert set(workers) == {"w", None}
    more = {
        "cancelled_by": "cleo",
        "cancel_reason": "too late",
        "undo_requested_by": "ada",
        "undo_reason": "a typo",
        "tenant": job.tenant,
        "generation": 1,
        "payload_at": "item/a",
        "trace": "trace",
    }
    known = view(job, payload=None)
    assert {name: value for name, value in shown.items() if known.get(name) != value and name in more} == more
    assert shown.keys() == known.keys() | more.keys()


def test_a_reason_that_is_not_given_is_null() -> None:
    undone = Undone(job_id="v", at=NOW, by="ada", reason="")
    job = with_changes(FULL, cancel=CancelRequest(by="cleo", reason=""), undone=undone)

    for each, by in ((job, "cleo"), (a_job(), None)):
        shown = operator_view(each, payload=None)
        assert (shown["cancelled_by"], shown["cancel_reason"], shown["undo_reason"]) == (by, None, None)


def test_what_a_job_does_not_have_is_null() -> None:
    shown = view(a_job(due=None), payload=None)

    absent = ("payload", "result", "checkpoint", "parent", "wait", "due", "death", "finished_at", "expires_at")
    assert [shown[name] for name in absent] == [None] * len(absent)
    assert shown["progress"] == {"done": None, "total": None, "at": None}


def test_a_payload_that_is_gone_is_null() -> None:
    class Gone(Inline):
        def load(self, job: Job) -> str:
            raise MalformedDocumentError(f"the payload of job {job.id} is missing")

    assert payload_of(a_job(payload="{}"), Inline()) == "{}"
    assert payload_of(a_job(), Gone()) is None

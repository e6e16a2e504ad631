"""Batches that are cancelled as a whole, and batches that died before their close."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from tests.integration.test_batches import (
    CALLBACKS,
    JSON,
    an_open_batch,
    called,
    closed,
    fail_if_asked,
    opened,
    redriven,
    seen,
)
from tests.support.builders import reference_to, with_changes
from tests.support.deployed_functions import TENANT, Mill, forget
from tests.support.http_events import Answer, call
from tidemill import GiveUp, composition
from tidemill.application.batches import batch_members
from tidemill.application.batches.batch_members import BatchMembers
from tidemill.application.explain.explain import explain
from tidemill.application.explain.explanation import Facts
from tidemill.application.submission.job_ids import keyed_job_id
from tidemill.batch import job
from tidemill.domain.batches import batches, composite_cancels
from tidemill.domain.batches.batches import Look
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.batches import batch_pages
from tidemill.dynamodb.batches.batch_pages import DynamoBatchPages
from tidemill.dynamodb.groups import groups
from tidemill.entrypoints import control
from tidemill.names import BATCH_PACKAGE, Env


@pytest.fixture(autouse=True)
def _batch_type(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{BATCH_PACKAGE}")
    monkeypatch.setattr(batches, "_LONGEST_PAUSE", timedelta(0))
    monkeypatch.setattr(batches, "_PAUSE_OF_JOB", timedelta(0))
    monkeypatch.setattr(composite_cancels, "_LONGEST_PAUSE", timedelta(0))
    monkeypatch.setattr(composite_cancels, "_PAUSE_OF_JOB", timedelta(0))
    forget()


_numbers = count()


def key_on(page: int) -> str:
    """A new idempotency key, of a job on this page of its batch."""
    return next(key for key in map(str, _numbers) if batch_pages.page_number(keyed_job_id(TENANT, key)) == page)


def cancelled(batch_id: str) -> Answer:
    return call(control, "POST", f"/batches/{batch_id}/cancel")


def test_a_batch_waits_for_a_member_that_is_submitted_again_after_its_document_has_expired(mill: Mill) -> None:
    batch = an_open_batch()
    member = mill.accepted(batch=batch, key="7")
    mill.run()
    members = composition.parts().batch_members
    members.record(mill.job(batch), members.look(mill.job(batch)), last=False)
    mill.table.put(with_changes(mill.job(member), expires_at=mill.now() - timedelta(seconds=2)))
    late = members.look(mill.job(batch))

    assert mill.post(batch=batch, key="7").status == 202
    members.record(mill.job(batch), late, last=False)
    assert seen(batch).body["counts"] == {"queued": 1}
    closed(batch)
    mill.run()
    assert (mill.job(member).state, seen(batch).body["counts"]) == (State.SUCCEEDED, {"succeeded": 1})


@pytest.mark.parametrize("closed_before", [False, True])
def test_a_cancel_of_the_whole_cancels_the_jobs_that_have_not_ended(mill: Mill, *, closed_before: bool) -> None:
    mill.script.handler = fail_if_asked
    batch = an_open_batch()
    done, dead = mill.accepted(batch=batch), mill.accepted({"fails": True}, batch=batch)
    mill.run()
    later = mill.accepted(batch=batch, delay_seconds=3600)
    if closed_before:
        closed(batch)

    for _ in range(2):
        assert cancelled(batch).body["cancel_requested_at"]
    mill.run()

    assert mill.post(batch=batch).status == 409
    states = [mill.job(job_id).state for job_id in (done, dead, later, batch)]
    assert states == [State.SUCCEEDED, State.CANCELLED, State.CANCELLED, State.CANCELLED]
    assert called(mill, batch) == []
    assert seen(batch).body["counts"] == {"cancelled": 2, "succeeded": 1}
    cancel = mill.job(later).cancel.request
    assert cancel
    assert batch in cancel.reason


def test_a_cancel_reaches_the_jobs_of_inner_batches(mill: Mill) -> None:
    outer = an_open_batch()
    inner = str(opened({**CALLBACKS, "batch": outer}).body["id"])
    job = mill.accepted(batch=inner, delay_seconds=3600)
    mill.run()

    cancelled(outer)
    mill.run()

    assert {mill.job(job_id).state for job_id in (outer, inner, job)} == {State.CANCELLED}
    assert called(mill, inner) == called(mill, outer) == []


def test_a_cancel_reaches_the_dead_jobs_of_a_dead_inner_batch(mill: Mill) -> None:
    mill.script.handler = fail_if_asked
    outer = an_open_batch()
    inner = str(opened({**CALLBACKS, "batch": outer}).body["id"])
    dead = mill.accepted({"fails": True}, batch=inner)
    closed(inner)
    mill.run()
    assert {mill.job(job_id).state for job_id in (inner, dead)} == {State.DEAD}

    cancelled(outer)
    mill.run()

    assert {mill.job(job_id).state for job_id in (outer, inner, dead)} == {State.CANCELLED}
    assert called(mill, inner) == ["complete", "failure"]


def test_a_cancel_reaches_each_inner_batch_although_each_run_has_time_for_one(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_RESERVE", timedelta(days=1))
    monkeypatch.setattr(composite_cancels, "_SHORTEST_PAUSE", timedelta(hours=1))
    monkeypatch.setattr(composite_cancels, "_LONGEST_PAUSE", timedelta(hours=1))
    outer = an_open_batch()
    inners = [str(opened({**CALLBACKS, "batch": outer}).body["id"]) for _ in range(3)]
    for inner in inners:
        # It runs on for days.
        member = mill.job(mill.accepted(batch=inner))
        composition.parts().store.claim(
            reference_to(member), token=inner, now=mill.now(), lease_end=mill.now() + timedelta(days=2)
        )
    mill.run()

    cancelled(outer)
    for _ in inners:
        mill.run()
        mill.late += timedelta(hours=1)
        mill.wake()

    assert all(composite_cancels.is_cancelled(mill.job(inner)) for inner in inners)


def test_a_cancel_ends_a_job_that_died_after_it_was_asked_to_end(mill: Mill) -> None:
    mill.script.handler = fail_if_asked
    batch = an_open_batch()
    dead = mill.accepted({"fails": True}, batch=batch)
    mill.run()
    # The run of the job did not see this request.
    mill.table.client.update_item(
        TableName=mill.table.name,
        Key={"pk": {"S": f"{TENANT}#{dead}"}},
        UpdateExpression="SET cancel_requested_at = finished_at",
    )

    cancelled(batch)
    mill.run()

    assert [mill.job(job_id).state for job_id in (dead, batch)] == [State.CANCELLED, State.CANCELLED]


def test_a_batch_that_has_ended_cannot_be_cancelled(mill: Mill) -> None:
    batch = an_open_batch()
    closed(batch)
    mill.run()
    assert cancelled(batch).status == 409
    assert cancelled("no-batch").status == 404


def test_the_explanation_of_a_batch_has_its_counts(mill: Mill) -> None:
    batch = an_open_batch()
    mill.accepted(batch=batch)
    closed(batch)
    mill.run()
    assert "Its jobs: 1 succeeded." in str(explain(Facts(job=mill.job(batch), now=mill.now())))


def test_the_explanation_of_a_live_batch_says_what_it_waits_for(mill: Mill) -> None:
    batch = an_open_batch()
    mill.accepted(batch=batch, delay_seconds=3_600)
    mill.run()

    def explained() -> str:
        return str(explain(Facts(job=mill.job(batch), now=mill.now())))

    close = f"its owner closes it with `tidemill batch {batch} --close`"
    assert f"The batch is open for further jobs; {close}." in explained()
    listing = f"`tidemill list --batch {batch} --tenant {mill.job(batch).tenant}`"
    assert f"Its jobs at its last look: 1 scheduled. {listing} lists them." in explained()
    closed(batch)
    assert "The batch was closed " in explained()


def test_a_batch_that_died_before_its_close_can_be_closed_and_goes_on_after_its_redrive(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = an_open_batch()
    member = mill.accepted(batch=batch)
    # The workers of the batch crash: its first run uses up its attempts.
    with monkeypatch.context() as crashing:
        crashing.setattr(job, "WaitFor", lambda *_, **__: GiveUp("a crash"))
        mill.run()
    assert (mill.job(batch).state, mill.job(member).state) == (State.DEAD, State.SUCCEEDED)

    first = closed(batch)
    assert first.body["closed_at"]
    again = closed(batch)
    assert (again.status, again.body) == (200, first.body)
    assert (mill.job(batch).state, mill.post(batch=batch).status) == (State.DEAD, 409)
    mill.run()
    assert called(mill, batch) == []

    assert redriven(batch).status == 200
    mill.run()
    assert (mill.job(batch).state, called(mill, batch)) == (State.SUCCEEDED, ["complete", "success"])


def test_a_batch_ends_although_no_look_has_time_for_all_its_jobs(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    read = DynamoBatchPages.get_many

    def at_most_two(self: DynamoBatchPages, keys: Sequence[tuple[str, str]], **options: Any) -> list[Job]:
        # A page is read whole.
        assert len(keys) <= 2 or len({batch_pages.page_number(job_id) for _, job_id in keys}) == 1
        return read(self, keys, **options)

    monkeypatch.setattr(DynamoBatchPages, "get_many", at_most_two)
    monkeypatch.setattr(batch_members, "_READ_TOGETHER", 2)
    monkeypatch.setattr(job, "_SHARE_OF_LOOK", 0)
    batch = an_open_batch()
    for page in (4, 9, 9, 9, 20):
        mill.accepted(batch=batch, key=key_on(page))
    closed(batch)
    mill.run()
    assert (mill.job(batch).state, called(mill, batch)) == (State.SUCCEEDED, ["complete", "success"])
    assert seen(batch).body["counts"] == {"succeeded": 5}


def test_a_signal_to_another_dead_job_is_refused(mill: Mill) -> None:
    mill.script.handler = fail_if_asked
    dead = mill.accepted({"fails": True})
    mill.run()
    answer = call(control, "POST", f"/jobs/{dead}/signals/closed", body="true", headers=JSON)
    assert answer.status == 409
    assert mill.job(dead).signals.received == ()


def test_a_job_that_meets_others_on_its_page_too_often_may_come_again(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = an_open_batch()
    mill.run()
    stored = mill.stored()

    def contended(*_: object) -> None:
        raise TransactionConflictError("another transaction holds the page")

    with monkeypatch.context() as hot:
        hot.setattr(groups, "TRIED_FOR", timedelta(0))
        hot.setattr(groups.DynamoGroups, "_transact", contended)
        refused = mill.post(batch=batch, payload={"padding": "x" * 1_000})

    assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
    assert mill.stored() == stored + 2, "not the job; its payload for a while, and the deletion that is owed"
    assert mill.post(batch=batch).status == 202


@pytest.mark.parametrize("fails", [False, True])
def test_a_cancel_that_comes_during_the_last_run_of_a_batch_is_kept(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """The run has read the batch before, and would end it by what it has seen."""
    batch = an_open_batch()
    mill.accepted({"fails": fails}, batch=batch)
    mill.run()
    closed(batch)
    record = BatchMembers.record
    answers: list[Answer] = []

    def late(members: BatchMembers, job: Job, look: Look, *, last: bool) -> None:
        if last and not answers:
            answers.append(cancelled(batch))
        record(members, job, look, last=last)

    monkeypatch.setattr(BatchMembers, "record", late)
    mill.run()

    assert [answer.status for answer in answers] == [200]
    assert (mill.job(batch).state, called(mill, batch)) == (State.CANCELLED, [])

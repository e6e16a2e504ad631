"""Late corrections through the deployed functions: each state of the earlier job, repeats, refusals, groups."""

from typing import Any

import pytest

from tests.support.api_gateway import request
from tests.support.builders import with_changes
from tests.support.correction_story import Story, refused
from tests.support.deployed_functions import Mill
from tests.support.http_events import ROLE
from tidemill.application.corrections.superseding import Superseder
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.dynamodb.document import SCHEMA_VERSION


@pytest.mark.parametrize("by_key", [True, False])
def test_a_success_is_undone_before_its_correction_runs(story: Story, *, by_key: bool) -> None:
    wrong = story.wrong()
    story.mill.run()

    right = story.accepted(supersedes="order-7" if by_key else wrong)
    story.run()

    assert story.ran == ["wrong", "undo", "right"]
    job, earlier = story.mill.get(right).body, story.mill.get(wrong).body
    assert (job["state"], job["supersedes"], job["attempt"]) == ("succeeded", wrong, 1)
    assert earlier["superseded_by"] == right
    assert story.mill.get(earlier["undone_by"]).body["state"] == "succeeded"


def test_a_correction_whose_earlier_job_a_newer_version_wrote_waits_for_that_version(story: Story) -> None:
    wrong = story.wrong()
    story.mill.run()
    right = story.accepted()
    newer = {"N": str(SCHEMA_VERSION + 1)}
    story.mill.table.put(story.mill.job(wrong), schema=newer)

    story.mill.run()

    held = story.mill.job(right)
    assert (held.state, held.attempt, held.held_by(HoldCause.VERSION)) == (State.QUEUED, 0, 1)
    assert story.ran == ["wrong"]


def test_a_correction_looks_again_if_others_write_the_earlier_job(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_superseder: Superseder, _job: Job) -> bool:
        raise TransactionConflictError("others were faster")

    wrong = story.wrong()
    story.mill.run()
    right = story.accepted()
    with monkeypatch.context() as patch:
        patch.setattr(Superseder, "ready", busy)
        story.mill.run()

    held = story.mill.job(right)
    assert (held.state, held.attempt, held.held_by(HoldCause.UNDO)) == (State.QUEUED, 0, 1)
    assert story.mill.get(wrong).body["undone_by"] is None


def test_a_job_that_has_not_begun_never_runs(story: Story) -> None:
    wrong = story.wrong()
    right = story.accepted()
    story.run()

    assert story.ran == ["right"]
    assert [story.mill.job(each).state for each in (wrong, right)] == [State.CANCELLED, State.SUCCEEDED]


def test_a_job_that_is_scheduled_is_cancelled(story: Story) -> None:
    wrong = story.wrong(delay_seconds=86_400)
    story.accepted()
    story.run()

    assert (story.ran, story.mill.job(wrong).state) == (["right"], State.CANCELLED)


def test_a_job_that_runs_is_undone_after_its_success(story: Story) -> None:
    accepted: list[str] = []
    story.during = lambda: accepted.append(story.accepted())
    story.wrong()
    story.run()

    assert story.ran == ["wrong", "undo", "right"]
    assert story.mill.job(accepted[0]).state is State.SUCCEEDED


def test_a_dead_job_is_discarded(story: Story) -> None:
    story.fails = {"wrong"}
    wrong = story.wrong()
    story.mill.run()
    story.accepted()
    story.run()

    assert (story.ran, story.mill.job(wrong).state) == (["wrong", "right"], State.CANCELLED)


def test_the_same_submission_again_gets_the_same_job(story: Story) -> None:
    story.wrong()
    story.mill.run()
    right = story.accepted()
    again = story.right()

    assert (again.status, again.body["id"]) == (200, right)
    story.run()
    assert story.right().body["id"] == right
    assert story.mill.post({"what": "other"}, key="order-7b", supersedes="order-7").status == 422
    assert story.ran == ["wrong", "undo", "right"]


def test_a_success_without_an_undo_cannot_be_superseded(story: Story) -> None:
    story.records_undo = False
    story.wrong()
    story.mill.run()

    refused(story.right(), "has succeeded and recorded no undo")
    assert story.mill.stored() == 1


def test_a_job_that_recorded_no_undo_while_it_was_superseded_ends_the_correction(story: Story) -> None:
    accepted: list[str] = []
    story.records_undo = False
    story.during = lambda: accepted.append(story.accepted())
    story.wrong()
    story.run()

    job = story.mill.job(accepted[0])
    assert (story.ran, job.state, job.errors[-1].error_class) == (["wrong"], State.DEAD, "UndoFailedError")


def test_only_one_job_supersedes_another(story: Story) -> None:
    wrong = story.wrong()
    story.mill.run()
    right = story.accepted()

    refused(story.right(key="order-7c"), f"job {right} supersedes job {wrong} already")
    refused(request("POST", f"/jobs/{wrong}/undo"), f"job {right}, which is queued, supersedes the job")


@pytest.mark.parametrize("deleted", [False, True])
def test_a_correction_that_was_cancelled_leaves_an_effect_in_place(story: Story, *, deleted: bool) -> None:
    wrong = story.wrong()
    story.mill.run()
    right = story.accepted()
    assert request("POST", f"/jobs/{right}/cancel").status == 200
    if deleted:
        story.forget(right)
    story.run()
    assert (story.ran, story.mill.job(wrong).correction.undone) == (["wrong"], None)

    story.accepted(key="order-7c")
    story.run()
    assert story.ran == ["wrong", "undo", "right"]


def test_after_a_cancelled_correction_another_one_can_be_submitted(story: Story) -> None:
    wrong = story.wrong()
    right = story.accepted()
    assert story.mill.job(wrong).state is State.CANCELLED
    assert request("POST", f"/jobs/{right}/cancel").status == 200

    story.accepted(key="order-7c")
    story.run()
    assert story.ran == ["right"]


def test_a_correction_that_ran_and_was_deleted_still_stands(story: Story) -> None:
    wrong = story.wrong()
    story.mill.run()
    right = story.accepted()
    story.run()
    story.forget(right)

    refused(story.right(key="order-7c"), f"job {right} superseded job {wrong} and has been deleted")


def test_a_correction_of_a_correction_that_has_not_succeeded_is_refused(story: Story) -> None:
    story.wrong()
    story.mill.run()
    right = story.accepted()

    refused(story.right(key="order-7c", supersedes="order-7b"), f"job {right} is queued, and supersedes job")


def test_an_undone_job_can_be_superseded_once_its_undo_has_succeeded(story: Story) -> None:
    wrong = story.wrong()
    story.mill.run()
    undo = request("POST", f"/jobs/{wrong}/undo").body["id"]

    refused(story.right(), f"is undone by job {undo}, which is queued")
    story.mill.run()
    story.accepted()
    story.run()
    assert story.ran == ["wrong", "undo", "right"]


def test_a_correction_dies_with_its_undo_and_is_redriven_after_it(story: Story) -> None:
    story.fails = {"undo"}
    wrong = story.wrong()
    story.mill.run()
    right = story.accepted()
    story.run()
    job = story.mill.job(right)
    assert (job.state, job.errors[-1].error_class, story.ran) == (State.DEAD, "UndoFailedError", ["wrong", "undo"])

    story.fails = set()
    undo = story.mill.get(wrong).body["undone_by"]
    for each in (undo, right):
        assert request("POST", f"/jobs/{each}/redrive").status == 200
        story.run()
    assert story.ran == ["wrong", "undo", "undo", "right"]


def test_in_a_group_the_undo_runs_in_the_turn_of_the_correction(story: Story) -> None:
    story.wrong(group="orders")
    refused(story.right(group="other"), "is of the group orders; the job that supersedes it must be, too")
    story.mill.run()
    story.mill.accepted({"what": "between"}, group="orders")
    story.accepted(group="orders")
    story.mill.accepted({"what": "after"}, group="orders")
    story.run()

    assert story.ran == ["wrong", "between", "undo", "right", "after"]


@pytest.mark.parametrize(
    "fields",
    [
        {"supersedes": ""},
        {"delay_seconds": 5},
        {"max_age_seconds": 60},
        {"unique": {"period_seconds": 60}, "key": None},
    ],
)
def test_an_invalid_correction_is_refused(story: Story, fields: dict[str, Any]) -> None:
    story.wrong()
    answer = story.right(**fields)

    assert (answer.status, answer.body["errors"][0]["pointer"]) == (422, "#/supersedes")


def test_nothing_of_another_tenant_can_be_superseded(story: Story) -> None:
    story.wrong()
    refused(story.right(supersedes="order-8"), "you have no job with the key or id order-8")
    refused(story.right(supersedes="order-7b"), "you have no job with the key or id order-7b")
    other = story.mill.post_text(
        '{"type": "test.scripted", "supersedes": "order-7"}', iam={**ROLE, "userId": "AROANOTHER:a-session"}
    )
    refused(other, "you have no job with the key or id order-7")


def test_an_id_leads_to_no_tenant_whose_name_begins_as_that_of_the_caller(story: Story) -> None:
    """A key is tenant, `#` and id. The subject of a token may have a `#`, too."""
    longer = {**ROLE, "userId": "AROAEXAMPLE#guest"}
    theirs = story.mill.post_text('{"type": "test.scripted"}', iam=longer).body["id"]

    refused(story.right(supersedes=f"guest#{theirs}"), f"you have no job with the key or id guest#{theirs}")
    assert story.mill.get(theirs, iam=longer).body["state"] == "queued"


def test_a_job_costs_no_further_call_if_it_supersedes_none(mill: Mill) -> None:
    mill.read_configuration()
    mill.accepted()
    mill.run()

    assert {name: n for name, n in mill.calls.items() if name.startswith("dynamodb.") and "Get" in name} == {}
    assert mill.calls["dynamodb.UpdateItem"] == 2


def test_a_deleted_job_counts_as_undone_only_with_its_undo(story: Story) -> None:
    wrong = story.wrong()
    story.mill.run()
    right = story.accepted()
    # The first run submits the undo.
    story.mill.publish()
    story.mill.work(story.mill.receive())
    job = story.mill.job(wrong)
    story.mill.table.put(with_changes(job, expires_at=job.created_at))
    story.mill.table.client.delete_item(TableName=story.mill.table.name, Key={"pk": {"S": f"{job.tenant}#{job.id}"}})
    assert story.mill.job(right).holds.count == 1
    story.run()

    assert story.ran == ["wrong", "undo", "right"]

"""Late corrections whose earlier job or undo was deleted, cancelled, has expired, or stands before them in a group."""

from datetime import timedelta

import pytest

from tests.support.api_gateway import request
from tests.support.builders import with_changes
from tests.support.correction_story import Story, refused
from tidemill import Done, Submission
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore


@pytest.mark.parametrize("undone", [False, True])
def test_a_correction_dies_if_nothing_is_known_of_the_effect_any_more(story: Story, *, undone: bool) -> None:
    wrong = story.wrong()
    story.mill.run()
    right = story.accepted()
    if undone:
        story.mill.publish()
        story.mill.work(story.mill.receive())
        story.forget(str(story.mill.get(wrong).body["undone_by"]))
    story.forget(wrong)
    story.run()

    job = story.mill.job(right)
    assert (story.ran, job.state, job.errors[-1].error_class) == (["wrong"], State.DEAD, "UndoFailedError")
    assert "has been deleted, so nothing is known" in job.errors[-1].message


def test_an_expired_job_that_is_not_yet_deleted_is_looked_at_once(story: Story) -> None:
    wrong = story.wrong()
    story.mill.run()
    right = story.accepted()
    story.mill.table.put(with_changes(story.mill.job(wrong), expires_at=story.mill.now() - timedelta(seconds=2)))
    story.run()

    assert (story.ran, story.mill.job(right).state) == (["wrong"], State.DEAD)


def test_a_job_whose_undo_was_deleted_cannot_be_superseded(story: Story) -> None:
    story.fails = {"undo"}
    wrong = story.wrong()
    story.mill.run()
    undo = request("POST", f"/jobs/{wrong}/undo").body["id"]
    story.mill.run()
    story.forget(undo)

    refused(story.right(), f"was undone by job {undo}, which has been deleted")


def test_a_job_that_recorded_a_step_is_superseded_only_after_its_success(story: Story) -> None:
    story.step_fails = True
    wrong = story.wrong()
    story.mill.run()
    assert story.mill.job(wrong).state is State.DEAD
    refused(story.right(), f"job {wrong} is dead and recorded the steps charge, which nothing undoes")
    assert story.mill.stored() == 1

    assert request("POST", f"/jobs/{wrong}/cancel").status == 200
    refused(story.right(), f"job {wrong} is cancelled and recorded the steps charge, which nothing undoes")


def test_a_step_of_a_run_that_was_asked_to_end_lets_the_correction_die(story: Story) -> None:
    accepted: list[str] = []
    story.before_step = lambda: accepted.append(story.accepted())
    story.step_fails = True
    wrong = story.wrong()
    story.run()

    job = story.mill.job(accepted[0])
    assert (story.ran, story.mill.job(wrong).state, job.state) == (["wrong"], State.CANCELLED, State.DEAD)
    assert "recorded the steps charge; undo what they did" in job.errors[-1].message


def test_an_undo_can_be_neither_undone_nor_superseded(story: Story) -> None:
    story.mill.script.handler = lambda _payload, _run: Done(undo=Submission(type="test.scripted", payload={}))
    wrong = story.wrong()
    story.mill.run()
    undo = request("POST", f"/jobs/{wrong}/undo").body["id"]
    story.mill.run()

    refused(request("POST", f"/jobs/{undo}/undo"), f"the job undoes job {wrong} itself")
    refused(story.right(supersedes=undo), f"job {undo} undoes job {wrong}, so it cannot be superseded")


def test_an_undo_that_was_cancelled_is_submitted_anew(story: Story) -> None:
    wrong = story.wrong()
    story.mill.run()
    first = request("POST", f"/jobs/{wrong}/undo").body["id"]
    assert request("POST", f"/jobs/{first}/cancel").status == 200

    second = request("POST", f"/jobs/{wrong}/undo").body["id"]
    assert request("POST", f"/jobs/{wrong}/undo").body["id"] == second != first
    story.mill.run()
    assert (story.ran, story.mill.get(wrong).body["undone_by"]) == (["wrong", "undo"], second)


def test_a_correction_submits_an_undo_that_was_cancelled_anew(story: Story) -> None:
    wrong = story.wrong()
    story.mill.run()
    first = request("POST", f"/jobs/{wrong}/undo").body["id"]
    assert request("POST", f"/jobs/{first}/cancel").status == 200

    story.accepted()
    story.run()
    assert story.ran == ["wrong", "undo", "right"]


def test_a_correction_whose_undo_was_cancelled_dies_and_another_one_goes_on(story: Story) -> None:
    wrong = story.wrong()
    story.mill.run()
    right = story.accepted()
    story.mill.publish()
    story.mill.work(story.mill.receive())
    assert request("POST", f"/jobs/{story.mill.get(wrong).body['undone_by']}/cancel").status == 200
    story.run()
    assert (story.ran, story.mill.job(right).state) == (["wrong"], State.DEAD)

    assert request("POST", f"/jobs/{right}/cancel").status == 200
    story.accepted(key="order-7c")
    story.run()
    assert story.ran == ["wrong", "undo", "right"]


@pytest.mark.parametrize("head", ["dead", "scheduled"])
def test_in_a_group_a_correction_discards_the_head_that_it_waits_for(story: Story, head: str) -> None:
    story.fails = {"wrong"}
    wrong = story.wrong(group="orders", **({"delay_seconds": 86_400} if head == "scheduled" else {}))
    story.mill.run()
    assert story.mill.job(wrong).state == head
    story.accepted(group="orders")
    story.run()

    assert (story.ran[-1], story.mill.job(wrong).state) == ("right", State.CANCELLED)


def test_in_a_group_a_head_that_is_superseded_while_it_runs_does_not_die(story: Story) -> None:
    story.fails = {"wrong"}
    story.during_failure = lambda: story.accepted(group="orders")
    wrong = story.wrong(group="orders")
    story.run()

    assert (story.ran, story.mill.job(wrong).state) == (["wrong", "right"], State.CANCELLED)


def test_a_job_that_has_succeeded_is_kept_for_its_correction(story: Story) -> None:
    wrong = story.wrong()
    story.mill.run()
    before = story.mill.job(wrong).lifetime.expires_at
    story.mill.late += timedelta(days=1)
    story.accepted()

    after = story.mill.job(wrong).lifetime.expires_at
    assert before
    assert after
    assert after - before >= timedelta(days=1)


@pytest.mark.parametrize("expired", [False, True])
def test_a_correction_that_is_gone_and_is_refused_now_is_not_answered_as_accepted(
    story: Story, monkeypatch: pytest.MonkeyPatch, *, expired: bool
) -> None:
    """The earlier job still names it. Their owner undoes that job just before the transaction of the repeat."""
    wrong = story.wrong()
    story.mill.run()
    right = story.accepted()
    request("POST", f"/jobs/{right}/cancel")
    if expired:
        story.mill.table.put(with_changes(story.mill.job(right), expires_at=story.mill.now() - timedelta(seconds=2)))
    else:
        story.forget(right)
    supersede = DynamoJobStore.supersede
    undone: list[int] = []

    def late(store: DynamoJobStore, earlier: Job, job: Job) -> Job:
        if not undone:
            undone.append(request("POST", f"/jobs/{wrong}/undo").status)
        return supersede(store, earlier, job)

    monkeypatch.setattr(DynamoJobStore, "supersede", late)

    refused(story.right(), "has been deleted")
    assert (undone, story.mill.get(right).status) == ([200], 404)

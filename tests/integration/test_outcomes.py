"""The outcomes that a handler returns or raises, through the deployed functions; and the page that describes them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.support.deployed_functions import Mill
from tests.support.documented_job_types import job_types_of
from tidemill import Cancelled, Continue, Done, GiveUp, RetryAfter, Snooze, Submission, composition
from tidemill.application.attempt.run import Run
from tidemill.application.job_types import JobTypes
from tidemill.dynamodb.document import key
from tidemill.testing import NOON, Drive, State, run_job

HOUR = timedelta(hours=1)


def ended(mill: Mill, handler: Any, **asked: Any) -> dict[str, Any]:
    """The job of this handler as its owner sees it when nothing is owed any more."""
    mill.script.handler = handler
    job_id = mill.accepted(**asked)
    mill.run()
    return dict(mill.get(job_id).body)


def test_a_snooze_gives_the_attempt_back_and_leaves_no_error(mill: Mill) -> None:
    runs: list[int] = []

    def handler(_payload: Any, run: Run) -> Any:
        runs.append(run.attempt)
        return Snooze(timedelta(0)) if len(runs) < 5 else "awake"

    job = ended(mill, handler)
    assert (job["state"], job["result"], job["errors"]) == ("succeeded", "awake", [])
    assert (runs, job["hops"]) == ([1] * 5, 4)


def test_a_long_snooze_is_scheduled_and_no_message_waits_for_it(mill: Mill) -> None:
    job = ended(mill, lambda _payload, _run: Snooze(HOUR))
    assert (job["state"], job["attempt"]) == ("scheduled", 0)
    assert mill.depth(mill.queue) == 0


def test_a_job_that_gives_up_is_dead_with_its_reason_and_reaches_the_dlq(mill: Mill) -> None:
    job = ended(mill, lambda _payload, _run: GiveUp("the guest has declined"))
    assert (job["state"], job["death"], job["attempt"]) == ("dead", "gave up", 1)
    assert job["errors"][0]["message"] == "the guest has declined"
    assert mill.depth(mill.dead_letters) == 1


def test_only_a_death_without_intent_counts_as_failed(mill: Mill, capsys: pytest.CaptureFixture[str]) -> None:
    ended(mill, lambda _payload, _run: GiveUp("the guest has declined"))
    assert '"JobsDead":1' in (written := capsys.readouterr().out)
    assert "JobsFailed" not in written
    ended(mill, lambda _payload, _run: object())
    assert '"JobsFailed":1' in capsys.readouterr().out


def test_a_handler_may_end_its_job_without_effect(mill: Mill) -> None:
    job = ended(mill, lambda _payload, _run: Cancelled())
    assert (job["state"], job["result"], mill.depth(mill.dead_letters)) == ("cancelled", None, 0)


def test_retry_after_uses_up_an_attempt_and_sets_the_delay(mill: Mill) -> None:
    def handler(_payload: Any, _run: Run) -> None:
        raise RetryAfter(3600, "busy")

    job = ended(mill, handler)
    assert (job["state"], job["attempt"]) == ("scheduled", 1)
    assert (job["errors"][0]["class"], job["errors"][0]["message"]) == ("RetryAfter", "busy")
    assert mill.job(job["id"]).errors[0].next_due == mill.job(job["id"]).due


def test_a_follow_up_job_commits_with_the_success_and_names_its_parent(mill: Mill) -> None:
    job = ended(mill, lambda _payload, _run: Done("first", then=[Submission(type="test.noop")]))
    (followed,) = (found for found in _all(mill) if found.parent)
    assert (followed.parent, followed.state, followed.hops) == (job["id"], State.SUCCEEDED, 1)


def test_a_job_that_returns_an_invalid_follow_up_dies_and_writes_nothing(mill: Mill) -> None:
    job = ended(mill, lambda _payload, _run: Done(then=[Submission(type="no.such.type")]))
    assert (job["state"], job["death"]) == ("dead", "result cannot be stored")
    assert "no.such.type" in job["errors"][0]["message"]
    assert len(_all(mill)) == 1


def test_too_many_entries_for_a_transaction_are_refused_with_advice(mill: Mill) -> None:
    writes = [_count(mill, f"effect {number}") for number in range(100)]
    job = ended(mill, lambda _payload, _run: Done(writes=writes))
    assert (job["state"], job["death"]) == ("dead", "permanent error")
    assert job["errors"][0]["class"] == "TransactionTooLargeError"
    assert "return Continue and do it in parts" in job["errors"][0]["message"]
    assert mill.stored() == 1


def test_a_write_whose_condition_does_not_hold_fails_the_attempt_and_writes_nothing(mill: Mill) -> None:
    refused = _count(mill, "refused")
    refused["Update"]["ConditionExpression"] = "attribute_exists(pk)"
    job = ended(mill, lambda _payload, _run: Done(writes=[_count(mill, "effect"), refused]))
    assert (job["state"], job["death"], job["attempt"]) == ("dead", "attempts used up", 3)
    assert job["errors"][0]["class"] == "EffectRefusedError"
    assert mill.stored() == 1


def test_the_hop_limit_ends_an_endless_chain(mill: Mill) -> None:
    mill.script.handler = lambda _payload, _run: Continue()
    job_id = mill.accepted()
    mill.table.client.update_item(
        TableName=mill.table.name,
        Key=key(mill.job(job_id).tenant, job_id),
        UpdateExpression="SET hops = :nearly",
        ExpressionAttributeValues={":nearly": {"N": "998"}},
    )
    mill.run()
    job = mill.job(job_id)
    assert (job.state, job.death, job.hops) == (State.DEAD, "too many hops", 1001)


def test_a_result_that_json_cannot_hold_is_never_a_success(mill: Mill) -> None:
    job = ended(mill, lambda _payload, _run: object())
    assert (job["state"], job["death"]) == ("dead", "result cannot be stored")


@pytest.fixture
def page() -> Iterator[JobTypes]:
    with job_types_of("outcomes.md") as known:
        yield known


@pytest.mark.parametrize(
    ("invoice", "state", "death"),
    [
        ("draft", State.SCHEDULED, None),
        ("void", State.DEAD, "gave up"),
        ("broken", State.DEAD, "permanent error"),
        ("busy", State.RETRYING, None),
    ],
)
def test_the_example_of_the_page_ends_as_it_says(page: JobTypes, invoice: str, state: State, death: str | None) -> None:
    ran = run_job(page.get("invoice.send"), {"number": "7", "state": invoice})
    assert (ran.state, ran.job.death) == (state, death)
    assert (ran.writes, ran.enqueued) == ((), ())


def test_the_example_of_the_page_is_sent_with_its_effect_and_its_reminder(page: JobTypes) -> None:
    drive = Drive(page.get("invoice.send"), {"number": "7"}, known=[page.get("invoice.remind")])
    ran = drive.run()
    assert (ran.state, ran.result) == (State.SUCCEEDED, {"sent": "7"})
    assert [write["Update"]["TableName"] for write in ran.writes] == ["invoices"]
    assert [asked.type for asked in ran.enqueued] == ["invoice.remind"]
    assert drive.now == NOON


def _count(mill: Mill, name: str) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": mill.table.name,
            "Key": {"pk": {"S": f"!{name}"}},
            "UpdateExpression": "ADD times :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }


def _all(mill: Mill) -> list[Any]:
    keys = [item["pk"]["S"].rpartition("#") for item in mill.table.client.scan(TableName=mill.table.name)["Items"]]
    return composition.parts().store.get_many([(tenant, job_id) for tenant, _, job_id in keys])

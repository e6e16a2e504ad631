"""Every outcome that a handler can have, through the deployed app."""

import json
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from tests.e2e.conftest import Deployed
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local.wait import wait_until
from tidemill.names import Output


def time(job: dict[str, Any], name: str) -> datetime:
    return datetime.fromisoformat(job[name])


def test_a_snoozed_job_comes_back_when_it_said_and_has_used_up_no_attempt(deployed: Deployed) -> None:
    job = deployed.until(deployed.accepted("demo.snooze", {"seconds": 5}), state="succeeded")
    assert (job["result"], job["errors"]) == ({"attempts": 1}, [])
    # A run that begins after the time has nothing to wait for, and does not snooze.
    first = next(entry for entry in job["history"] if entry["cause"] == "claimed")
    snoozes = [entry for entry in job["history"] if entry["cause"] == "snoozed"]
    assert len(snoozes) == job["hops"]
    assert snoozes or time(first, "at") > time(job, "created_at") + timedelta(seconds=4)
    assert time(job, "claimed_at") >= time(job, "created_at") + timedelta(seconds=5)


def test_a_job_that_continues_goes_on_where_it_was_and_shows_how_far_it_is(deployed: Deployed) -> None:
    job_id = deployed.accepted("demo.steps", {"steps": 20, "seconds": 0.2})
    seen = deployed.until(job_id, state="running", holds=lambda job: 0 < (job["progress"]["done"] or 0) < 20)
    assert seen["progress"]["total"] == 20
    job = deployed.until(job_id, state="succeeded")
    assert (job["result"], job["progress"]["done"], job["attempt"], job["errors"]) == ({"steps": 20}, 20, 1, [])
    assert job["hops"] >= 2


def test_a_job_that_gives_up_is_dead_with_its_reason(deployed: Deployed) -> None:
    job = deployed.until(deployed.accepted("demo.give_up", {"guest": "Ada"}), state="dead")
    assert (job["death"], job["attempt"]) == ("gave up", 1)
    assert job["errors"][0]["message"] == "Ada has declined"


def test_a_running_job_that_is_cancelled_ends_at_its_next_step(deployed: Deployed) -> None:
    job_id = deployed.accepted("demo.steps", {"steps": 1000, "seconds": 0.2})
    deployed.until(job_id, state="running", holds=lambda job: (job["progress"]["done"] or 0) > 0)
    assert deployed.app.request("POST", f"/jobs/{job_id}/cancel").status in {200, 202}
    job = deployed.until(job_id, state="cancelled")
    assert job["result"] is None
    assert job["progress"]["done"] < 1000


def test_a_job_that_has_not_started_is_cancelled_at_once(deployed: Deployed) -> None:
    job_id = deployed.accepted("demo.flaky", {"failures": 0}, delay_seconds=1200)
    assert deployed.app.request("POST", f"/jobs/{job_id}/cancel").status == 200
    assert deployed.job(job_id)["state"] == "cancelled"


def test_retry_after_sets_the_delay_and_overrides_the_backoff_of_the_type(deployed: Deployed) -> None:
    job = deployed.until(deployed.accepted("demo.busy", {"retry_after_seconds": 1}), state="succeeded")
    (error,) = job["errors"]
    assert (error["class"], error["message"]) == ("RetryAfter", "the service is busy")
    assert time(error, "next_due") - time(error, "at") == timedelta(seconds=1)


def test_an_effect_and_a_follow_up_job_commit_once_with_the_success(deployed: Deployed) -> None:
    number = uuid4().hex
    job_id = deployed.accepted("demo.order", {"number": number})
    deployed.until(job_id, state="succeeded")
    reference = {"schema": 1, "tenant": deployed.tenant_of(job_id), "id": job_id, "generation": 1, "trace": "again"}
    deployed.send(json.dumps(reference), times=3)
    wait_until(lambda: len(deployed.ledger(number)) > 1, PATIENCE_SECONDS, "the receipt")
    deployed.drained()
    assert deployed.ledger(number) == ["booked", "receipt sent"]


def test_a_job_over_its_own_time_is_settled_while_its_batch_goes_on(deployed: Deployed) -> None:
    late = deployed.accepted("demo.overtime", {})
    others = [deployed.accepted("demo.flaky", {"failures": 0}) for _ in range(3)]
    job = deployed.until(late, state="dead")
    (error,) = job["errors"]
    allowed = "it took longer than the 0.5 s that `timeout_seconds` of demo.overtime allows"
    assert (error["class"], error["message"]) == ("JobTimeoutError", allowed)
    for job_id in others:
        assert deployed.until(job_id, state="succeeded")["attempt"] == 1


def test_a_handler_that_outlives_its_time_costs_the_others_of_its_batch_nothing(deployed: Deployed) -> None:
    mates = [{"type": "demo.flaky", "payload": {"failures": 0}} for _ in range(9)]
    body = json.dumps({"jobs": [{"type": "demo.overtime", "payload": {}}, *mates]}).encode()
    answer = deployed.app.request("POST", "/jobs/batch", body=body).json()
    late, *others = [item["job"]["id"] for item in answer["jobs"]]
    for job_id in others:
        assert deployed.until(job_id, state="succeeded")["attempt"] == 1
    deployed.until(late, state="dead")
    deployed.drained()
    wait_until(lambda: worker_log(deployed, "stray thread", late), PATIENCE_SECONDS, "the line about the thread")
    # The process that ended itself deleted its messages: none came back for its document to refuse.
    assert worker_log(deployed, "refused", *others, late) == []


def worker_log(deployed: Deployed, message: str, *job_ids: str) -> list[dict[str, Any]]:
    """The log lines with this message about one of the jobs."""
    worker = json.loads(deployed.app.outputs[Output.FUNCTIONS])["work"]
    logs = deployed.app.client("logs")
    function = deployed.app.client("lambda").get_function_configuration(FunctionName=worker)
    group = function.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{worker}"
    found = logs.filter_log_events(logGroupName=group)["events"]
    lines = [json.loads(event["message"]) for event in found if f'"{message}"' in event["message"]]
    return [line for line in lines if line.get("message") == message and line.get("job_id") in job_ids]


def test_jobs_of_a_group_run_in_the_order_accepted_though_one_is_tried_twice(deployed: Deployed) -> None:
    group = uuid4().hex
    ids = [
        deployed.accepted(
            "demo.ordered", {"ledger": group, "number": number, "failures": int(number == 1)}, group=group
        )
        for number in range(5)
    ]
    for job_id in ids:
        deployed.until(job_id, state="succeeded")
    assert deployed.ledger(group) == ["0", "1", "2", "3", "4"]
    assert [deployed.job(job_id)["sequence"] for job_id in ids] == [1, 2, 3, 4, 5]

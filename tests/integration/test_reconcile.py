"""Reconcile through its function, between the table, the stream and the queues."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import a_job, letter_for
from tests.support.deployed_functions import TENANT, Context, Mill
from tests.support.job_tables import client
from tidemill import composition
from tidemill.application.passes.pace import MOST_WRITES_PER_SECOND
from tidemill.application.passes.pass_state import SEGMENTS
from tidemill.application.ports import ScanPage
from tidemill.aws import clients
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb.passes.pass_store import DynamoPasses
from tidemill.dynamodb.passes.table_scan import DynamoTableScan
from tidemill.entrypoints import reconcile
from tidemill.names import COMPARE, CONTINUE, JOB_KEY, PAYLOAD_PREFIX, Env
from tidemill.sqs import messages, queue_depth

LIMIT = timedelta(hours=3)
INVOCATION = Context(timedelta(minutes=15))
RETENTION = timedelta(days=4)
#: The event of the schedule.
SCHEDULED = {CONTINUE: "true"}


class Metrics:
    """A CloudWatch that returns one age, or none, or fails."""

    def __init__(self) -> None:
        self.age: timedelta | None = None
        self.failure: Exception | None = None

    def get_metric_statistics(self, *, EndTime: datetime, **_rest: Any) -> Any:  # noqa: N803 - as boto3 has it
        if self.failure:
            raise self.failure
        points = [] if self.age is None else [{"Timestamp": EndTime, "Maximum": self.age.total_seconds()}]
        return {"Datapoints": points}


@pytest.fixture(autouse=True)
def metrics(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Metrics:
    metrics = Metrics()
    monkeypatch.setenv(Env.RECONCILE_LIMIT_SECONDS, str(LIMIT.total_seconds()))
    monkeypatch.setenv(Env.RECONCILE_READ_UNITS, "1000000")
    monkeypatch.setattr(clients, "cloudwatch", lambda: metrics)
    return metrics


def lost(mill: Mill) -> str:
    """A job whose stream record is lost."""
    job_id = mill.accepted()
    mill._sequence = mill.records()[-1]["dynamodb"]["SequenceNumber"]
    return job_id


@pytest.mark.slow
def test_a_job_whose_record_the_stream_has_lost_runs_after_a_reconcile(mill: Mill) -> None:
    job_id = lost(mill)
    mill.late = LIMIT - timedelta(minutes=1)
    reconcile.handle({}, INVOCATION)
    mill.run()
    assert mill.job(job_id).state is State.QUEUED

    mill.late = LIMIT
    reconcile.handle({}, INVOCATION)
    reconcile.handle({}, INVOCATION)
    mill.run()

    assert (mill.job(job_id).state, mill.job(job_id).attempt) == (State.SUCCEEDED, 1)
    assert mill.depth(mill.queue) == 0


def test_the_function_repairs_at_most_a_thousand_jobs_a_second(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("tidemill.parts.time.sleep", pauses.append)
    for _ in range(3):
        lost(mill)
    mill.late = LIMIT

    reconcile.handle({}, INVOCATION)

    # One for each repair. Those of the reads are much shorter here.
    assert sum(pause >= 1 / MOST_WRITES_PER_SECOND for pause in pauses) == 3


def test_an_alarm_asks_for_a_new_pass_and_the_schedule_waits_for_the_day(mill: Mill) -> None:
    reconcile.handle(SCHEDULED, INVOCATION)
    job_id = lost(mill)
    mill.late = LIMIT
    reconcile.handle(SCHEDULED, INVOCATION)
    mill.run()
    assert mill.job(job_id).state is State.QUEUED

    reconcile.handle({"Records": [{"Sns": {"Message": json.dumps({"NewStateValue": "ALARM"})}}]}, INVOCATION)
    mill.run()
    assert mill.job(job_id).state is State.SUCCEEDED


def test_a_pass_that_an_alarm_asks_for_during_another_one_begins_in_the_same_run(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = DynamoTableScan.page
    asked: list[int] = []
    segments: list[int] = []

    def alarm_fires_meanwhile(scan: DynamoTableScan, segment: int, **request: Any) -> ScanPage:
        segments.append(segment)
        if not asked:
            asked.append(segment)
            reconcile.handle({"AlarmName": "DeadJobs"}, INVOCATION)
        return page(scan, segment, **request)

    monkeypatch.setattr(DynamoTableScan, "page", alarm_fires_meanwhile)
    reconcile.handle(SCHEDULED, INVOCATION)

    assert Counter(segments) == dict.fromkeys(range(SEGMENTS), 2)


def test_the_schedule_begins_a_pass_each_day(mill: Mill) -> None:
    reconcile.handle(SCHEDULED, INVOCATION)
    job_id = lost(mill)

    mill.late = timedelta(days=1) + timedelta(minutes=1)
    reconcile.handle(SCHEDULED, INVOCATION)
    mill.run()

    assert mill.job(job_id).state is State.SUCCEEDED


@pytest.mark.slow
def test_jobs_of_a_slow_lane_are_not_nudged(mill: Mill, metrics: Metrics) -> None:
    jobs = [mill.accepted() for _ in range(5)]
    mill.publish()
    metrics.age = timedelta(hours=48)

    for hours in range(6, 48, 12):
        mill.late = timedelta(hours=hours)
        reconcile.handle({}, INVOCATION)
        mill.publish()

    assert mill.depth(mill.queue) == len(jobs)
    assert {mill.job(job_id).nudges.count for job_id in jobs} == {0}


def test_a_lost_job_of_a_slow_lane_is_nudged_once_its_lane_cannot_explain_the_delay(
    mill: Mill, metrics: Metrics
) -> None:
    job_id = lost(mill)
    mill.accepted()
    mill.publish()
    metrics.age = timedelta(hours=10)

    mill.late = LIMIT + timedelta(hours=9)
    reconcile.handle({}, INVOCATION)
    assert mill.job(job_id).nudges.count == 0

    mill.late += timedelta(hours=1)
    reconcile.handle({}, INVOCATION)
    assert mill.job(job_id).nudges.count == 1


def test_the_delay_of_a_lane_comes_from_cloudwatch_and_is_zero_when_empty(mill: Mill, metrics: Metrics) -> None:
    metrics.age = timedelta(hours=9)
    assert queue_depth.delay(client("sqs"), metrics, mill.queue, now=mill.now()) == timedelta(0)

    client("sqs").send_message(QueueUrl=mill.queue, MessageBody="anything")
    assert queue_depth.delay(client("sqs"), metrics, mill.queue, now=mill.now()) == timedelta(hours=9)


@pytest.mark.parametrize("failure", [None, StoreUnavailableError("no answer")])
def test_without_a_metric_the_delay_of_a_lane_is_its_retention_time(
    mill: Mill, metrics: Metrics, failure: Exception | None
) -> None:
    metrics.failure = failure
    client("sqs").send_message(QueueUrl=mill.queue, MessageBody="anything")

    assert queue_depth.delay(client("sqs"), metrics, mill.queue, now=mill.now()) == RETENTION


def test_a_scheduled_job_that_the_scheduler_missed_is_woken(mill: Mill) -> None:
    submission = Submission(type="test.scripted", delay=timedelta(hours=1))
    job = composition.parts().submit(submission, tenant=TENANT, trace="a test").job
    mill.late = timedelta(hours=1) + LIMIT

    reconcile.handle({}, INVOCATION)
    mill.run()

    assert mill.job(job.id).state is State.SUCCEEDED


def test_an_orphaned_payload_is_deleted_after_a_day(mill: Mill) -> None:
    large = json.dumps({"text": "x" * 5_000})
    composition.parts().payloads.put_away(a_job(payload=large, created_at=mill.now()))
    used = mill.accepted({"text": "x" * 5_000})

    mill.late = timedelta(hours=25)
    reconcile.handle({}, INVOCATION)

    items = mill.table.client.scan(TableName=mill.table.name)["Items"]
    assert [used in item[JOB_KEY]["S"] for item in items if item[JOB_KEY]["S"].startswith(PAYLOAD_PREFIX)] == [True]


def bodies(mill: Mill) -> Sequence[Any]:
    answer = client("sqs").receive_message(QueueUrl=mill.dead_letters, MaxNumberOfMessages=10, VisibilityTimeout=0)
    return [messages.decode(message["Body"]) for message in answer.get("Messages", [])]


def test_dead_letter_messages_are_handled_by_the_rule(mill: Mill) -> None:
    def fails(_payload: Any, _run: Any) -> None:
        raise LookupError

    mill.script.handler = fails
    dead = mill.accepted()
    mill.run()
    stranded = lost(mill)
    gone = letter_for(a_job())
    for body in (reference_to(mill.job(stranded)), gone):
        client("sqs").send_message(QueueUrl=mill.dead_letters, MessageBody=messages.encode(body))
    mill.script.handler = lambda _payload, _run: None
    mill.late = timedelta(minutes=2)

    reconcile.handle({}, INVOCATION)
    mill.run()

    assert mill.job(stranded).state is State.SUCCEEDED
    assert [dead_letter.reference.job_id for dead_letter in bodies(mill)] == [dead]


def test_reconcile_logs_its_repairs_its_progress_and_the_unreadable_items(
    mill: Mill, caplog: pytest.LogCaptureFixture
) -> None:
    lost(mill)
    mill.table.put(a_job(id="unreadable", due=mill.now()), schema={"N": "99"})
    mill.late = LIMIT

    reconcile.handle({}, INVOCATION)

    swept, said, unreadable, metrics = (record.__dict__ for record in caplog.records[-4:])
    assert (swept["message"], swept["dead_letters"]["default"]["kept"]) == ("reconciled", 0)
    assert (said["message"], said["nudged"], said["failed"]) == ("reconciled", 1, 0)
    assert (said["pass"]["number"], said["pass"]["open"], said["pass"]["segments"]) == (1, False, "64 of 64")
    assert (unreadable["levelname"], unreadable["number"]) == ("ERROR", 1)
    assert list(unreadable["errors"]) == [f"{TENANT}#unreadable"]
    assert (metrics["JobsNudged"], metrics["ItemsUnreadable"], metrics["lane"]) == (1, 1, "default")
    assert metrics["ReconcileItems"] >= 2
    assert metrics["ReconcileSegments"] == 64
    assert {"ReconcileAge", "ReconcileDuration"} <= metrics.keys()


def test_a_call_that_cannot_ask_for_a_pass_raises_so_that_lambda_retries_it(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconcile.handle({}, INVOCATION)
    job_id = lost(mill)
    mill.late = LIMIT

    def unavailable(*_: Any, **__: Any) -> Any:
        raise StoreUnavailableError("no answer")

    with monkeypatch.context() as outage:
        outage.setattr(DynamoPasses, "read", unavailable)
        with pytest.raises(StoreUnavailableError):
            reconcile.handle({}, INVOCATION)

    reconcile.handle({}, INVOCATION)
    mill.run()
    assert mill.job(job_id).state is State.SUCCEEDED


def test_what_a_run_could_not_scan_is_left_to_the_next_scheduled_call(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = lost(mill)
    mill.late = LIMIT

    def unavailable(*_: Any, **__: Any) -> Any:
        raise StoreUnavailableError("no answer")

    with monkeypatch.context() as outage:
        outage.setattr(DynamoTableScan, "page", unavailable)
        reconcile.handle({}, INVOCATION)

    reconcile.handle(SCHEDULED, INVOCATION)
    mill.run()
    assert mill.job(job_id).state is State.SUCCEEDED


@pytest.mark.parametrize("differences", [{}, {"schedule Wake": "its state is DISABLED"}], ids=["none", "one"])
def test_a_call_writes_at_once_how_many_resources_differ_from_the_template(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], differences: dict[str, str]
) -> None:
    monkeypatch.setenv(Env.STACK, "a stack")
    monkeypatch.setattr("tidemill.operator.drift.drift.drifted", {"a stack": differences}.__getitem__)
    monkeypatch.setattr("tidemill.entrypoints.reconcile.reconciler", _fail)
    with pytest.raises(StoreUnavailableError):
        reconcile.handle(SCHEDULED, INVOCATION)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["ResourcesDrifted"] for line in lines if "ResourcesDrifted" in line] == [len(differences)]
    assert [line["resources"] for line in lines if line["message"] == "resources drifted"] == [differences] * len(
        differences
    )


def _fail() -> Any:
    raise StoreUnavailableError("a call that fails later")


def test_an_operator_who_asks_for_the_differences_gets_them_and_begins_no_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(Env.STACK, "a stack")
    monkeypatch.setattr("tidemill.operator.drift.drift.drifted", lambda _: {"schedule Wake": "its state is DISABLED"})
    monkeypatch.setattr("tidemill.entrypoints.reconcile.table_passes", _fail)
    assert reconcile.handle({COMPARE: "true"}, INVOCATION) == {"schedule Wake": "its state is DISABLED"}
    assert capsys.readouterr().out == ""

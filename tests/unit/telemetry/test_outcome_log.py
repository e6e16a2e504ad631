"""The lines of submissions, publish, wake and reconcile, and their metrics in CloudWatch's embedded format."""

import pytest

from tests.support.builders import NOW, a_job, letter_for, reference_to
from tests.unit.telemetry.conftest import Said
from tidemill.application.dispatch.owed import Kind, Owed, OwedResult, Work
from tidemill.application.dispatch.publish import FailedStep, Published
from tidemill.application.dispatch.reactions import PublishStep
from tidemill.application.submission.new_jobs import Accepted
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.records import replace
from tidemill.names import Lane
from tidemill.telemetry.outcome_log import Telemetry, logger

JOB = a_job(attempt=2)


def test_a_submission_is_one_line_with_its_metric(said: Said) -> None:
    Telemetry(stage="test").accepted(Accepted(job=JOB, replayed=False))

    (line,) = said()
    assert (line["level"], line["message"]) == ("INFO", "accepted")
    assert (line["job_id"], line["generation"], line["trace"]) == (JOB.id, JOB.generation, JOB.trace)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive == {
        "Namespace": "Tidemill",
        "Dimensions": [["stage", "lane"]],
        "Metrics": [{"Name": "JobsAdded"}],
    }
    assert (line["stage"], line["lane"], line["JobsAdded"]) == ("test", "default", 1)


def test_the_last_line_of_each_lane_carries_the_metrics(said: Said) -> None:
    jobs = [a_job(lane=lane) for lane in (Lane.BULK, Lane.DEFAULT, Lane.BULK)]
    Telemetry(stage="test").accepted(*(Accepted(job=job, replayed=job is jobs[0]) for job in jobs), over_http=True)

    replayed, default, bulk = said()
    assert (replayed["message"], "_aws" in replayed) == ("replayed", False)
    assert (default["lane"], default["JobsSubmitted"]) == ("default", 1)
    assert (bulk["lane"], bulk["JobsSubmitted"], bulk["JobsReplayed"]) == ("bulk", 1, 1)


def test_an_invocation_without_events_writes_nothing(said: Said) -> None:
    of = Telemetry(stage="test")
    of.accepted()
    of.published(Published(sent=[]))
    of.items_refused(0)
    of.submissions_failed(0)
    of.flush()

    assert said() == []


def test_a_line_has_a_time_and_none_of_the_silent_keys_of_powertools(said: Said) -> None:
    of = Telemetry(stage="test")
    of.controlled("cancelled", JOB)
    of.accepted(Accepted(job=JOB, replayed=False))

    plain, with_metrics = said()
    assert plain["timestamp"].endswith("Z")
    # Its metrics have a time.
    assert "timestamp" not in with_metrics
    for line in (plain, with_metrics):
        assert not {"location", "service", "sampling_rate", "xray_trace_id"} & line.keys()


def test_items_of_a_batch_that_were_not_accepted_are_counted(said: Said) -> None:
    of = Telemetry(stage="test")
    of.items_refused(3)
    of.submissions_failed(1)
    of.flush()

    (line,) = said()
    assert (line["BatchItemsRefused"], line["SubmissionsFailed"], line["lane"]) == (3, 1, "default")


def test_a_sample_drops_lines_and_no_metric(said: Said) -> None:
    jobs = [a_job() for _ in range(200)]
    of = Telemetry(stage="test", sample_rate=0.5)
    of.accepted(*(Accepted(job=job, replayed=False) for job in jobs))
    of.published(Published(sent=[Dispatch(lane=job.lane, body=reference_to(job), delay_seconds=0) for job in jobs]))

    lines = said()
    names = {
        message: {line["job_id"] for line in lines if line["message"] == message}
        for message in ("accepted", "dispatched")
    }
    # The same jobs in both.
    assert names["accepted"] == names["dispatched"]
    assert 50 < len(names["accepted"]) < 150
    assert sum(line.get("JobsAdded", 0) for line in lines) == 200


def test_a_sample_of_nothing_still_has_metrics_replays_and_dead_letters(said: Said) -> None:
    of = Telemetry(stage="test", sample_rate=0)
    of.accepted(Accepted(job=JOB, replayed=False))
    of.accepted(Accepted(job=JOB, replayed=True))
    of.published(Published(sent=[Dispatch(lane=Lane.DEFAULT, body=letter_for(JOB), delay_seconds=0)]))

    lines = said()
    assert [line["message"] for line in lines] == ["metrics", "replayed", "dead-letter message sent"]
    assert [line.get("JobsAdded") for line in lines] == [1, None, None]


def test_sent_messages_and_failed_records_are_logged(said: Said) -> None:
    of = Telemetry(stage="test")
    sent = [Dispatch(lane=Lane.DEFAULT, body=body, delay_seconds=3) for body in (reference_to(JOB), letter_for(JOB))]
    work = Work(kind=Kind.DISPATCH, tenant="ada", name="a job")
    steps = [
        FailedStep(
            "7", PublishStep.ADVANCE, Work(kind=Kind.ADVANCE, tenant="ada", name="parcels"), "busy", handed_over=False
        ),
        FailedStep("8", PublishStep.READ, work, "rubbish", handed_over=True),
        FailedStep("9", PublishStep.DELETE, replace(work, kind=Kind.DELETE_PAYLOAD), "busy", handed_over=True),
    ]
    of.published(Published(sent=sent, failed=["7"], failed_steps=steps))
    of.flush()

    *lines, metrics = said()
    assert [(line["level"], line["message"]) for line in lines] == [
        ("INFO", "dispatched"),
        ("INFO", "dead-letter message sent"),
        ("ERROR", "group not advanced"),
        ("ERROR", "unreadable stream record"),
        ("ERROR", "payload not deleted"),
        ("ERROR", "stream records failed"),
    ]
    assert (lines[0]["job_id"], lines[0]["delay_seconds"]) == (JOB.id, 3)
    assert (lines[2]["group"], lines[2]["handed_over"]) == ("parcels", False)
    assert (lines[3]["job_id"], lines[3]["sequence"], lines[3]["error"]) == ("a job", "8", "rubbish")
    assert lines[5]["sequences"] == ["7"]
    # SQS counts the messages of a lane.
    assert not any("_aws" in line for line in lines[:2])
    assert metrics["RecordsHandedOver"] == 2
    assert "RecordsPassedOver" not in metrics


def test_owed_work_is_logged_and_counted(said: Said) -> None:
    of = Telemetry(stage="test")
    work = Work(kind=Kind.DISPATCH, tenant="ada", name="a job")
    owed = Owed(work=work, since=NOW, next_try=NOW, tries=3, error="rubbish", resent=False, version="1", failures=1)
    of.owed_result(OwedResult(advanced=[JOB], resent=[JOB], overdue=[owed], finished=False))
    of.flush()
    of.flush()

    *lines, metrics = said()
    assert [line["message"] for line in lines] == [
        *("group advanced", "dispatched again", "owed work overdue", "owed work unfinished")
    ]
    assert (lines[2]["kind"], lines[2]["work"], lines[2]["tries"], lines[2]["error"]) == (
        *("dispatch", "a job", 3, "rubbish"),
    )
    assert [metrics[name] for name in ("GroupsAdvanced", "JobsResent", "RecordsPassedOver")] == [1] * 3


class _OddError(Exception):
    def __str__(self) -> str:
        raise SystemExit


def _long_chain() -> Exception:
    error = ValueError("first")
    for _ in range(10_000):
        error, cause = ValueError("x" * 100), error
        error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no"), "ValueError: no"),
        (_OddError(), "_OddError"),
        (ExceptionGroup("calls", [ValueError("no"), _OddError()]), "ValueError: no"),
        (ExceptionGroup("calls", [ValueError("no")] * 100_000), "ValueError: no"),
        (_long_chain(), "ValueError: xxx"),
        (ValueError("x" * 1_000_000), "ValueError: xxx"),
    ],
    ids=["plain", "no text", "group", "huge group", "long chain", "long text"],
)
def test_any_exception_has_a_line_with_a_bounded_traceback(said: Said, error: Exception, text: str) -> None:
    logger().error("failed", exc_info=error)

    (line,) = said()
    assert text in line["exception"]
    assert len(line["exception"]) <= 32 * 1024

"""One log line per event, and its metrics in CloudWatch's embedded format."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from aws_lambda_powertools import Logger

from tests.support.builders import NOW, SECOND, a_job, fresh_token, letter_for, reference_to
from tidemill.application.attempt_report import Ending, Report
from tidemill.application.owed import Kind, Owed, Taken, Work
from tidemill.application.ports import UnreadableItem
from tidemill.application.publish import FailedStep, Published, Step
from tidemill.application.reconcile import Reconciled
from tidemill.application.submit import Accepted
from tidemill.domain.claim_verdict import Verdict
from tidemill.domain.dispatch import Dispatch
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import DeathReason
from tidemill.names import Env, Lane
from tidemill.telemetry import outcome_log
from tidemill.telemetry.outcome_log import Telemetry

Said = Callable[[Telemetry], tuple[list[dict[str, Any]], list[dict[str, Any]]]]
JOB = a_job(attempt=2, claimed_at=NOW, ready_at=NOW - timedelta(milliseconds=1500))


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    """The log lines of an invocation, then its metrics."""
    # A logger keeps the standard output of its creation, so the test creates its own.
    monkeypatch.setattr(outcome_log, "logger", cache(lambda: Logger(service=fresh_token(), stream=sys.stdout)))

    def said(of: Telemetry) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        of.flush()
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return [line for line in lines if "_aws" not in line], [line for line in lines if "_aws" in line]

    return said


def test_metrics_are_one_line_per_lane_with_stage_and_lane_as_dimensions(said: Said) -> None:
    of = Telemetry(stage="test")
    of.accepted(Accepted(job=JOB, replayed=False))
    of.accepted(Accepted(job=JOB, replayed=False))

    _, (metrics,) = said(of)

    (directive,) = metrics["_aws"]["CloudWatchMetrics"]
    assert directive == {
        "Namespace": "Tidemill",
        "Dimensions": [["stage", "lane"]],
        "Metrics": [{"Name": "JobsSubmitted", "Unit": "Count"}],
    }
    assert (metrics["stage"], metrics["lane"], metrics["JobsSubmitted"]) == ("test", "default", [1.0, 1.0])


def test_an_invocation_without_events_writes_nothing(said: Said) -> None:
    assert said(Telemetry(stage="test")) == ([], [])


@pytest.mark.parametrize(
    ("replayed", "message", "metric"), [(False, "accepted", "JobsSubmitted"), (True, "replayed", "JobsReplayed")]
)
def test_a_submission_is_logged_with_its_job(said: Said, replayed: bool, message: str, metric: str) -> None:
    of = Telemetry(stage="test")
    of.accepted(Accepted(job=JOB, replayed=replayed))

    (line,), (metrics,) = said(of)

    assert (line["level"], line["message"]) == ("INFO", message)
    assert (line["job_id"], line["job_type"], line["tenant"], line["trace"]) == (
        JOB.id,
        JOB.type,
        JOB.tenant,
        JOB.trace,
    )
    assert metrics[metric] == [1.0]


def test_sent_messages_and_failed_records_are_logged(said: Said) -> None:
    of = Telemetry(stage="test")
    sent = [Dispatch(lane=Lane.DEFAULT, body=body, delay_seconds=3) for body in (reference_to(JOB), letter_for(JOB))]
    work = Work(kind=Kind.DISPATCH, tenant="ada", name="a job")
    steps = [
        FailedStep("7", Step.ADVANCE, Work(kind=Kind.ADVANCE, tenant="ada", name="parcels"), "busy", handed_over=False),
        FailedStep("8", Step.READ, work, "rubbish", handed_over=True),
        FailedStep("9", Step.DELETE, replace(work, kind=Kind.DELETE_PAYLOAD), "busy", handed_over=True),
    ]
    of.published(Published(sent=sent, failed=["7"], failed_steps=steps))

    lines, (metrics,) = said(of)

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
    assert metrics["JobsDispatched"] == [1.0, 1.0]
    assert metrics["RecordsHandedOver"] == [1.0, 1.0]
    assert "RecordsPassedOver" not in metrics


def test_owed_work_is_logged_and_counted(said: Said) -> None:
    of = Telemetry(stage="test")
    work = Work(kind=Kind.DISPATCH, tenant="ada", name="a job")
    owed = Owed(work=work, since=NOW, next_try=NOW, tries=3, error="rubbish", resent=False, version="1")
    of.taken(Taken(advanced=[JOB], resent=[JOB], overdue=[owed], finished=False))

    lines, (metrics,) = said(of)

    assert [line["message"] for line in lines] == [
        *("group advanced", "dispatched again", "owed work overdue", "owed work unfinished")
    ]
    assert (lines[2]["kind"], lines[2]["work"], lines[2]["tries"], lines[2]["error"]) == (
        *("dispatch", "a job", 3, "rubbish"),
    )
    assert [metrics[name] for name in ("GroupsAdvanced", "JobsResent", "RecordsPassedOver")] == [[1.0]] * 3


def test_an_attempt_is_logged_with_its_duration_and_start_latency(said: Said) -> None:
    of = Telemetry(stage="test")
    of.attempt_ended(Lane.DEFAULT, reference_to(JOB), Report(ending=Ending.SUCCEEDED, job=JOB, duration_seconds=0.25))

    (line,), (metrics,) = said(of)

    assert (line["level"], line["message"], line["attempt"]) == ("INFO", "succeeded", 2)
    assert (line["attempt_ms"], line["start_latency_ms"]) == (250, 1500)
    assert (metrics["JobsSucceeded"], metrics["AttemptDuration"], metrics["StartLatency"]) == ([1.0], [250.0], [1500.0])


def test_a_job_without_ready_at_has_no_start_latency(said: Said) -> None:
    of = Telemetry(stage="test")
    of.attempt_ended(Lane.DEFAULT, None, Report(ending=Ending.SUCCEEDED, job=replace(JOB, ready_at=None)))

    (line,), (metrics,) = said(of)

    assert "start_latency_ms" not in line
    assert "StartLatency" not in metrics


@pytest.mark.parametrize(
    ("report", "level", "counted"),
    [
        (Report(ending=Ending.RETRYING, job=JOB, error="ValueError: no"), "WARNING", {"JobsRetried"}),
        (Report(ending=Ending.DEAD, job=JOB, error="ValueError: no"), "ERROR", {"JobsDead", "JobsFailed"}),
        (Report(ending=Ending.DEAD, job=JOB, death=DeathReason.EXHAUSTED), "ERROR", {"JobsDead", "JobsFailed"}),
        (Report(ending=Ending.DEAD, job=JOB, death=DeathReason.GAVE_UP), "ERROR", {"JobsDead"}),
        (Report(ending=Ending.DEAD, job=JOB, death=DeathReason.DEADLINE), "ERROR", {"JobsDead"}),
        (Report(ending=Ending.MALFORMED), "ERROR", {"MessagesDropped"}),
        (Report(ending=Ending.RELEASED, job=JOB, error="conflict"), "WARNING", {"JobsReleased"}),
        (Report(ending=Ending.REFUSED, job=JOB, verdict=Verdict.STALE), "INFO", set()),
        (
            Report(ending=Ending.REFUSED, verdict=Verdict.LEASED, put_back_until=NOW + SECOND),
            "INFO",
            {"MessagesPutBack"},
        ),
        (
            Report(ending=Ending.UNAVAILABLE, error="no answer", put_back_until=NOW),
            "WARNING",
            {"MessagesPutBack", "StoreUnavailable"},
        ),
    ],
    ids=lambda value: getattr(value, "ending", None),
)
def test_each_ending_has_its_level_and_its_metric(said: Said, report: Report, level: str, counted: set[str]) -> None:
    of = Telemetry(stage="test")
    of.attempt_ended(Lane.DEFAULT, reference_to(JOB), report)

    (line,), metrics = said(of)

    assert (line["level"], line["message"]) == (level, report.ending.value)
    assert line.get("verdict") == report.verdict
    assert line.get("error") == report.error
    assert ("put_back_until" in line) is bool(report.put_back_until)
    names = {metric["Name"] for written in metrics for metric in written["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
    assert names - {"AttemptDuration", "StartLatency"} == counted


def test_an_exception_is_logged_with_its_traceback(said: Said) -> None:
    of = Telemetry(stage="test")
    with pytest.raises(ValueError, match="caf") as raised:
        int("caf\ud83d")
    of.attempt_ended(Lane.DEFAULT, None, Report(ending=Ending.RETRYING, job=JOB, cause=raised.value))

    (line,), _ = said(of)

    assert "ValueError" in line["exception"]


@pytest.mark.parametrize("withheld", ["", "true"])
def test_a_stage_can_withhold_the_text_of_exceptions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], withheld: str
) -> None:
    monkeypatch.setenv(Env.WITHHOLD_EXCEPTION_TEXT, withheld)
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", fresh_token())
    made = cache(outcome_log.logger.__wrapped__)
    monkeypatch.setattr(outcome_log, "logger", made)
    cause = ValueError("no such address: ada@example.com")
    cause.__cause__ = KeyError("ada@example.com")
    cause.add_note("ada@example.com")
    of = Telemetry(stage="test")
    failed = Report(ending=Ending.RETRYING, job=JOB, error=f"ValueError: {cause}", cause=cause)
    of.attempt_ended(Lane.BULK, None, failed)
    of.attempt_ended(Lane.BULK, None, Report(ending=Ending.UNAVAILABLE, job=JOB, error="ada@example.com: no response"))
    of.reconciled(Reconciled(unreadable=(UnreadableItem("a key", MalformedDocumentError("ada@example.com")),)))
    output = capsys.readouterr().out
    assert ("ada@example.com" in output) is not bool(withheld)
    line = json.loads(output.splitlines()[0])
    assert "a key" in output
    assert line["exception_name"] == "ValueError"
    if withheld:
        assert line["error"] == "ValueError"

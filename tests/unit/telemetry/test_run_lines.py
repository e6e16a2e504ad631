"""One line when a run is claimed, and one with its metrics when it has ended."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, reference_to, with_changes
from tests.unit.telemetry.conftest import Said
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.operations.reconcile import Reconciled
from tidemill.application.ports import UnreadableItem
from tidemill.application.submission.new_jobs import Accepted
from tidemill.domain.dispatch.claim_verdict import ClaimVerdict
from tidemill.domain.errors import JobTimeoutError, MalformedDocumentError
from tidemill.domain.job import CRASHED, DEADLINE_PASSED, AttemptError, DeathReason, Job
from tidemill.domain.limits.adaptive_limit import Adapted, ConcurrencyChange, RunSample, Trouble
from tidemill.domain.limits.limit_key import LimitKey
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line
from tidemill.names import CANARY_TYPE, Env, Lane
from tidemill.telemetry.outcome_log import Telemetry
from tidemill.telemetry.run_lines import RunLines

SHARED_LINE = Line.for_limit(str(LimitKey(shared="ledger", text="a")))
JOB = a_job(
    attempt=2,
    created_at=NOW - 5 * SECOND,
    ready_at=NOW - timedelta(milliseconds=1500),
    claimed_at=NOW,
)


def a_log(**changes: Any) -> RunLines:
    given: dict[str, Any] = {"lane": Lane.DEFAULT, "request_id": "r-1", "version": "v7"}
    return RunLines(telemetry=Telemetry(stage="test"), **given | changes)


def an_error(**changes: Any) -> AttemptError:
    given: dict[str, Any] = {"attempt": 1, "at": NOW, "error_class": "ValueError", "message": "no", "retryable": True}
    return AttemptError(**given | changes)


def a_success(**changes: Any) -> Report:
    given: dict[str, Any] = {"job": JOB, "settled_at": NOW + SECOND}
    return Report(ending=Ending.SUCCEEDED, **given | changes)


def metrics(line: dict[str, Any]) -> dict[str, float]:
    """Return the metrics as CloudWatch extracts them."""
    directives = line.get("_aws", {}).get("CloudWatchMetrics", [])
    return {metric["Name"]: line[metric["Name"]] for directive in directives for metric in directive["Metrics"]}


def ended(said: Said, report: Report, **changes: Any) -> dict[str, Any]:
    a_log(**changes).ended(reference_to(JOB), report)
    (line,) = said()
    return line


def test_claim_and_end_have_the_fields_of_the_run(said: Said) -> None:
    log = a_log()
    log.claimed(JOB)
    log.ended(reference_to(JOB), a_success())

    claimed, succeeded = said()
    assert [claimed["message"], succeeded["message"]] == ["claimed", "succeeded"]
    for line in (claimed, succeeded):
        named = ("job_id", "job_type", "lane", "tenant", "attempt", "generation", "trace", "request_id", "version")
        assert [line[name] for name in named] == [
            *(JOB.id, JOB.type, JOB.lane, JOB.tenant, 2, JOB.generation, JOB.trace, "r-1", "v7")
        ]


def test_a_success_carries_its_metrics(said: Said) -> None:
    assert metrics(ended(said, a_success())) == {
        "JobsSucceeded": 1,
        "AttemptDuration": 1000,
        "StartLatency": 1500,
        "JobLatency": 6000,
        "AttemptsPerSuccess": 2,
    }


def test_a_canary_that_succeeds_counts_as_no_job_of_its_lane(said: Said) -> None:
    canary = replace(JOB, type=CANARY_TYPE)
    assert metrics(ended(said, a_success(job=canary))) == {"CanaryLatency": 6000}
    Telemetry(stage="test").accepted(Accepted(job=canary, replayed=False))
    (accepted,) = said()
    assert (accepted["message"], metrics(accepted)) == ("accepted", {})


def test_a_canary_that_came_too_late_counts_nowhere(said: Said) -> None:
    late = Report(ending=Ending.CANCELLED, job=replace(JOB, type=CANARY_TYPE), settled_at=NOW + SECOND)
    assert metrics(ended(said, late)) == {}


def test_a_canary_that_dies_counts_as_any_job(said: Said) -> None:
    died = Report(ending=Ending.DEAD, job=replace(JOB, type=CANARY_TYPE), settled_at=NOW + SECOND)
    assert metrics(ended(said, died))["JobsDead"] == 1


def test_a_delay_that_the_caller_asked_for_adds_no_latency(said: Said) -> None:
    job = replace(JOB, run_at=NOW - 2 * SECOND)

    assert ended(said, a_success(job=job))["JobLatency"] == 3000


def test_a_job_without_ready_at_has_no_start_latency(said: Said) -> None:
    assert "StartLatency" not in ended(said, a_success(job=with_changes(JOB, ready_at=None)))


def test_a_success_after_failures_says_how_long_it_took_to_recover(said: Said) -> None:
    job = replace(JOB, errors=(an_error(at=NOW - 4 * SECOND), an_error(attempt=2)))
    assert ended(said, a_success(job=job))["TimeToRecover"] == 5000

    lost = an_error(at=NOW, error_class=CRASHED)
    line = ended(said, a_success(errors=(lost,)))
    assert (line["TimeToRecover"], line["ErrorsCrash"]) == (1000, 1)


@pytest.mark.parametrize(
    ("error", "metric"),
    [
        (an_error(), "ErrorsTransient"),
        (an_error(retryable=False), "ErrorsPermanent"),
        (an_error(error_class=JobTimeoutError.__name__), "ErrorsTimeout"),
        (an_error(error_class=JobTimeoutError.__name__, retryable=False), "ErrorsTimeout"),
        (an_error(error_class=CRASHED), "ErrorsCrash"),
        (an_error(error_class=CRASHED, retryable=False), "ErrorsOther"),
        (an_error(error_class=DEADLINE_PASSED, retryable=False), "ErrorsOther"),
    ],
)
def test_each_kind_of_error_has_a_metric(said: Said, error: AttemptError, metric: str) -> None:
    line = ended(said, Report(ending=Ending.DEAD, job=JOB, settled_at=NOW, errors=(error,)))

    assert [name for name in metrics(line) if name.startswith("Errors")] == [metric]


def test_a_failure_says_when_it_is_tried_again(said: Said) -> None:
    error = an_error(next_due=NOW + 9 * SECOND)
    line = ended(said, Report(ending=Ending.RETRYING, job=JOB, settled_at=NOW, errors=(error,), error="ValueError: no"))

    assert (line["level"], line["JobsRetried"], line["RetryInterval"]) == ("WARNING", 1, 9000)


@pytest.mark.parametrize(
    ("report", "level", "counted"),
    [
        (Report(ending=Ending.DEAD, job=JOB, error="ValueError: no"), "ERROR", {"JobsDead", "JobsFailed"}),
        (Report(ending=Ending.DEAD, job=JOB, death=DeathReason.EXHAUSTED), "ERROR", {"JobsDead", "JobsFailed"}),
        (Report(ending=Ending.DEAD, job=JOB, death=DeathReason.GAVE_UP), "ERROR", {"JobsDead"}),
        (Report(ending=Ending.DEAD, job=JOB, death=DeathReason.DEADLINE), "ERROR", {"JobsDead"}),
        (Report(ending=Ending.MALFORMED, error="no JSON"), "ERROR", {"MessagesDropped"}),
        (Report(ending=Ending.RELEASED, job=JOB, error="conflict"), "WARNING", {"JobsReleased"}),
        (Report(ending=Ending.FENCED, job=JOB, verdict=ClaimVerdict.STALE), "INFO", {"RunsFenced"}),
        (
            Report(ending=Ending.REFUSED, job=JOB, verdict=ClaimVerdict.STALE),
            "INFO",
            {"MessagesRefused", "MessagesDuplicate"},
        ),
        (
            Report(ending=Ending.REFUSED, verdict=ClaimVerdict.EARLY, put_back_until=NOW + SECOND),
            "INFO",
            {"MessagesRefused", "MessagesPutBack"},
        ),
        (
            Report(ending=Ending.UNAVAILABLE, error="no answer", put_back_until=NOW),
            "WARNING",
            {"MessagesPutBack", "StoreUnavailable"},
        ),
        (Report(ending=Ending.REDRIVEN, job=JOB), "INFO", set()),
    ],
    ids=lambda value: getattr(value, "ending", None),
)
def test_each_ending_has_its_level_and_its_metrics(said: Said, report: Report, level: str, counted: set[str]) -> None:
    line = ended(said, report)

    assert (line["level"], line["message"]) == (level, report.ending.value)
    assert line.get("verdict") == report.verdict
    assert line.get("error") == report.error
    assert ("put_back_until" in line) is bool(report.put_back_until)
    assert metrics(line).keys() == counted


def test_a_follow_up_job_is_accepted_on_its_lane(said: Said) -> None:
    follow_up = a_job(lane=Lane.BULK)
    a_log().ended(reference_to(JOB), a_success(follow_ups=(follow_up,)))

    succeeded, accepted = said()
    assert (accepted["message"], accepted["job_id"], accepted["lane"]) == ("accepted", follow_up.id, "bulk")
    assert (accepted["JobsAdded"], "JobsAdded" in succeeded) == (1, False)


def test_types_have_metrics_only_where_the_stage_says_so(said: Said) -> None:
    plain = ended(said, a_success())
    named = ended(said, a_success(), measured_types={JOB.type})
    folded = ended(said, a_success(), measured_types=set())

    assert [directive["Dimensions"] for directive in plain["_aws"]["CloudWatchMetrics"]] == [[["stage", "lane"]]]
    by_type, by_lane = named["_aws"]["CloudWatchMetrics"]
    assert by_type["Dimensions"] == [["stage", "lane"], ["stage", "type"]]
    assert {metric["Name"] for metric in by_type["Metrics"]} == {
        *("JobsSucceeded", "AttemptDuration", "StartLatency", "AttemptsPerSuccess")
    }
    assert by_lane == {
        "Namespace": "Tidemill",
        "Dimensions": [["stage", "lane"]],
        "Metrics": [{"Name": "JobLatency"}],
    }
    assert (named["type"], folded["type"], "type" in plain) == (JOB.type, "other", False)


def failure(text: str = "no such address", depth: int = 30) -> Exception:
    def descend(levels: int) -> None:
        if levels == 0:
            raise ValueError(text)
        descend(levels - 1)

    try:
        descend(depth)
    except ValueError as raised:
        return raised
    raise AssertionError("it raises")


@pytest.mark.parametrize(
    "text",
    ["x" * 1000, "\N{SNOWMAN}" * 1000, "\x07" * 1000, "caf\ud83d" * 300],
    ids=["long", "unicode", "escaped", "surrogates"],
)
def test_a_failed_attempt_writes_two_kilobytes_at_most(
    capsys: pytest.CaptureFixture[str], said: Said, text: str
) -> None:
    assert said() == []
    job = replace(JOB, id="8" * 36, tenant="t" * 40, type="report.build", trace="0" * 55)
    error = an_error(next_due=NOW + SECOND)
    log = a_log(request_id="r" * 36, version="v" * 8)
    log.claimed(job)
    cause = failure(text)
    log.ended(
        reference_to(job),
        Report(
            ending=Ending.RETRYING,
            job=job,
            settled_at=NOW,
            errors=(error,),
            error=f"ValueError: {text[:500]}",
            cause=cause,
        ),
    )

    written = capsys.readouterr().out.encode()
    assert len(written) <= 2048
    line = json.loads(written.splitlines()[1])
    assert line["exception_name"] == "ValueError"
    assert "ValueError" in line["exception"]


def test_a_traceback_is_written_once(said: Said) -> None:
    line = ended(said, Report(ending=Ending.RETRYING, job=JOB, error="ValueError: no", cause=failure()))

    assert json.dumps(line).count("in descend") == line["exception"].count("in descend")
    assert line["exception"].endswith("ValueError: no such address")


def test_lines_of_many_threads_stay_whole(said: Said) -> None:
    log = a_log()
    jobs = [a_job(attempt=1, claimed_at=NOW) for _ in range(10)]

    def write(job: Job) -> None:
        for _ in range(50):
            log.ended(reference_to(job), a_success(job=job))

    with ThreadPoolExecutor(len(jobs)) as pool:
        list(pool.map(write, jobs))

    lines = said()
    assert sum(line["JobsSucceeded"] for line in lines) == 500
    assert {line["job_id"] for line in lines} == {job.id for job in jobs}


@pytest.mark.parametrize("withheld", ["", "true"])
def test_a_stage_can_withhold_the_text_of_exceptions(
    monkeypatch: pytest.MonkeyPatch, said: Said, withheld: str
) -> None:
    monkeypatch.setenv(Env.WITHHOLD_EXCEPTION_TEXT, withheld)
    cause = failure("ada@example.com")
    cause.__cause__ = KeyError("ada@example.com")
    cause.add_note("ada@example.com")
    log = a_log()
    log.ended(None, Report(ending=Ending.RETRYING, job=JOB, error=f"ValueError: {cause}", cause=cause))
    log.ended(None, Report(ending=Ending.UNAVAILABLE, job=JOB, error="ada@example.com: no response"))
    log.telemetry.reconciled(
        Reconciled(unreadable=(UnreadableItem("a key", MalformedDocumentError("ada@example.com")),))
    )

    lines = said()
    assert ("ada@example.com" in json.dumps(lines)) is not bool(withheld)
    assert "a key" in json.dumps(lines)
    assert lines[0]["exception_name"] == "ValueError"
    if withheld:
        assert lines[0]["error"] == "ValueError"


def test_a_decrease_of_an_adaptive_concurrency_is_a_line_with_its_inputs(said: Said) -> None:
    sample = RunSample(entered=Adapted(allowed=10, falls=2), taken=9, seconds=1.5)
    lowered = Adapted(allowed=7, falls=3, fell_at=NOW, why=Trouble.SLOW)

    a_log(measured_types={JOB.type}).lowered(JOB, SHARED_LINE, ConcurrencyChange(lowered=lowered, sample=sample))

    (line,) = said()
    assert (line["message"], line["level"], line["job_id"]) == ("concurrency lowered", "WARNING", JOB.id)
    inputs = {name: line[name] for name in ("limit", "why", "allowed", "allowed_before", "in_use", "seconds", "falls")}
    assert inputs == {
        "limit": 'shared limit ledger ["limit:ledger", "a"]',
        "why": "slow",
        "allowed": 7,
        "allowed_before": 10,
        "in_use": 9,
        "seconds": 1.5,
        "falls": 3,
    }
    assert metrics(line) == {"ConcurrencyLowered": 1}


def test_an_increase_writes_no_line(said: Said) -> None:
    a_log().lowered(
        JOB, SHARED_LINE, ConcurrencyChange(step=1, sample=RunSample(entered=Adapted(allowed=1), taken=1, seconds=0))
    )

    assert said() == []

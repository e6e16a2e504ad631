"""`tidemill logs`: the lines of one job, from all functions, in the order of time."""

import json
from datetime import datetime, timedelta
from typing import Any

import click
import pytest

from tests.integration.cli.conftest import Cloud, pipeline, run
from tests.integration.cli.loopback import Stack
from tests.support.builders import TENANT, brought_to
from tidemill.aws import clients
from tidemill.domain.states import State
from tidemill.system import clock, ids

GROUPS = {"submit": "submit-logs", "work": "work-logs"}


class Logged:
    """The log groups of a stage."""

    def __init__(self) -> None:
        self.now = clock.now()
        for group in (*GROUPS.values(), "shorten-logs"):
            clients.logs().create_log_group(logGroupName=group)
            clients.logs().create_log_stream(logGroupName=group, logStreamName="stream")

    def write(self, group: str, *lines: dict[str, Any] | str, ended: timedelta = timedelta(0)) -> None:
        """In one event each, all with the time of their invocation's end, as on the embedded AWS."""
        at = round((self.now + ended).timestamp() * 1000)
        events: Any = [
            {"timestamp": at, "message": line if isinstance(line, str) else json.dumps(line)} for line in lines
        ]
        clients.logs().put_log_events(logGroupName=group, logStreamName="stream", logEvents=events)

    def line(self, job_id: str, message: str, second: float, **fields: Any) -> dict[str, Any]:
        written = self.now + timedelta(seconds=second)
        # Powertools writes the time so.
        text = f"{written:%Y-%m-%d %H:%M:%S},{written.microsecond // 1000:03}+0000"
        return {"level": "INFO", "message": message, "timestamp": text, "job_id": job_id, "tenant": TENANT, **fields}


@pytest.fixture
def job_id() -> str:
    return ids.new_job_id()


@pytest.fixture
def logged(cloud: Cloud) -> Logged:
    (stack, shortener) = cloud.server.stacks
    cloud.server.stacks = [
        Stack(stack.name, {**stack.outputs, "LogGroups": json.dumps(GROUPS)}),
        Stack(shortener.name, {**shortener.outputs, "LogGroups": json.dumps({"shorten": "shorten-logs"})}),
        Stack("other-stage", {"LogGroups": '{"work": "other"}'}, {"tidemill:app": "tidemill", "tidemill:stage": "b"}),
    ]
    return Logged()


def shown(*arguments: str) -> list[str]:
    result = run("logs", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


def test_the_lines_of_all_functions_are_in_the_order_in_which_they_were_written(logged: Logged, job_id: str) -> None:
    logged.write(GROUPS["work"], logged.line(job_id, "claimed", 2), logged.line(job_id, "succeeded", 3))
    logged.write(GROUPS["submit"], logged.line(job_id, "accepted", 1), ended=timedelta(seconds=9))
    logged.write("shorten-logs", logged.line(job_id, "replayed", 2.5))

    lines = shown(job_id)

    assert [line.split()[1:4] for line in lines] == [
        ["submit", "INFO", "accepted"],
        ["work", "INFO", "claimed"],
        ["shorten", "INFO", "replayed"],
        ["work", "INFO", "succeeded"],
    ]


def test_lines_of_other_jobs_are_left_out_and_text_that_names_the_job_is_not(logged: Logged, job_id: str) -> None:
    other = ids.new_job_id()
    logged.write(
        GROUPS["work"],
        logged.line(job_id, "own", 0),
        logged.line(other, "other", 1),
        logged.line(other, "follows", 1, parent=job_id),
        f"text about {job_id}",
        json.dumps({"message": "unreadable items", "errors": {f"{TENANT}#{job_id}": "broken"}}),
        "text about nothing",
    )

    own, text, items = shown(job_id)
    assert (own.split()[-1], text.split()[-1]) == ("own", job_id)
    assert "unreadable items" in items
    assert job_id in items


def test_a_line_shows_its_level_attempt_message_and_other_fields(logged: Logged, job_id: str) -> None:
    at = logged.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = logged.line(job_id, "retrying", 0, level="WARNING", attempt=2, error="ValueError: no such thing", n=9)
    names = [{"Name": "JobsRetried"}, {"Name": "AttemptDuration"}]
    metrics = {"_aws": {"CloudWatchMetrics": [{"Metrics": names}]}, "JobsRetried": 1, "AttemptDuration": 12}
    logged.write(GROUPS["work"], line | metrics | {"exception": "Traceback\n  boom\x1b[2J", "trace": "t", "stage": "s"})

    assert shown(job_id) == [
        f'{at}  work            WARNING attempt 2  retrying  error="ValueError: no such thing" n=9 AttemptDuration=12',
        "    Traceback",
        "      boom\\x1b[2J",
    ]


@pytest.mark.parametrize("form", [{"_aws": 1}, {"_aws": {"CloudWatchMetrics": [{}]}}, {"timestamp": 5}, {"level": 1}])
def test_a_line_of_any_form_is_shown(logged: Logged, job_id: str, form: dict[str, Any]) -> None:
    logged.write(GROUPS["work"], {"job_id": job_id, "message": {"a": 1}} | form)

    assert len(shown(job_id)) == 1


def test_a_line_with_metrics_is_ordered_by_their_time(logged: Logged, job_id: str) -> None:
    first, second = logged.line(job_id, "first", 0), logged.line(job_id, "second", 1)
    second_ms = round(datetime.fromisoformat(second.pop("timestamp")).timestamp() * 1000)
    logged.write(GROUPS["work"], second | {"_aws": {"Timestamp": second_ms}}, first)

    assert [line.split()[-1] for line in shown(job_id)] == ["first", "second"]


def test_a_time_in_a_line_that_cannot_be_that_of_its_writing_does_not_order_it(logged: Logged, job_id: str) -> None:
    logged.write(GROUPS["work"], logged.line(job_id, "first", 0), logged.line(job_id, "second", -3600))

    assert [line.split()[-1] for line in shown(job_id)] == ["first", "second"]


def test_repeated_lines_are_all_shown(logged: Logged, job_id: str) -> None:
    logged.write(GROUPS["work"], *[logged.line(job_id, "tick", 0)] * 3)

    assert len(shown(job_id)) == 3


def test_json_has_time_function_and_the_line(logged: Logged, job_id: str) -> None:
    line = logged.line(job_id, "accepted", 0)
    logged.write(GROUPS["submit"], line, f"text {job_id}")

    first, second = map(json.loads, shown(job_id, "--json"))

    assert first == {"at": first["at"], "function": "submit", "line": line}
    assert datetime.fromisoformat(first["at"]) <= logged.now
    assert second["line"] == f"text {job_id}"


def test_since_bounds_the_search(logged: Logged, job_id: str) -> None:
    logged.write(GROUPS["work"], logged.line(job_id, "early", -7200), ended=timedelta(hours=-2))
    logged.write(GROUPS["work"], logged.line(job_id, "late", 0))

    assert [line.split()[-1] for line in shown(job_id)] == ["late"]
    assert [line.split()[-1] for line in shown(job_id, "--since", "3h")] == ["early", "late"]


def test_a_job_of_an_idempotency_key_is_searched_since_its_submission(logged: Logged, cloud: Cloud) -> None:
    job_id = "00000000-0000-5000-8000-000000000000"
    logged.write(GROUPS["work"], logged.line(job_id, "early", -7200), ended=timedelta(hours=-48))
    cloud.server.answers(200, {"created_at": (logged.now - timedelta(hours=49)).isoformat()})

    assert len(shown(job_id)) == 1


def test_a_job_of_an_idempotency_key_of_another_tenant_is_searched_for_a_day(logged: Logged, cloud: Cloud) -> None:
    job_id = "00000000-0000-5000-8000-000000000000"
    logged.write(GROUPS["work"], logged.line(job_id, "early", -7200), ended=timedelta(hours=-2))
    cloud.server.answers(404, {"type": "urn:tidemill:problem:not-found", "title": "no", "status": 404})

    result = run("logs", job_id)
    assert len(result.stdout.splitlines()) == 1
    assert "only the last 24 hours are searched" in result.stderr


def test_without_lines_stdout_is_empty(logged: Logged, job_id: str) -> None:
    result = run("logs", job_id)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No log line since" in result.stderr


def test_a_function_that_has_no_log_group_yet_has_no_lines(logged: Logged, job_id: str) -> None:
    clients.logs().delete_log_group(logGroupName=GROUPS["work"])
    logged.write(GROUPS["submit"], logged.line(job_id, "accepted", 0))

    assert len(shown(job_id)) == 1


def test_text_that_is_not_an_id_is_wrong_usage(logged: Logged) -> None:
    result = run("logs", 'a" ?b')
    assert result.exit_code == 2
    assert "is not the ID of a job" in result.stderr


def test_a_deployment_without_the_output_is_an_error(cloud: Cloud, job_id: str) -> None:
    cloud.server.stacks = [pipeline(cloud.table.name, "{}")]
    result = run("logs", job_id)
    assert result.exit_code == 1
    assert "LogGroups" in result.stderr


def test_follow_shows_new_lines_once_and_ends_when_an_ended_job_is_quiet(
    logged: Logged, cloud: Cloud, environment: pytest.MonkeyPatch
) -> None:
    job = brought_to(cloud.store, State.DEAD, id=ids.new_job_id())
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) in {1, 4}:
            logged.write(GROUPS["work"], logged.line(job.id, f"round {len(pauses)}", len(pauses)))

    environment.setattr("tidemill.cli.explain.logs.sleep", pause)
    logged.write(GROUPS["submit"], logged.line(job.id, "accepted", 0, tenant=job.tenant))

    lines = shown(job.id, "--follow")

    assert [" ".join(line.split()[3:]) for line in lines] == ["accepted", "round 1", "round 4"]
    # Three quiet rounds, counted anew after a line.
    assert pauses == [5.0] * 7


def test_follow_waits_for_a_job_that_is_alive(logged: Logged, cloud: Cloud, environment: pytest.MonkeyPatch) -> None:
    job = brought_to(cloud.store, State.QUEUED, id=ids.new_job_id())
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 10:
            cloud.store.cancel(job, now=clock.now())

    environment.setattr("tidemill.cli.explain.logs.sleep", pause)
    logged.write(GROUPS["submit"], logged.line(job.id, "accepted", 0, tenant=job.tenant))

    shown(job.id, "--follow")

    assert len(pauses) == 12


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_the_same_text(logged: Logged, job_id: str) -> None:
    logged.write(GROUPS["submit"], logged.line(job_id, "[bold]accepted\x1b[2J", 0))

    assert click.unstyle("".join(shown(job_id))).endswith("[bold]accepted\\x1b[2J")

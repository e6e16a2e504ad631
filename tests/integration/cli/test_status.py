"""`status`: depths from SQS, ages from CloudWatch, dead jobs from the job documents."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import click
import pytest

from tests.integration.cli.conftest import Cloud, pipeline, run
from tests.support.builders import brought_to
from tidemill.aws import clients
from tidemill.domain.states import State
from tidemill.names import Lane


def _age_of_oldest(seconds: float, *, minutes_ago: float) -> None:
    at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    clients.cloudwatch().put_metric_data(
        Namespace="AWS/SQS",
        MetricData=[
            {
                "MetricName": "ApproximateAgeOfOldestMessage",
                "Dimensions": [{"Name": "QueueName", "Value": "queue"}],
                "Timestamp": at,
                "Value": seconds,
            }
        ],
    )


def test_an_idle_installation_shows_zeros_and_a_dash(cloud: Cloud) -> None:
    result = run("status")
    assert result.exit_code == 0
    titles, lane, *counted = result.stdout.splitlines()
    assert titles == "LANE     WAITING  DELAYED  IN FLIGHT  OLDEST  DLQ MESSAGES"
    assert lane.split() == ["default", "0", "0", "0", "–", "0"]  # noqa: RUF001
    assert counted == ["0 scheduled jobs", "0 dead jobs"]
    assert result.stderr == "dev-Pipeline in eu-west-1\n"


def test_depths_age_and_dead_jobs_are_shown_with_the_next_command(cloud: Cloud) -> None:
    sqs = clients.sqs()
    for delay in (0, 0, 0, 60):
        sqs.send_message(QueueUrl=cloud.queue, MessageBody="x", DelaySeconds=delay)
    sqs.receive_message(QueueUrl=cloud.queue, MaxNumberOfMessages=1)
    cloud.dead_job()
    _age_of_oldest(7300, minutes_ago=4)
    _age_of_oldest(190, minutes_ago=1.5)
    result = run("status")
    _, lane, _, dead = result.stdout.splitlines()
    assert lane.split() == ["default", "2", "1", "1", "3m", "1"]
    assert dead == "1 dead job"
    assert "The dead-letter queue of default is not empty: `tidemill dlq list`" in result.stderr


def test_the_periodic_types_are_shown_with_their_schedules(cloud: Cloud) -> None:
    outputs = {"Schedules": '{"reports.nightly": "cron(0 3 * * ? *)"}'}
    stacks = cloud.server.stacks
    cloud.server.stacks = [replace(stack, outputs={**stack.outputs, **outputs}) for stack in stacks]
    *_, title, line = run("status").stdout.splitlines()
    assert re.split(" {2,}", title) == ["PERIODIC TYPE", "SCHEDULE (UTC)"]
    assert re.split(" {2,}", line) == ["reports.nightly", "cron(0 3 * * ? *)"]


def test_an_empty_lane_has_no_age(cloud: Cloud) -> None:
    _age_of_oldest(190, minutes_ago=1.5)
    assert json.loads(run("status", "--json").stdout)["lanes"][0]["oldest_seconds"] is None


def test_an_old_age_is_null(cloud: Cloud) -> None:
    clients.sqs().send_message(QueueUrl=cloud.queue, MessageBody="x")
    _age_of_oldest(190, minutes_ago=30)
    assert json.loads(run("status", "--json").stdout)["lanes"][0]["oldest_seconds"] is None


def test_dead_jobs_without_dlq_messages_are_reported(cloud: Cloud) -> None:
    cloud.dead_job(dead_letter=False)
    assert "every dead-letter queue is empty" in run("status").stderr


def test_json_is_one_object(cloud: Cloud) -> None:
    cloud.dead_job()
    brought_to(cloud.store, State.SCHEDULED)
    clients.sqs().send_message(QueueUrl=cloud.queue, MessageBody="x")
    _age_of_oldest(190, minutes_ago=1.5)
    assert json.loads(run("status", "--json").stdout) == {
        "stack": "dev-Pipeline",
        "region": "eu-west-1",
        "lanes": [
            {
                "lane": "default",
                "waiting": 1,
                "delayed": 0,
                "in_flight": 0,
                "oldest_seconds": 190,
                "dlq_messages": 1,
            }
        ],
        "scheduled_jobs": 1,
        "scheduled_jobs_exact": True,
        "dead_jobs": 1,
        "dead_jobs_exact": True,
        "blocked_groups": 0,
        "schedules": {},
    }


def test_counting_stops_at_the_limit(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.cli.status._COUNT_LIMIT", 2)
    for _ in range(3):
        cloud.dead_job()
        brought_to(cloud.store, State.SCHEDULED)
    assert run("status").stdout.splitlines()[-2:] == ["more than 2 scheduled jobs", "more than 2 dead jobs"]


def test_groups_blocked_by_a_dead_job_are_counted(cloud: Cloud) -> None:
    for group, blocks in (("a", True), ("b", True), ("c", False), (None, False)):
        cloud.dead_job(group=group, blocks=blocks)
    assert run("status").stdout.splitlines()[-1] == "4 dead jobs, 2 groups blocked by a dead job"


def test_every_lane_has_a_line(cloud: Cloud) -> None:
    urls = {"queue": cloud.queue, "dead_letters": cloud.dead_letters}
    cloud.server.stacks = [pipeline(cloud.table.name, json.dumps(dict.fromkeys(Lane, urls)))]
    lines = run("status").stdout.splitlines()[1:-2]
    assert [line.split()[0] for line in lines] == ["critical", "default", "bulk"]


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_the_lanes_as_a_table(cloud: Cloud) -> None:
    lines = click.unstyle(run("status").stdout).splitlines()
    assert max(map(len, lines)) <= 80
    assert set(lines[1]) == {"─"}

"""`status` and `top`: queues, metrics, resources against the template, and counts of the attention index."""

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest

from stacks.composition import ROOT
from tests.integration.cli.called_functions import deploy
from tests.integration.cli.conftest import Cloud, pipeline, run
from tests.support.builders import a_job, brought_to
from tests.support.parked_jobs import enter, park
from tidemill.aws import clients
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.dispatch.owed_items import owed_partitions
from tidemill.dynamodb.document import key
from tidemill.dynamodb.indexes import attention_partition
from tidemill.dynamodb.limits.limit_item import LINE_SHARDS
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.metrics import Metric
from tidemill.names import (
    ATTENTION_KEY,
    ATTENTION_SORT_KEY,
    CANARY_TYPE,
    CONFIGURATION_KEY,
    INDEX_SHARDS,
    LARGEST_INDEX_SHARDS,
    Lane,
)
from tidemill.operator.status.system_status import NEWEST_DEAD


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
    resources, alarms, titles, lane, *counted = result.stdout.splitlines()
    assert resources == "0 of 0 resources are as the template says"
    assert alarms == "No alarms here: the stacks have none"
    assert titles == "LANE     WAITING  DELAYED  IN FLIGHT  OLDEST  DLQ MESSAGES"
    assert lane.split() == ["default", "0", "0", "0", "–", "0"]  # noqa: RUF001
    assert counted == [
        "No metrics here: CloudWatch has none of this installation, so flows and burn rates are unknown.",
        "0 scheduled jobs",
        "0 parked jobs",
        "0 dead jobs",
        "0 waiting jobs in all 0 items of the table",
    ]
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
    lines = result.stdout.splitlines()
    assert lines[3].split() == ["default", "2", "1", "1", "3m", "1"]
    assert "1 dead job" in lines
    assert any("`tidemill dlq summary`" in line for line in lines)


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
    assert "every dead-letter queue is empty" in run("status").stdout


def test_json_is_one_object(cloud: Cloud) -> None:
    dead = cloud.dead_job()
    brought_to(cloud.store, State.SCHEDULED)
    clients.sqs().send_message(QueueUrl=cloud.queue, MessageBody="x")
    _age_of_oldest(190, minutes_ago=1.5)
    assert json.loads(run("status", "--json").stdout) == {
        "stack": "dev-Pipeline",
        "region": "eu-west-1",
        "alarms": {"number": 0, "incident": False, "firing": []},
        "burn_rates": [],
        "resources": [],
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
        "flow": None,
        "scheduled_jobs": 1,
        "scheduled_jobs_exact": True,
        "parked_jobs": 0,
        "parked_jobs_exact": True,
        "pauses": [],
        "overrides": [],
        "strain": None,
        "governed_strain": {"level": 0, "since": None, "late": 0, "starts": 0},
        "breakers": [],
        "lowered_limits": [],
        "rolled_back": [],
        "parked_lines": [],
        "dead_jobs": 1,
        "dead_jobs_exact": True,
        "owed_records": 0,
        "owed_records_exact": True,
        "newest_dead_jobs": [
            {"id": dead.id, "tenant": dead.tenant, "type": "test.job", "lane": "default", "error": "ValueError"}
        ],
        "blocked_groups": 0,
        "waiting_sample": {"items": 2, "whole": True, "types": {}, "tenants": {}},
        "schedules": {},
        "unread": {},
    }


@pytest.mark.usefixtures("cloud")
def test_the_members_of_the_json_are_documented() -> None:
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    section = reference.partition("## `status --json`")[2].partition("\n## ")[0]
    documented = {
        name for cell in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall("`(.*?)`", cell)
    }
    members = json.loads(run("status", "--json").stdout).keys()
    assert documented == {name for name in members if not name.endswith("_exact")}


def test_counting_stops_at_the_limit(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.dynamodb.operations.attention_counts.MOST_COUNTED", 1)
    for _ in range(10):
        cloud.dead_job()
        brought_to(cloud.store, State.SCHEDULED)
    found = json.loads(run("status", "--json").stdout)
    assert 1 <= found["dead_jobs"] <= INDEX_SHARDS
    assert not found["dead_jobs_exact"]
    assert f"more than {found['dead_jobs']} dead jobs" in run("status").stdout


def _copies(cloud: Cloud, dead: Job, number: int) -> None:
    """More dead jobs, which died one after another before this one, in all partitions of the index."""
    item = cloud.table.item(dead) or {}
    died_ms = int(item[ATTENTION_SORT_KEY]["N"])
    copies = []
    for each in range(number):
        partition, died = attention_partition(State.DEAD, each % INDEX_SHARDS), {"N": str(died_ms - 1 - each)}
        changes = {ATTENTION_KEY: {"S": partition}, ATTENTION_SORT_KEY: died, "finished_at": died}
        copies.append(item | key(dead.tenant, f"copy-{each}") | changes)
    for start in range(0, number, 25):
        puts: Any = [{"PutRequest": {"Item": copy}} for copy in copies[start : start + 25]]
        clients.dynamodb().batch_write_item(RequestItems={cloud.table.name: puts})


@pytest.fixture
def reads(cloud: Cloud) -> Counter[str]:
    """What the command has read: calls by operation, and the items that DynamoDB read for them."""
    found: Counter[str] = Counter()

    def note(model: Any, parsed: Any, **_: object) -> None:
        batches = parsed.get("Responses", {}).values()
        found[model.name] += 1
        found["items"] += parsed.get("ScannedCount", 0) + sum(map(len, batches)) + ("Item" in parsed)

    clients.dynamodb().meta.events.register("after-call.dynamodb", note)
    return found


def test_more_dead_jobs_cost_neither_calls_nor_items(
    cloud: Cloud, reads: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So 100,000 of them take as long as these."""
    monkeypatch.setattr("tidemill.dynamodb.operations.attention_counts.MOST_COUNTED", 20)
    monkeypatch.setattr("tidemill.dynamodb.passes.job_sample._ITEMS", 50)
    dead, costs = cloud.dead_job(dead_letter=False), []
    for number in (100, 700):
        _copies(cloud, dead, number)
        reads.clear()
        found = json.loads(run("status", "--json").stdout)
        costs.append(dict(reads))
        assert (found["dead_jobs"], found["dead_jobs_exact"]) == (INDEX_SHARDS * 20, False)
        # The newest ones of all partitions.
        newest = [job["id"] for job in found["newest_dead_jobs"]]
        assert newest[:4] == [dead.id, "copy-0", "copy-1", "copy-2"]
        assert len(newest) == NEWEST_DEAD
    few, many = costs
    assert few == many
    assert many["items"] == INDEX_SHARDS * 20 + NEWEST_DEAD + 50
    assert many["BatchGetItem"] == 1
    # One for each partition of dead jobs, of scheduled jobs, of owed work and of the lines of parked jobs.
    assert many["Query"] == 2 * LARGEST_INDEX_SHARDS + len(owed_partitions()) + LINE_SHARDS


def test_the_configuration_is_read_once(cloud: Cloud) -> None:
    read: list[str] = []
    clients.dynamodb().meta.events.register(
        "provide-client-params.dynamodb.GetItem", lambda params, **_: read.append(str(params["Key"]))
    )
    run("status")
    assert len([key for key in read if CONFIGURATION_KEY in key]) == 1


def test_groups_blocked_by_a_dead_job_are_counted(cloud: Cloud) -> None:
    for group, blocks in (("a", True), ("b", True), ("c", False), (None, False)):
        cloud.dead_job(group=group, blocks=blocks)
    assert "4 dead jobs, 2 groups blocked by a dead job" in run("status").stdout.splitlines()


def test_everything_as_in_the_template_is_one_line(cloud: Cloud) -> None:
    cloud.server.stacks[0] = deploy(cloud.server.stacks[0], cloud.resources)
    assert run("status").stdout.splitlines()[0] == "3 of 3 resources are as the template says"


def test_a_disabled_publisher_comes_first_with_its_command(cloud: Cloud) -> None:
    """Its lanes are empty and no job is dead, so nothing else shows it."""
    cloud.server.stacks[0] = deploy(cloud.server.stacks[0], cloud.resources)
    cloud.resources.mappings["uuid-publish"]["State"] = "Disabled"
    stopped, remedy, *_ = run("status").stdout.splitlines()
    assert stopped == (
        "STOPPED: the event source mapping of publish is disabled, "
        "so accepted, retried and continued jobs are not sent to their lanes."
    )
    assert remedy == "  tidemill repair"


@pytest.mark.usefixtures("terminal")
def test_a_stopped_resource_is_red(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    cloud.server.stacks[0] = deploy(cloud.server.stacks[0], cloud.resources)
    cloud.resources.mappings["uuid-publish"]["State"] = "Disabled"
    line = next(line for line in run("status").stdout.splitlines() if "STOPPED" in line)
    assert line.startswith("\x1b[1;31m")


def test_a_disabled_schedule_has_its_consequence(cloud: Cloud) -> None:
    cloud.server.stacks[0] = deploy(cloud.server.stacks[0], cloud.resources)
    cloud.resources.schedules["default", "wake-1"]["State"] = "DISABLED"
    stopped, remedy, *_ = run("status").stdout.splitlines()
    assert stopped == "STOPPED: the schedule of wake part 0 is disabled, so scheduled and parked jobs do not start."
    assert remedy == "  tidemill repair"


def test_a_deleted_mapping_and_a_changed_setting_are_shown(cloud: Cloud) -> None:
    cloud.server.stacks[0] = deploy(cloud.server.stacks[0], cloud.resources)
    del cloud.resources.mappings["uuid-publish"]
    cloud.resources.mappings["uuid-work"]["ScalingConfig"] = {"MaximumConcurrency": 2}
    text = run("status").stdout
    assert "STOPPED: the event source mapping of publish does not exist" in text
    assert (
        "The event source mapping of work differs: "
        'ScalingConfig is {"MaximumConcurrency": 2}, and the template says {"MaximumConcurrency": 5}.'
    ) in text


def test_inflow_and_outflow_come_from_our_metrics(cloud: Cloud) -> None:
    for metric, values in {Metric.SUBMITTED: (3, 4), Metric.SUCCEEDED: (2,)}.items():
        for minutes, value in enumerate(values, 1):
            clients.cloudwatch().put_metric_data(
                Namespace="Tidemill",
                MetricData=[
                    {
                        "MetricName": metric,
                        "Dimensions": [{"Name": "stage", "Value": "dev"}, {"Name": "lane", "Value": "default"}],
                        "Timestamp": datetime.now(UTC) - timedelta(minutes=minutes),
                        "Value": value,
                    }
                ],
            )
    clients.cloudwatch().put_metric_data(
        Namespace="AWS/SQS",
        MetricData=[
            {
                "MetricName": "NumberOfMessagesSent",
                "Dimensions": [{"Name": "QueueName", "Value": "queue"}],
                "Timestamp": datetime.now(UTC) - timedelta(minutes=1),
                "Value": 5,
            }
        ],
    )
    lines = run("status").stdout.splitlines()
    titles = next(line for line in lines if line.startswith("LAST 5M"))
    assert re.split(" {2,}", titles)[1:] == ["SUBMITTED", "ADDED", "SENT", "SUCCEEDED", "RETRIED", "DEAD", "CANCELLED"]
    assert lines[lines.index(titles) + 1].split() == ["default", "7", "0", "5", "2", "0", "0", "0"]


def test_types_and_tenants_of_waiting_jobs_come_from_a_sample(cloud: Cloud) -> None:
    for number in range(3):
        cloud.store.insert_if_absent(a_job(tenant="a:flooder" if number else "a:quiet", type="mail.send"))
    cloud.store.insert_if_absent(a_job(tenant="a:canary", type=CANARY_TYPE))
    lines = run("status").stdout.splitlines()
    assert "3 waiting jobs in all 4 items of the table" in lines
    rows = lines[lines.index(next(line for line in lines if line.startswith("WAITING TENANT"))) + 1 :]
    assert [row.split() for row in rows[:2]] == [["a:flooder", "2"], ["a:quiet", "1"]]


def test_parked_jobs_are_counted_by_what_they_wait_for(cloud: Cloud) -> None:
    limits = DynamoLimits(clients.dynamodb(), table=cloud.table.name)
    enter(limits, a_job())
    for _ in range(2):
        park(cloud.store, limits)
    lines = run("status").stdout.splitlines()
    assert "2 parked jobs in 1 line" in lines
    assert "limit test.job#a  2" in lines


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(cloud: Cloud) -> None:
    """The status is wanted most while something is down."""
    cloud.dead_job()
    clients.dynamodb().delete_table(TableName=cloud.table.name)
    result = run("status")
    assert result.exit_code == 1
    assert "default  0        0        0          –       1" in result.stdout  # noqa: RUF001
    assert "unknown number of dead jobs" in result.stdout
    assert "some parts of the status could not be read" in result.stderr


def test_top_needs_a_terminal(cloud: Cloud) -> None:
    result = run("top")
    assert result.exit_code == 2
    assert "tidemill status --json" in result.stderr


@pytest.mark.usefixtures("terminal")
def test_top_shows_the_status_again_and_again(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[float] = []

    def pause(seconds: float) -> None:
        readings.append(seconds)
        cloud.dead_job()
        if len(readings) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("tidemill.cli.operations.top.time.sleep", pause)
    result = run("top", "--interval", "3")
    assert result.exit_code == 130
    assert readings == [3, 3]
    text = click.unstyle(result.stdout)
    assert "0 dead jobs" in text
    assert "1 dead job\n" in text.replace(" \n", "\n") or "1 dead job " in text


def test_every_lane_has_a_line(cloud: Cloud) -> None:
    urls = {"queue": cloud.queue, "dead_letters": cloud.dead_letters}
    cloud.server.stacks = [pipeline(cloud.table.name, json.dumps(dict.fromkeys(Lane, urls)))]
    lines = run("status").stdout.splitlines()[3:6]
    assert [line.split()[0] for line in lines] == ["critical", "default", "bulk"]


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_the_lanes_as_a_table(cloud: Cloud) -> None:
    lines = click.unstyle(run("status").stdout).splitlines()
    assert max(len(line) for line in lines if "─" in line or "default" in line) <= 80
    assert set(lines[3]) == {"─"}

"""`recover`: a restored table becomes ready, and every job is accounted for."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import (
    LEASE,
    NOW,
    SETTLEMENTS,
    a_job,
    behind_an_ended_head,
    brought_to,
    fresh_token,
    reference_to,
)
from tests.support.fake_app_config import FakeAppConfig
from tests.support.job_tables import client
from tidemill.application.restore.recover import recovery_of
from tidemill.aws import clients
from tidemill.domain.history import Why
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.document import SCHEMA_ATTRIBUTE, key
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.dynamodb.restore.restored_table import DynamoRecoveryLog
from tidemill.names import STATE_ATTRIBUTE
from tidemill.system import clock

RESTORED = "jobs-restored"
LATER = NOW + timedelta(hours=1)


@dataclass(frozen=True)
class Restored:
    """A table that was restored while it had a job in each state, and what came after the restore point."""

    cloud: Cloud
    store: DynamoJobStore
    jobs: dict[State, Job]
    #: Queued at the restore point, and run since.
    ahead: Job
    #: Accepted after the restore point.
    accepted: Job

    def job(self, job: Job) -> Job:
        found = self.store.get(job.tenant, job.id)
        assert found is not None
        return found


@pytest.fixture
def restored(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Restored]:
    dynamodb = clients.dynamodb()
    dynamodb.update_continuous_backups(
        TableName=cloud.table.name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    jobs = {state: brought_to(cloud.store, state) for state in State}
    ahead = brought_to(cloud.store, State.QUEUED)
    dynamodb.restore_table_to_point_in_time(
        SourceTableName=cloud.table.name, TargetTableName=RESTORED, UseLatestRestorableTime=True
    )
    claimed = cloud.store.claim(reference_to(ahead), token=fresh_token(), now=LATER, lease_end=LATER + LEASE)
    cloud.store.settle(claimed, SETTLEMENTS[State.SUCCEEDED], now=LATER)
    accepted = cloud.store.insert_if_absent(a_job(created_at=LATER))
    monkeypatch.setattr(clock, "now", lambda: LATER)
    yield Restored(cloud, DynamoJobStore(dynamodb, table=RESTORED, retention=timedelta(days=1)), jobs, ahead, accepted)
    dynamodb.delete_table(TableName=RESTORED)


@pytest.fixture
def paused(restored: Restored, monkeypatch: pytest.MonkeyPatch) -> None:
    run("pause", "lane=default", "--reject-new", "--yes")
    monkeypatch.setattr(clock, "now", lambda: LATER + timedelta(minutes=1))


def _recovered(*options: str) -> dict[str, Any]:
    result = run("recover", RESTORED, "--yes", "--json", *options)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.usefixtures("paused")
def test_every_job_is_accounted_for(restored: Restored, tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"

    result = _recovered("--jobs", str(file))

    lines = {line["job_id"]: line for line in map(json.loads, file.read_text().splitlines())}
    fates = {state: lines[job.id]["fate"] for state, job in restored.jobs.items() if job.id in lines}
    assert fates == {
        State.WAITING: "waits",
        State.SCHEDULED: "waits",
        State.QUEUED: "dispatched",
        State.RUNNING: "given_back",
        State.RETRYING: "dispatched",
        State.PARKED: "waits",
        State.DEAD: "dead",
    }
    assert {job_id for job_id, line in lines.items() if line["may_run_again"]} == {
        restored.jobs[State.RUNNING].id,
        restored.ahead.id,
    }
    assert lines[restored.accepted.id]["fate"] == "missing"
    # With the head of the group of the waiting job.
    assert (result["dispatched"], result["given_back"], result["waits"], result["dead"]) == (4, 1, 3, 1)
    assert (result["may_run_again"], result["missing"], result["unreadable"]) == (2, 1, 0)


@pytest.mark.usefixtures("paused")
def test_a_run_at_the_restore_point_is_given_back_and_its_worker_can_no_longer_end_it(restored: Restored) -> None:
    running = restored.jobs[State.RUNNING]

    _recovered()

    given_back = restored.job(running)
    assert (given_back.state, given_back.lease.owner, given_back.due) == (State.RETRYING, None, clock.now())
    assert given_back.generation == running.generation + 1
    assert (given_back.attempt, given_back.lease.open_runs, given_back.lease.releases) == (running.attempt - 1, 0, 0)
    assert given_back.history[-1].cause == Why.RESTORED


@pytest.mark.usefixtures("paused")
def test_jobs_that_should_have_a_message_get_one_and_no_other_job_changes(restored: Restored) -> None:
    _recovered()

    for state, job in restored.jobs.items():
        nudged = restored.job(job).nudges.last_at
        assert (nudged == clock.now()) == (state in {State.QUEUED, State.RETRYING, State.DEAD}), state
    for state in (State.SCHEDULED, State.PARKED, State.WAITING, State.SUCCEEDED, State.CANCELLED):
        assert restored.job(restored.jobs[state]) == restored.jobs[state]


@pytest.mark.usefixtures("paused")
def test_the_table_has_what_its_stack_would_have_given_it(restored: Restored) -> None:
    clients.dynamodb().update_table(TableName=restored.cloud.table.name, DeletionProtectionEnabled=True)

    settings = _recovered()["settings"]

    dynamodb = client("dynamodb")
    table = dynamodb.describe_table(TableName=RESTORED)["Table"]
    assert settings == {
        "stage": "dev",
        "gradual_deployment": "off",
        "jobs_stream": table["LatestStreamArn"],
        "epoch": 1,
    }
    assert table["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert table["DeletionProtectionEnabled"]
    ttl = dynamodb.describe_time_to_live(TableName=RESTORED)["TimeToLiveDescription"]
    assert ttl == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}
    backups = dynamodb.describe_continuous_backups(TableName=RESTORED)["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    for name in (RESTORED, restored.cloud.table.name):
        dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)


@pytest.mark.usefixtures("paused")
@pytest.mark.parametrize(
    ("label", "options"), [("prod", "-c stage=prod"), ("prod-acme", "-c stage=prod -c installation=acme")]
)
def test_the_printed_deployment_is_one_of_the_restored_stage(cloud: Cloud, label: str, options: str) -> None:
    cloud.server.stacks[:] = [
        replace(stack, tags={**stack.tags, "tidemill:stage": label}) for stack in cloud.server.stacks
    ]

    printed = run("recover", RESTORED, "--yes").stdout.replace("\n", " ")

    # The other stack imports the name of the former table, which CloudFormation would not let go before.
    first, then = printed.split("Next: ")[1:]
    assert first.startswith(f"npx cdk deploy --exclusively dev-Shortener {options} -c gradual_deployment=off -c ")
    assert then.startswith(f"npx cdk deploy --all {options} -c gradual_deployment=off -c jobs_stream=arn:")
    assert first.endswith(" -c epoch=1 ")
    assert printed.endswith(" -c epoch=1 ")


@pytest.mark.usefixtures("paused")
def test_the_recovery_says_which_table_it_replaces(cloud: Cloud, restored: Restored) -> None:
    _recovered()

    log = DynamoRecoveryLog(clients.dynamodb(), table=RESTORED)
    recovery = log.read()

    assert recovery is not None
    assert recovery.replaces == cloud.table.name
    # A recovery for another stage is another one.
    other = recovery_of(recovery, table=RESTORED, replaces="jobs-of-dev", deployed_epoch=0, now=LATER)
    assert other.epoch == recovery.epoch + 1
    assert restored.job(restored.ahead).nudges.last_at == clock.now()


@pytest.mark.usefixtures("paused")
def test_a_second_call_continues_the_recovery_and_sends_nothing_twice(
    restored: Restored, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _recovered()
    after = {job.id: restored.job(job) for job in restored.jobs.values()}
    monkeypatch.setattr(clock, "now", lambda: LATER + timedelta(minutes=5))

    second = _recovered()

    assert {job.id: restored.job(job) for job in restored.jobs.values()} == after
    assert second["settings"] == first["settings"]
    assert second["may_run_again"] == first["may_run_again"]


@pytest.mark.usefixtures("paused")
def test_a_group_whose_head_had_just_ended_goes_on(cloud: Cloud, restored: Restored) -> None:
    waiting = behind_an_ended_head(restored.store)

    _recovered()

    assert restored.job(waiting).state is State.QUEUED
    assert cloud.store.get(waiting.tenant, waiting.id) is None


@pytest.mark.usefixtures("paused")
def test_a_group_whose_head_cannot_be_read_does_not_stop_the_recovery(restored: Restored) -> None:
    head = restored.store.insert_if_absent(a_job(group="a"))
    restored.store.insert_if_absent(a_job(group="a"))
    others = behind_an_ended_head(restored.store)
    clients.dynamodb().update_item(
        TableName=RESTORED,
        Key=key(head.tenant, head.id),
        UpdateExpression="SET #schema = :newer, #state = :ended",
        ExpressionAttributeNames={"#schema": SCHEMA_ATTRIBUTE, "#state": STATE_ATTRIBUTE},
        ExpressionAttributeValues={":newer": {"N": "99"}, ":ended": {"S": str(State.SUCCEEDED)}},
    )

    assert _recovered()["unreadable"] == 1
    assert restored.job(others).state is State.QUEUED


@pytest.mark.usefixtures("paused")
def test_the_restored_table_can_stay_paused(restored: Restored) -> None:
    _recovered("--paused", "--reason", "look first")

    configuration = DynamoConfiguration(clients.dynamodb(), table=RESTORED).read()
    assert [(str(pause.target), pause.reason, pause.reject_new) for pause in configuration.pauses(clock.now())] == [
        ("lane=default", "look first", False)
    ]
    assert restored.job(restored.ahead).nudges.last_at == clock.now()


def test_the_dry_run_reports_the_same_and_changes_nothing(restored: Restored) -> None:
    before = clients.dynamodb().scan(TableName=RESTORED)["Items"]

    result = _recovered("--dry-run")

    assert (result["may_run_again"], result["missing"]) == (2, 1)
    assert result["settings"]["jobs_stream"] is None
    assert clients.dynamodb().scan(TableName=RESTORED)["Items"] == before


def test_jobs_that_may_still_start_are_an_error_that_names_the_pause(restored: Restored) -> None:
    run("pause", "lane=default", "--yes")

    result = run("recover", RESTORED, "--yes")

    assert result.exit_code == 1
    assert "jobs may still start in the table in use: default" in result.stderr
    assert "`tidemill pause lane=default --reject-new`" in result.stderr
    assert restored.job(restored.jobs[State.RUNNING]).state is State.RUNNING


def test_a_pause_that_appconfig_has_not_taken_does_not_count(restored: Restored, app_config: FakeAppConfig) -> None:
    run("config", "set", "flags.a", "1", "--yes")
    app_config.deployment_errors = ["AccessDeniedException"]
    assert run("pause", "lane=default", "--reject-new", "--yes").exit_code == 1

    result = run("recover", RESTORED, "--yes")

    assert result.exit_code == 1
    assert "jobs may still start in the table in use: default" in result.stderr
    assert restored.job(restored.jobs[State.RUNNING]).state is State.RUNNING


@pytest.mark.usefixtures("restored")
def test_a_pause_acts_only_after_every_function_has_polled_appconfig(
    app_config: FakeAppConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("pause", "lane=default", "--reject-new", "--yes").exit_code == 0
    slept: list[float] = []
    monkeypatch.setattr("tidemill.cli.restore.recover.time.sleep", slept.append)
    monkeypatch.setattr(clock, "now", lambda: LATER + timedelta(minutes=30))

    _recovered()

    # AppConfig may have got it just now, whenever it was recorded.
    assert slept == [120.0]
    assert app_config.polls


@pytest.mark.usefixtures("restored")
def test_while_appconfig_cannot_be_read_the_pauses_are_unknown(app_config: FakeAppConfig) -> None:
    run("pause", "lane=default", "--reject-new", "--yes")
    app_config.poll_errors = ["AccessDeniedException"]

    result = run("recover", RESTORED, "--yes")

    assert result.exit_code == 1
    assert "AppConfig did not answer" in result.stderr


def test_the_table_in_use_cannot_be_recovered(cloud: Cloud) -> None:
    result = run("recover", cloud.table.name, "--yes")

    assert result.exit_code == 1
    assert "is the table in use" in result.stderr


def test_a_table_without_the_index_is_an_error_that_names_it(cloud: Cloud) -> None:
    clients.dynamodb().create_table(
        TableName="bare",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
    )

    result = run("recover", "bare", "--yes")

    assert result.exit_code == 1
    assert "bare cannot be recovered: it lacks the index attention, it lacks the index listing" in result.stderr
    assert "found no table 'absent'" in run("recover", "absent", "--yes").stderr


def test_without_the_former_table_every_live_job_may_run_again(restored: Restored) -> None:
    clients.dynamodb().delete_table(TableName=restored.cloud.table.name)

    result = run("recover", RESTORED, "--yes")

    assert result.exit_code == 0, result.stderr
    assert "The table in use cannot be read: every live job may run again" in result.stderr
    assert "8 jobs may run again." in result.stdout
    assert "Jobs accepted after the restore point: in the lines `accepted` of the log of submit." in result.stdout


@pytest.mark.usefixtures("paused")
def test_the_command_and_its_counts_are_in_the_audit_log_of_the_restored_table(restored: Restored) -> None:
    _recovered("--reason", "a bad deployment")

    items = clients.dynamodb().scan(TableName=RESTORED)["Items"]
    (entry,) = [item for item in items if item["pk"]["S"].startswith("!audit#")]
    assert (entry["command"]["S"], entry["reason"]["S"], entry["outcome"]["S"]) == (
        "recover",
        "a bad deployment",
        "done",
    )
    assert json.loads(entry["options"]["S"]) == {"table": RESTORED, "epoch": 1}
    assert restored.jobs.keys() == set(State)

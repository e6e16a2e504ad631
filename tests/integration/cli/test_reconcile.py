"""`reconcile`: what it finds, and what it leaves alone."""

from datetime import timedelta

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import a_job, behind_an_ended_head, brought_to
from tidemill.application.ports import OpenGroup
from tidemill.aws import clients
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.table_scan import DynamoTableScan
from tidemill.system import clock

NO_LETTERS = "Letters: 0 deleted, 0 nudged, 0 kept."


def waiting(cloud: Cloud, *, late_by: timedelta) -> Job:
    job = a_job(created_at=clock.now() - late_by, due=clock.now() - late_by)
    cloud.store.insert_if_absent(job)
    return job


def nudged(cloud: Cloud, job: Job) -> bool:
    found = cloud.store.get(job.tenant, job.id)
    assert found is not None
    return found.nudged_at is not None


def test_jobs_that_are_long_overdue_are_nudged_and_others_are_not(cloud: Cloud) -> None:
    lost, late = waiting(cloud, late_by=timedelta(hours=2)), waiting(cloud, late_by=timedelta(minutes=30))
    result = run("reconcile")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["1 job nudged.", NO_LETTERS]
    assert (nudged(cloud, lost), nudged(cloud, late)) == (True, False)


def test_the_limit_can_be_chosen(cloud: Cloud) -> None:
    late = waiting(cloud, late_by=timedelta(minutes=30))
    assert "1 job nudged." in run("reconcile", "--overdue-by", "10").stdout
    assert nudged(cloud, late)


def test_what_waits_on_a_lane_that_is_only_slow_is_left_alone(cloud: Cloud) -> None:
    late = waiting(cloud, late_by=timedelta(hours=2))
    clients.sqs().send_message(QueueUrl=cloud.queue, MessageBody="x")
    # CloudWatch says nothing, so the message may be as old as the queue keeps one.
    assert run("reconcile").stdout.splitlines() == ["Nothing was left behind.", NO_LETTERS]
    assert not nudged(cloud, late)


def test_a_group_whose_head_has_ended_goes_on(cloud: Cloud) -> None:
    job = behind_an_ended_head(cloud.store)
    assert run("reconcile").stdout.splitlines() == ["1 group moved on.", NO_LETTERS]
    assert cloud.state(job) is State.QUEUED


def test_letters_are_tidied_and_those_of_the_dead_stay(cloud: Cloud) -> None:
    dead = cloud.dead_job()
    cloud.write("rubbish")
    assert "Letters: 1 deleted, 0 nudged, 1 kept." in run("reconcile").stdout
    assert cloud.state(dead) is State.DEAD


def test_a_dry_run_changes_nothing(cloud: Cloud) -> None:
    lost = waiting(cloud, late_by=timedelta(hours=2))
    cloud.write("rubbish")
    before = cloud.contents()
    result = run("reconcile", "--dry-run")
    assert result.stdout.splitlines() == ["default: 1 overdue job queued", "Nothing was changed."]
    assert not nudged(cloud, lost)
    assert cloud.contents() == before


def test_a_second_reconcile_finds_nothing_to_do(cloud: Cloud) -> None:
    waiting(cloud, late_by=timedelta(hours=2))
    run("reconcile")
    assert run("reconcile").stdout.splitlines() == ["Nothing was left behind.", NO_LETTERS]
    assert run("reconcile", "--dry-run").stdout.splitlines() == ["No job is overdue."]


def test_what_it_cannot_read_is_named_and_the_rest_looked_after(cloud: Cloud) -> None:
    lost, newer = (waiting(cloud, late_by=timedelta(hours=2)) for _ in range(2))
    cloud.table.put(newer, schema={"N": "99"})
    result = run("reconcile")
    assert "1 job nudged." in result.stdout
    assert f"Passed over {newer.tenant}#{newer.id}: a document of schema 99" in result.stderr
    assert nudged(cloud, lost)


def test_what_could_not_be_done_is_said_and_the_exit_code_too(cloud: Cloud) -> None:
    def broken(*_: object, **__: object) -> list[OpenGroup]:
        raise StoreUnavailableError("no answer")

    brought_to(cloud.store, State.QUEUED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DynamoTableScan, "segment", broken)
        result = run("reconcile")
    assert result.exit_code == 1
    assert "64 parts of the work could not be done" in result.stderr
    assert "Run the command again" in result.stderr


def test_a_limit_of_nothing_is_wrong_usage(cloud: Cloud) -> None:
    assert run("reconcile", "--overdue-by", "0").exit_code == 2

"""`reconcile`: the jobs, groups and messages that it repairs, and those that it leaves unchanged."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import a_job, behind_an_ended_head, brought_to, with_changes
from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.passes.pass_state import first_pass
from tidemill.application.ports import OpenGroup, ScanPage
from tidemill.aws import clients
from tidemill.cli.operations import reconcile as reconcile_command
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.dispatch.owed_items import DynamoOwedWork
from tidemill.dynamodb.passes.pass_store import DynamoPasses
from tidemill.dynamodb.passes.table_scan import DynamoTableScan
from tidemill.system import clock, ids

NO_MESSAGES = "DLQ messages: 0 deleted, 0 nudged, 0 kept."


def waiting(cloud: Cloud, *, overdue_by: timedelta) -> Job:
    job = a_job(created_at=clock.now() - overdue_by, due=clock.now() - overdue_by)
    cloud.store.insert_if_absent(job)
    return job


def nudged(cloud: Cloud, job: Job) -> bool:
    found = cloud.store.get(job.tenant, job.id)
    assert found is not None
    return found.nudges.last_at is not None


def test_only_jobs_overdue_beyond_the_limit_are_nudged(cloud: Cloud) -> None:
    lost, late = waiting(cloud, overdue_by=timedelta(hours=2)), waiting(cloud, overdue_by=timedelta(minutes=30))
    result = run("reconcile")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["1 job nudged.", NO_MESSAGES]
    assert (nudged(cloud, lost), nudged(cloud, late)) == (True, False)


def test_the_limit_is_an_option(cloud: Cloud) -> None:
    late = waiting(cloud, overdue_by=timedelta(minutes=30))
    hint = "Jobs overdue by less than 60 minutes were skipped; --overdue-by 1 includes them."
    for options in ((), ("--dry-run",)):
        assert hint in run("reconcile", *options).stderr
    assert not nudged(cloud, late)

    result = run("reconcile", "--overdue-by", "10")
    assert "1 job nudged." in result.stdout
    assert "skipped" not in result.stderr
    assert nudged(cloud, late)
    assert "skipped" not in run("reconcile", "--overdue-by", "1").stderr


def test_a_job_on_a_slow_lane_is_not_nudged(cloud: Cloud) -> None:
    late = waiting(cloud, overdue_by=timedelta(hours=2))
    clients.sqs().send_message(QueueUrl=cloud.queue, MessageBody="x")
    # CloudWatch has no value, so the message may be as old as the retention of the queue.
    assert run("reconcile").stdout.splitlines() == ["Nothing to repair.", NO_MESSAGES]
    assert not nudged(cloud, late)


def test_a_group_whose_head_has_ended_is_advanced(cloud: Cloud) -> None:
    job = behind_an_ended_head(cloud.store)
    assert run("reconcile").stdout.splitlines() == ["1 group advanced.", NO_MESSAGES]
    assert cloud.state(job) is State.QUEUED


def _owe(cloud: Cloud, work: Work, *, ago: timedelta = timedelta()) -> None:
    owed = DynamoOwedWork(cloud.table.client, table=cloud.table.name)
    owed.owe(work, now=clock.now() - ago, error="refused")


def test_owed_work_is_done(cloud: Cloud) -> None:
    """The job is not overdue, so the pass does not nudge it."""
    job = waiting(cloud, overdue_by=timedelta(minutes=1))
    _owe(cloud, Work(kind=Kind.DISPATCH, tenant=job.tenant, name=job.id))

    assert run("reconcile").stdout.splitlines() == ["1 job nudged.", NO_MESSAGES]
    assert nudged(cloud, job)


def test_owed_work_that_fails_for_long_is_reported(cloud: Cloud) -> None:
    job = waiting(cloud, overdue_by=timedelta(minutes=1))
    key = {"pk": {"S": f"{job.tenant}#{job.id}"}}
    cloud.table.client.update_item(
        TableName=cloud.table.name,
        Key=key,
        UpdateExpression="REMOVE #state",
        ExpressionAttributeNames={"#state": "state"},
    )
    _owe(cloud, Work(kind=Kind.DISPATCH, tenant=job.tenant, name=job.id), ago=timedelta(hours=1))

    assert f"dispatch {job.id}: " in run("reconcile").stderr


def test_dlq_messages_are_deleted_unless_their_job_is_dead(cloud: Cloud) -> None:
    dead = cloud.dead_job()
    cloud.write("malformed")
    assert "DLQ messages: 1 deleted, 0 nudged, 1 kept." in run("reconcile").stdout
    assert cloud.state(dead) is State.DEAD


def test_a_dry_run_changes_nothing(cloud: Cloud) -> None:
    lost = waiting(cloud, overdue_by=timedelta(hours=2))
    cloud.write("malformed")
    before = cloud.contents()
    result = run("reconcile", "--dry-run")
    assert result.stdout.splitlines() == ["default: 1 overdue job in state queued", "Nothing was changed."]
    assert not nudged(cloud, lost)
    assert cloud.contents() == before


def test_a_dry_run_reads_at_the_rate_and_names_what_it_cannot_read(
    cloud: Cloud, environment: pytest.MonkeyPatch
) -> None:
    """Jobs of 300 KB, so that a page of the scan has a few."""
    jobs = [waiting(cloud, overdue_by=timedelta(hours=2)) for _ in range(7)]
    for job in jobs:
        cloud.table.put(with_changes(job, payload='"' + "x" * 300_000 + '"'))
    cloud.table.put(jobs[0], schema={"N": "99"})
    pauses: list[float] = []
    environment.setattr("tidemill.cli.operations.reconcile.time.sleep", pauses.append)

    result = run("reconcile", "--dry-run", "--read-units", "100")

    assert result.stdout.splitlines()[0] == "default: 6 overdue jobs in state queued"
    assert f"Skipped job {jobs[0].id}" in result.stderr
    # The pause is that of the first page. moto does not compute its read units.
    assert len(pauses) == 1


def test_a_second_run_finds_nothing_to_repair(cloud: Cloud) -> None:
    waiting(cloud, overdue_by=timedelta(hours=2))
    run("reconcile")
    assert run("reconcile").stdout.splitlines() == ["Nothing to repair.", NO_MESSAGES]
    assert run("reconcile", "--dry-run").stdout.splitlines() == ["No overdue jobs."]


def test_an_unreadable_document_is_reported_and_the_rest_is_repaired(cloud: Cloud) -> None:
    lost, newer = (waiting(cloud, overdue_by=timedelta(hours=2)) for _ in range(2))
    cloud.table.put(newer, schema={"N": "99"})
    result = run("reconcile")
    assert "1 job nudged." in result.stdout
    assert f"Skipped {newer.tenant}#{newer.id}: a document of schema 99" in result.stderr
    assert nudged(cloud, lost)


def test_failed_steps_are_reported_and_exit_with_1(cloud: Cloud) -> None:
    def broken(*_: object, **__: object) -> list[OpenGroup]:
        raise StoreUnavailableError("no answer")

    brought_to(cloud.store, State.QUEUED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DynamoTableScan, "page", broken)
        result = run("reconcile")
    assert result.exit_code == 1
    assert "64 steps failed: the table or a queue did not respond" in result.stderr
    assert "Run the command again" in result.stderr


def test_an_interrupted_pass_is_kept_and_continued(cloud: Cloud) -> None:
    jobs = [waiting(cloud, overdue_by=timedelta(hours=2)) for _ in range(12)]
    left = [5]
    page = DynamoTableScan.page

    def interrupted(*given: Any, **named: Any) -> ScanPage:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return page(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DynamoTableScan, "page", interrupted)
        result = run("reconcile")
    assert result.exit_code == 130
    assert "The pass is not complete. Run the command again to continue" in result.stderr
    assert not all(nudged(cloud, job) for job in jobs)

    result = run("reconcile")
    assert result.exit_code == 0
    assert "Continuing pass 1, which began" in result.stderr
    assert all(nudged(cloud, job) for job in jobs)


def test_a_pass_that_the_function_holds_is_awaited(cloud: Cloud) -> None:
    passes = DynamoPasses(cloud.table.client, table=cloud.table.name, new_token=ids.new_token)
    held = replace(first_pass(clock.now()), held_by="the function", held_until=clock.now() + timedelta(minutes=10))
    assert passes.write(held)
    pauses = []

    def ends_meanwhile(seconds: float) -> None:
        pauses.append(seconds)
        found = passes.read()
        assert found is not None
        assert passes.write(found.ended(clock.now()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconcile_command, "time", SimpleNamespace(sleep=ends_meanwhile))
        result = run("reconcile")
    assert (result.exit_code, len(pauses)) == (0, 1)


def test_a_limit_of_zero_is_wrong_usage(cloud: Cloud) -> None:
    assert run("reconcile", "--overdue-by", "0").exit_code == 2

"""`reconcile`: what it finds, and what it leaves alone."""

from datetime import timedelta

from shared.adapters import clock
from shared.domain.job import Job
from shared.domain.states import State
from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import a_job


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
    assert result.stdout.splitlines() == ["default: 1 overdue job queued", "Nudged 1 of 1 job."]
    assert (nudged(cloud, lost), nudged(cloud, late)) == (True, False)


def test_the_limit_can_be_chosen(cloud: Cloud) -> None:
    late = waiting(cloud, late_by=timedelta(minutes=30))
    assert "Nudged 1 of 1 job." in run("reconcile", "--overdue-by", "10").stdout
    assert nudged(cloud, late)


def test_a_dry_run_changes_nothing(cloud: Cloud) -> None:
    lost = waiting(cloud, late_by=timedelta(hours=2))
    result = run("reconcile", "--dry-run")
    assert result.stdout.splitlines() == ["default: 1 overdue job queued", "Nothing was changed."]
    assert not nudged(cloud, lost)


def test_a_second_reconcile_finds_nothing_to_do(cloud: Cloud) -> None:
    waiting(cloud, late_by=timedelta(hours=2))
    run("reconcile")
    assert run("reconcile").stdout.splitlines() == ["No job is overdue."]


def test_dead_jobs_are_not_its_business(cloud: Cloud) -> None:
    job = cloud.dead_job()
    assert run("reconcile").stdout.splitlines() == ["No job is overdue."]
    assert cloud.state(job) is State.DEAD


def test_a_limit_of_nothing_is_wrong_usage(cloud: Cloud) -> None:
    assert run("reconcile", "--overdue-by", "0").exit_code == 2

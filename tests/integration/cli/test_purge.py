"""`purge`: the jobs that it selects, its plan and confirmation, and the jobs that it keeps."""

from datetime import timedelta

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import a_job
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.system import clock


def ended(cloud: Cloud, *, days_ago: float = 40, state: State = State.SUCCEEDED, type_: str = "t") -> Job:
    at = clock.now() - timedelta(days=days_ago)
    job = a_job(state=state, type=type_, due=None, created_at=at, finished_at=at)
    cloud.table.put(job)
    return job


def exist(cloud: Cloud, *jobs: Job) -> list[bool]:
    return [cloud.store.get(job.tenant, job.id) is not None for job in jobs]


def test_only_jobs_that_ended_longer_ago_are_deleted(cloud: Cloud) -> None:
    old, recent = ended(cloud), ended(cloud, days_ago=20)
    live = a_job(created_at=clock.now() - timedelta(days=60))
    cloud.table.put(live)
    result = run("purge", "--older-than", "30d", "--yes")
    assert (result.exit_code, result.stdout) == (0, "Deleted 1 of 1 job.\n")
    assert exist(cloud, old, recent, live) == [False, True, True]


def test_type_and_state_select_the_jobs(cloud: Cloud) -> None:
    dead, other, fine = ended(cloud, state=State.DEAD), ended(cloud, state=State.DEAD, type_="u"), ended(cloud)
    run("purge", "--older-than", "30d", "--type", "t", "--state", "dead", "--yes")
    assert exist(cloud, dead, other, fine) == [False, True, True]


def test_the_jobs_of_a_live_batch_are_kept(cloud: Cloud) -> None:
    at = clock.now() - timedelta(days=40)
    batch = a_job(created_at=at)
    cloud.table.put(batch)
    member = a_job(tenant=batch.tenant, state=State.SUCCEEDED, due=None, created_at=at, finished_at=at, batch=batch.id)
    cloud.table.put(member)
    other = ended(cloud)
    result = run("purge", "--older-than", "30d", "--yes")
    assert (result.exit_code, result.stdout) == (0, "Deleted 1 of 1 job.\n")
    assert "Kept 1 job that a flow, a batch" in result.stderr
    assert exist(cloud, member, other) == [True, False]


def test_a_dry_run_prints_the_plan_and_changes_nothing(cloud: Cloud) -> None:
    ended(cloud)
    ended(cloud, state=State.DEAD, type_="u")
    before = cloud.contents()
    result = run("purge", "--older-than", "30d", "--dry-run")
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()[1:4]] == [
        ["TYPE", "STATE", "JOBS"],
        ["t", "succeeded", "1"],
        ["u", "dead", "1"],
    ]
    assert result.stdout.splitlines()[0] == "2 jobs to delete:"
    assert result.stdout.splitlines()[-1] == "Nothing was changed."
    assert cloud.contents() == before


def test_a_job_that_is_redriven_during_the_confirmation_is_kept(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    job = ended(cloud, state=State.DEAD)
    monkeypatch.setattr("tidemill.cli.confirm.stdin_is_terminal", lambda: True)

    def ask(*_: object, **__: object) -> bool:
        cloud.store.redrive(job, token="token", now=clock.now(), by="alice")
        return True

    monkeypatch.setattr("tidemill.cli.confirm.click.confirm", ask)
    result = run("purge", "--older-than", "30d")
    assert result.stdout == "Deleted 0 of 1 job. Skipped 1 job that changed in the meantime.\n"
    assert cloud.state(job) is State.QUEUED


@pytest.mark.usefixtures("interactive")
def test_a_declined_confirmation_changes_nothing(cloud: Cloud) -> None:
    job = ended(cloud)
    result = run("purge", "--older-than", "30d", typed="n\n")
    assert "Delete 1 job?" in result.stderr
    assert "Nothing was changed." in result.stderr
    assert exist(cloud, job) == [True]


def test_an_empty_selection_is_reported(cloud: Cloud) -> None:
    result = run("purge", "--older-than", "30d", "--yes")
    assert (result.exit_code, result.stdout) == (0, "Nothing was changed.\n")
    assert "0 jobs to delete." in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [[], ["--older-than", "30"], ["--older-than", "30d", "--state", "queued", "--yes"], ["--older-than", "30d"]],
)
def test_invalid_arguments_are_wrong_usage(cloud: Cloud, arguments: list[str]) -> None:
    before = cloud.contents()
    assert run("purge", *arguments).exit_code == 2
    assert cloud.contents() == before


def test_the_scan_takes_no_more_read_units_than_it_may(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of one item costs half a unit, so each of two pauses is for a twentieth of a second."""
    pauses: list[float] = []
    monkeypatch.setattr("tidemill.parts.time.sleep", pauses.append)
    monkeypatch.setattr("tidemill.dynamodb.passes.job_scan._ITEMS", 1)
    at = clock.now()
    monkeypatch.setattr(clock, "now", lambda: at)
    jobs = [ended(cloud) for _ in range(3)]

    assert run("purge", "--older-than", "30d", "--read-units", "10", "--yes").exit_code == 0

    assert exist(cloud, *jobs) == [False, False, False]
    assert sum(pauses) >= len(jobs) / 2 / 10

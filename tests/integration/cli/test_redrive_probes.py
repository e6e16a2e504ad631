"""`redrive` with probes: one job of each error runs first."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import NOW, SECOND, SETTLEMENTS, claimed, stored
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State


@pytest.fixture
def worker(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, State], None]:
    """Runs the queued jobs of a type whenever the command waits. Each ends in the state that was set for its type."""
    ends: dict[str, State] = {}

    def pause(_seconds: float) -> None:
        for tenant, job_id in ((job.tenant, job.id) for job in _jobs(cloud)):
            job = cloud.store.get(tenant, job_id)
            if job and job.state is State.QUEUED and job.type in ends:
                cloud.store.settle(claimed(cloud.store, job), SETTLEMENTS[ends[job.type]], now=NOW)

    monkeypatch.setattr("tidemill.cli.control.redrive_run.time.sleep", pause)
    return ends.__setitem__


def _jobs(cloud: Cloud) -> list[Job]:
    keys = [item["pk"]["S"].rpartition("#") for item in cloud.table.client.scan(TableName=cloud.table.name)["Items"]]
    return cloud.store.get_many([(tenant, job_id) for tenant, _, job_id in keys if not tenant.startswith("!")])


def _states(cloud: Cloud, jobs: list[Job]) -> Counter[State]:
    return Counter(cloud.state(job) for job in jobs)


def test_the_others_follow_a_probe_that_succeeds(cloud: Cloud, worker: Callable[[str, State], None]) -> None:
    jobs = [cloud.dead_job() for _ in range(5)]
    worker("test.job", State.SUCCEEDED)

    result = run("redrive", "--all", "--yes")

    assert (result.exit_code, result.stdout) == (0, "Redrove 5 of 5 jobs.\n")
    assert _states(cloud, jobs) == {State.SUCCEEDED: 1, State.QUEUED: 4}
    assert "1 probe: one job of each type and error runs first." in result.stderr
    assert f"Probe {jobs[0].id} succeeded: test.job, ValueError: no such thing" in result.stderr


def test_the_others_of_a_failed_probe_stay_dead(cloud: Cloud, worker: Callable[[str, State], None]) -> None:
    good, bad = [cloud.dead_job(type="good") for _ in range(3)], [cloud.dead_job(type="bad") for _ in range(3)]
    worker("good", State.SUCCEEDED)
    worker("bad", State.DEAD)

    result = run("redrive", "--all", "--yes")

    assert (result.exit_code, result.stdout) == (1, "Redrove 4 of 4 jobs. Left 2 jobs dead.\n")
    assert _states(cloud, good) == {State.SUCCEEDED: 1, State.QUEUED: 2}
    assert _states(cloud, bad) == {State.DEAD: 3}
    assert sum(len(stored(cloud.store, job).redrives) for job in bad) == 1
    assert f"Probe {bad[0].id} failed again: bad, ValueError: no such thing" in result.stderr
    assert "2 jobs stayed dead" in result.stderr


def test_a_failed_probe_without_others_of_its_error_is_reported_as_such(
    cloud: Cloud, worker: Callable[[str, State], None]
) -> None:
    """No job was held back, and one is dead."""
    for name, ends in (("good", State.SUCCEEDED), ("bad", State.DEAD)):
        cloud.dead_job(type=name)
        worker(name, ends)

    result = run("redrive", "--all", "--yes")

    assert (result.exit_code, result.stdout) == (1, "Redrove 2 of 2 jobs.\n")
    assert "Error: 1 probe did not succeed; no other job has the same error" in result.stderr


def test_a_probe_that_does_not_end_in_time_goes_on(cloud: Cloud, worker: Callable[[str, State], None]) -> None:
    jobs = [cloud.dead_job() for _ in range(3)]

    result = run("redrive", "--all", "--yes", "--json", "--probe-timeout", "0s")

    assert result.exit_code == 1
    assert _states(cloud, jobs) == {State.QUEUED: 1, State.DEAD: 2}
    counts = json.loads(result.stdout)
    assert (counts["written"], counts["held"]) == (1, 2)
    assert [(probe["id"], probe["verdict"]) for probe in counts["probes"]] == [(jobs[0].id, "has not ended in time")]
    worker("test.job", State.SUCCEEDED)
    assert run("redrive", "--all", "--yes").exit_code == 0
    assert State.DEAD not in _states(cloud, jobs)


def test_an_interruption_leaves_the_probe_in_flight_and_a_repeat_goes_on(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [cloud.dead_job() for _ in range(3)]

    def interrupted(_seconds: float) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("tidemill.cli.control.redrive_run.time.sleep", interrupted)
    result = run("redrive", "--all", "--yes")

    assert result.exit_code == 130
    assert (
        "Redrove 1 of 1 job. Each job is either dead or redriven, and those that were redriven go on." in result.stderr
    )
    assert _states(cloud, jobs) == {State.QUEUED: 1, State.DEAD: 2}


def test_the_limit_includes_the_probes(cloud: Cloud, worker: Callable[[str, State], None]) -> None:
    jobs = [cloud.dead_job() for _ in range(5)]
    worker("test.job", State.SUCCEEDED)

    assert run("redrive", "--all", "--limit", "3", "--yes").stdout == "Redrove 3 of 3 jobs.\n"
    assert _states(cloud, jobs) == {State.SUCCEEDED: 1, State.QUEUED: 2, State.DEAD: 2}


def test_one_job_needs_no_probe(cloud: Cloud) -> None:
    cloud.dead_job()

    assert "robe" not in run("redrive", "--all", "--yes").stderr


def test_jobs_that_die_after_the_plan_are_probed_too(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [cloud.dead_job()]

    def confirmed(*_: object, **__: object) -> bool:
        jobs.extend(cloud.dead_job() for _ in range(4))
        return True

    monkeypatch.setattr("tidemill.cli.control.change_options.confirmed", confirmed)
    result = run("redrive", "--all", "--yes", "--probe-timeout", "0s")

    assert "1 dead job to redrive" in result.stderr
    assert "1 probe" in result.stderr
    assert _states(cloud, jobs) == {State.QUEUED: 1, State.DEAD: 4}


def test_a_probe_fails_with_its_first_attempt_that_has_the_same_error(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [cloud.dead_job() for _ in range(2)]

    def fail(_seconds: float) -> None:
        probe = stored(cloud.store, jobs[0])
        again = replace(probe.errors[-1], at=NOW + SECOND)
        cloud.table.put(replace(probe, state=State.RETRYING, errors=(*probe.errors, again)))

    monkeypatch.setattr("tidemill.cli.control.redrive_run.time.sleep", fail)
    result = run("redrive", "--all", "--yes", "--probe-timeout", "5s")

    assert f"Probe {jobs[0].id} failed again" in result.stderr
    assert cloud.state(jobs[1]) is State.DEAD

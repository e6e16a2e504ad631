"""Jobs through the deployed app: retried, dead, redriven, delivered twice, and with their worker killed."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.e2e.conftest import Deployed
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local.wait import wait_until

MOST_TRIES = 10


def reference(deployed: Deployed, job_id: str, generation: int) -> str:
    """A message for a job in the format of publish."""
    tenant = deployed.tenant_of(job_id)
    return json.dumps({"schema": 1, "tenant": tenant, "id": job_id, "generation": generation, "trace": "by hand"})


def test_a_job_that_fails_twice_succeeds_and_shows_both_errors(deployed: Deployed) -> None:
    job = deployed.until(deployed.accepted("demo.flaky", {"failures": 2}), state="succeeded")
    assert job["attempt"] == 3
    assert job["result"] == {"attempts": 3}
    assert [error["class"] for error in job["errors"]] == ["NotYetError", "NotYetError"]


def test_a_dead_job_has_a_dead_letter_message_until_it_is_redriven(deployed: Deployed) -> None:
    job_id = deployed.accepted("demo.poison", {"body": "x"})
    job = deployed.until(job_id, state="dead")
    assert (job["death"], job["attempt"]) == ("permanent error", 1)
    generation = deployed.document(job_id).generation
    wait_until(lambda: deployed.dead_letters_of(job_id) == 1, PATIENCE_SECONDS, "the dead-letter message")
    listed = deployed.app.tidemill("dlq", "list", "--json").stdout
    assert any(json.loads(line)["id"] == job_id for line in listed.splitlines())

    deployed.app.tidemill("redrive", job_id, "--yes")
    deployed.until(job_id, state="dead", holds=lambda found: bool(found["redrives"]))
    assert deployed.document(job_id).generation == generation + 1
    deployed.app.tidemill("dlq", "sweep", "--yes")
    wait_until(lambda: deployed.dead_letters_of(job_id) == 1, PATIENCE_SECONDS, "only the new dead-letter message")


def claimed(deployed: Deployed, job_id: str) -> dict[str, Any]:
    """Wait until a worker has claimed the job. Returns the job, which may have ended."""

    def there() -> dict[str, Any]:
        job = deployed.job(job_id)
        return {} if job["state"] == "queued" else job

    return wait_until(there, PATIENCE_SECONDS, f"a worker to claim job {job_id}")


def killed_with_their_worker(deployed: Deployed) -> list[dict[str, Any]]:
    """Four jobs that have succeeded, at least one of them after its worker was killed.

    A slow machine may see the first job only after its end. Then others are tried.
    """
    for _ in range(MOST_TRIES):
        with ThreadPoolExecutor(4) as pool:
            ids = list(pool.map(lambda _: deployed.accepted("demo.slow", {"seconds": 1.5}), range(4)))
        if claimed(deployed, ids[0])["state"] == "running":
            deployed.app.kill_worker("work")
        jobs: list[dict[str, Any]] = [deployed.until(job_id, state="succeeded") for job_id in ids]
        if max(job["attempt"] for job in jobs) > 1:
            return jobs
    raise AssertionError(f"no job was running when its worker was killed, in {MOST_TRIES} tries")


def test_the_jobs_of_a_killed_worker_run_again(deployed: Deployed) -> None:
    jobs = killed_with_their_worker(deployed)
    assert max(job["attempt"] for job in jobs) == 2
    for job in jobs:
        # Every lost attempt is among the errors, although its worker could not report it.
        assert [(error["attempt"], error["class"]) for error in job["errors"]] == [(1, "Crashed")] * (
            job["attempt"] - 1
        )


def test_a_message_for_an_ended_job_changes_nothing(deployed: Deployed) -> None:
    job_id = deployed.accepted("demo.flaky", {"failures": 1})
    job = deployed.until(job_id, state="succeeded")
    deployed.send(reference(deployed, job_id, generation=1), times=3)
    deployed.send(reference(deployed, job_id, generation=deployed.document(job_id).generation), times=3)
    deployed.drained()
    assert deployed.job(job_id) == job


def test_the_lane_drops_malformed_messages_and_runs_the_next_job(deployed: Deployed) -> None:
    for body in ("rubbish", "{}", '{"schema": 1}', "[1]"):
        deployed.send(body)
    job_id = deployed.accepted("demo.flaky", {"failures": 0})
    deployed.until(job_id, state="succeeded")
    deployed.drained()


def test_a_dead_letter_message_that_is_moved_to_its_lane_redrives_its_job(deployed: Deployed) -> None:
    job_id = deployed.accepted("demo.poison", {"body": "x"})
    deployed.until(job_id, state="dead")
    generation = deployed.document(job_id).generation
    dead_letter = json.loads(reference(deployed, job_id, generation))
    dead_letter["letter"] = {"type": "demo.poison", "death": "", "error_class": "", "attempts": 1}
    deployed.send(json.dumps(dead_letter))
    deployed.until(job_id, state="dead", holds=lambda found: bool(found["redrives"]))
    assert deployed.document(job_id).generation == generation + 1

"""Limits per key, through the deployed app."""

from datetime import timedelta
from uuid import uuid4

from demo.observe import all_jobs
from tests.e2e.conftest import Deployed
from tidemill.domain.job import Job


def done(deployed: Deployed, job_ids: list[str]) -> list[Job]:
    """Wait until the jobs have succeeded. Returns them in the order of their claims."""
    for job_id in job_ids:
        deployed.until(job_id, state="succeeded")
    jobs = [job for job in all_jobs(deployed.app) if job.id in job_ids]
    return sorted(jobs, key=lambda job: job.lease.claimed_at or job.created_at)


def from_first_to_last(jobs: list[Job]) -> timedelta:
    """From the first claim to the last settle, between which all runs lie."""
    begun = [job.lease.claimed_at for job in jobs if job.lease.claimed_at]
    ended = [job.finished_at for job in jobs if job.finished_at]
    return max(ended) - min(begun)


def test_runs_of_one_key_are_kept_apart_and_others_are_not(deployed: Deployed) -> None:
    alone = {"of": str(uuid4()), "seconds": 0.3}
    crowd = [deployed.accepted("demo.alone", alone) for _ in range(4)]
    other = deployed.accepted("demo.alone", {"of": str(uuid4()), "seconds": 0})

    jobs = done(deployed, crowd)

    # Each run takes 0.3 s. One at a time, no machine is fast enough for less.
    assert from_first_to_last(jobs) >= len(crowd) * timedelta(seconds=0.3)
    assert {(job.attempt, job.errors) for job in jobs} == {(1, ())}
    assert done(deployed, [other])[0].generation == 1


def test_runs_of_one_key_begin_no_faster_than_its_rate(deployed: Deployed) -> None:
    paced = {"of": str(uuid4())}
    jobs = done(deployed, [deployed.accepted("demo.paced", paced) for _ in range(4)])

    # One begins at once, and then one in each second.
    assert from_first_to_last(jobs) >= (len(jobs) - 1) * timedelta(seconds=1)
    assert {(job.attempt, job.errors) for job in jobs} == {(1, ())}

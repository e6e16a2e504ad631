"""Limits per key, through the deployed app."""

from itertools import pairwise
from uuid import uuid4

import pytest

from demo.observe import all_jobs
from tests.e2e.conftest import Deployed
from tidemill.domain.job import Job

pytestmark = pytest.mark.e2e


def done(deployed: Deployed, job_ids: list[str]) -> list[Job]:
    """These jobs once all have succeeded, in the order in which they began."""
    for job_id in job_ids:
        deployed.until(job_id, state="succeeded")
    jobs = [job for job in all_jobs(deployed.app) if job.id in job_ids]
    return sorted(jobs, key=lambda job: job.claimed_at or job.created_at)


def test_runs_of_one_key_are_kept_apart_and_others_are_not(deployed: Deployed) -> None:
    alone = {"of": str(uuid4()), "seconds": 0.3}
    crowd = [deployed.accepted("demo.alone", alone) for _ in range(4)]
    other = deployed.accepted("demo.alone", {"of": str(uuid4()), "seconds": 0})

    jobs = done(deployed, crowd)
    ended = sorted(job.finished_at for job in jobs if job.finished_at)

    # Each takes 0.3 s between entering and leaving, and is settled right after.
    assert min((later - earlier).total_seconds() for earlier, later in pairwise(ended)) > 0.2
    assert {(job.attempt, job.errors) for job in jobs} == {(1, ())}
    assert done(deployed, [other])[0].generation == 1


def test_runs_of_one_key_begin_no_faster_than_its_rate(deployed: Deployed) -> None:
    paced = {"of": str(uuid4())}
    jobs = done(deployed, [deployed.accepted("demo.paced", paced) for _ in range(4)])

    began = [job.claimed_at for job in jobs if job.claimed_at]
    assert (began[-1] - began[0]).total_seconds() >= 2.5
    assert {(job.attempt, job.errors) for job in jobs} == {(1, ())}

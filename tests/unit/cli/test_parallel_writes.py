"""Parallel writes, counted exactly."""

import threading
from collections import Counter
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from tests.support.builders import NOW, a_job
from tidemill.application.redrive import Redriver
from tidemill.cli.parallel_writes import ParallelWrites
from tidemill.domain.errors import StoreUnavailableError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import State


class RedriveStore:
    """A store that only redrives, each job once. `broken` is the id of a job whose write fails."""

    def __init__(self, *, broken: str = "") -> None:
        self.redriven: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._broken = broken

    def redrive(self, job: Job, *, token: str, now: datetime, by: str) -> Job:
        if job.id == self._broken:
            raise StoreUnavailableError("no answer")
        with self._lock:
            if self.redriven[job.id]:
                raise WriteRefusedError("redrive", job)
            self.redriven[job.id] += 1
        return job


def _redriving(store: Any, jobs: list[Job]) -> ParallelWrites:
    redriver = Redriver(store=store, clock=lambda: NOW, new_token=lambda: "token")
    return ParallelWrites(partial(redriver.redrive, by="alice"), jobs, verb="Redrove")


def _dead_jobs(number: int) -> list[Job]:
    return [a_job(state=State.DEAD) for _ in range(number)]


def test_two_concurrent_runs_redrive_each_job_once_and_share_the_count() -> None:
    store, jobs = RedriveStore(), _dead_jobs(500)
    both = [_redriving(store, jobs) for _ in range(2)]
    threads = [threading.Thread(target=one.run, args=(lambda: None,)) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(store.redriven.values()) == {1}
    assert sum(one.written for one in both) == 500
    assert [one.written + one.skipped for one in both] == [500, 500]


def test_the_progress_advances_once_per_job() -> None:
    steps: list[None] = []
    _redriving(RedriveStore(), _dead_jobs(30)).run(lambda: steps.append(None))
    assert len(steps) == 30


def test_after_an_error_the_count_matches_the_writes() -> None:
    jobs = _dead_jobs(200)
    store = RedriveStore(broken=jobs[20].id)
    redriving = _redriving(store, jobs)
    with pytest.raises(StoreUnavailableError):
        redriving.run(lambda: None)
    assert redriving.written == sum(store.redriven.values()) < 200
    assert redriving.summary == f"Redrove {redriving.written} of 200 jobs."


def test_after_ctrl_c_the_count_matches_the_writes() -> None:
    store, jobs = RedriveStore(), _dead_jobs(300)
    redriving = _redriving(store, jobs)
    left = iter(range(10))
    threads = threading.active_count()

    def interrupted() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        redriving.run(interrupted)
    assert redriving.written == sum(store.redriven.values())
    assert threading.active_count() == threads

"""Parallel writes, counted exactly."""

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tests.support.builders import NOW, a_job
from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.control.redrive import Redriver
from tidemill.application.passes.pace import MOST_WRITES_PER_SECOND
from tidemill.cli.control.parallel_writes import BATCH, CONFLICT_TRIES, ParallelWrites
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State


class RedriveStore:
    """A store that only redrives, each job once. `broken` is the id of a job whose write fails."""

    def __init__(self, *, broken: str = "") -> None:
        self.redriven: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._broken = broken

    def redrive(self, job: Job, *, token: str, now: datetime, by: str, reason: str, edited: bool = False) -> Job:
        if job.id == self._broken:
            raise StoreUnavailableError("no answer")
        with self._lock:
            if self.redriven[job.id]:
                raise WriteRefusedError("redrive", job)
            self.redriven[job.id] += 1
        return job


def _redriving(store: Any) -> ParallelWrites:
    redriver = Redriver(store=store, clock=lambda: NOW, new_token=lambda: "token")
    return ParallelWrites(partial(redriver.redrive, by="alice"), verb="Redrove")


def _dead_jobs(number: int) -> list[Job]:
    return [a_job(state=State.DEAD) for _ in range(number)]


def test_two_concurrent_runs_redrive_each_job_once_and_share_the_count() -> None:
    store, jobs = RedriveStore(), _dead_jobs(500)
    both = [_redriving(store) for _ in range(2)]
    threads = [threading.Thread(target=one.run, args=(jobs,)) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(store.redriven.values()) == {1}
    assert sum(one.written for one in both) == 500
    assert [one.written + one.skipped for one in both] == [500, 500]


def _group(name: str, size: int) -> list[Job]:
    return [a_job(state=State.DEAD, group=name, sequence=1 + number) for number in range(size)]


def test_jobs_of_a_group_are_written_one_after_another_in_their_order() -> None:
    groups = [_group(name, 25) for name in ("ada", "ben", "cy")]
    written: list[Job] = []
    at_work: Counter[str | None] = Counter()
    most = Counter[str | None]()

    def write(job: Job) -> bool:
        at_work[job.group.key] += 1
        most[job.group.key] = max(most[job.group.key], at_work[job.group.key])
        written.append(job)
        at_work[job.group.key] -= 1
        return True

    mixed = [job for jobs in zip(*groups, strict=True) for job in jobs]
    ParallelWrites(write, verb="Redrove").run(mixed)

    assert [[job for job in written if job.group.key == group[0].group.key] for group in groups] == groups
    assert set(most.values()) == {1}


def test_groups_of_the_same_name_of_two_tenants_are_independent() -> None:
    job = a_job(group="parcels", sequence=1)
    both = threading.Barrier(2, timeout=PATIENCE_SECONDS)

    def write(_job: Job) -> bool:
        both.wait()
        return True

    ParallelWrites(write, verb="Redrove").run([job, replace(job, tenant="another")])


def test_a_conflict_is_tried_again_and_then_leaves_the_rest_of_its_group() -> None:
    alone, busy, calm = a_job(), _group("busy", 5), _group("calm", 5)
    tries: Counter[str] = Counter()

    def write(job: Job) -> bool:
        tries[job.id] += 1
        if job is calm[2] and tries[job.id] == 1:
            raise TransactionConflictError
        if job is busy[3]:
            raise TransactionConflictError
        return True

    steps: list[None] = []
    redriving = ParallelWrites(write, verb="Redrove")
    redriving.run([alone, *busy, *calm], lambda: steps.append(None))

    assert (redriving.written, redriving.left) == (9, busy[3:])
    assert (tries[busy[3].id], tries[busy[4].id], tries[calm[2].id]) == (CONFLICT_TRIES, 0, 2)
    assert redriving.summary == "Redrove 9 of 11 jobs. Left 2 jobs of busy groups."
    assert len(steps) == 11


def test_the_progress_advances_once_per_job() -> None:
    steps: list[None] = []
    _redriving(RedriveStore()).run(_dead_jobs(30), lambda: steps.append(None))
    assert len(steps) == 30


def test_after_an_error_the_count_matches_the_writes() -> None:
    jobs = _dead_jobs(200)
    store = RedriveStore(broken=jobs[20].id)
    redriving = _redriving(store)
    with pytest.raises(StoreUnavailableError):
        redriving.run(jobs)
    assert redriving.written == sum(store.redriven.values()) < 200
    assert redriving.summary == f"Redrove {redriving.written} of 200 jobs."


def test_after_ctrl_c_the_count_matches_the_writes() -> None:
    store, jobs = RedriveStore(), _dead_jobs(300)
    redriving = _redriving(store)
    left = iter(range(10))
    threads = threading.active_count()

    def interrupted() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        redriving.run(jobs, interrupted)
    assert redriving.written == sum(store.redriven.values())
    assert threading.active_count() == threads


def test_a_busy_group_is_left_in_later_batches_too() -> None:
    busy = _group("busy", 3)
    others = [a_job() for _ in range(BATCH)]
    tried: list[Job] = []

    def write(job: Job) -> bool:
        tried.append(job)
        if job is busy[0]:
            raise TransactionConflictError
        return True

    redriving = ParallelWrites(write, verb="Redrove")
    redriving.run([busy[0], *others, *busy[1:]])

    assert (redriving.written, redriving.left) == (BATCH, busy)
    assert not {job.id for job in busy[1:]} & {job.id for job in tried}


def test_only_one_batch_of_the_stream_is_held() -> None:
    """A redrive of any number of jobs takes the memory of one batch."""
    read, written, most = 0, 0, 0
    lock = threading.Lock()

    def stream() -> Iterator[Job]:
        nonlocal read, most
        for _ in range(3 * BATCH + 1):
            read += 1
            most = max(most, read - written)
            yield a_job()

    def write(_job: Job) -> bool:
        nonlocal written
        with lock:
            written += 1
        return True

    ParallelWrites(write, verb="Redrove").run(stream())

    assert written == 3 * BATCH + 1
    assert most == BATCH


def test_a_rate_spreads_the_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 25 jobs at 10 a second, the last ones are written after two seconds."""
    waited: list[float] = []
    monkeypatch.setattr(
        "tidemill.cli.control.parallel_writes.clock.steady", lambda: NOW + sum(waited) * timedelta(seconds=1)
    )
    monkeypatch.setattr("tidemill.cli.control.parallel_writes.time.sleep", waited.append)

    redriving = ParallelWrites(lambda _job: True, verb="Redrove", rate=10)
    redriving.run(_dead_jobs(25))

    assert redriving.written == 25
    assert waited == [1.0, 1.0]


def test_a_single_batch_waits_for_nothing_and_the_next_run_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(
        "tidemill.cli.control.parallel_writes.clock.steady", lambda: NOW + sum(waited) * timedelta(seconds=1)
    )
    monkeypatch.setattr("tidemill.cli.control.parallel_writes.time.sleep", waited.append)
    redriving = ParallelWrites(lambda _job: True, verb="Redrove", rate=10)

    redriving.run(_dead_jobs(5))
    assert waited == []

    redriving.run(_dead_jobs(5))
    assert waited == [0.5]


def test_an_operators_command_writes_a_thousand_jobs_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in each second of a clock that only the pauses move."""
    now = [NOW]
    written: Counter[int] = Counter()

    def pause(seconds: float) -> None:
        now[0] += timedelta(seconds=seconds)

    def write(_job: Job) -> bool:
        written[(now[0] - NOW) // timedelta(seconds=1)] += 1
        return True

    monkeypatch.setattr("tidemill.cli.control.parallel_writes.clock.steady", lambda: now[0])
    monkeypatch.setattr("tidemill.cli.control.parallel_writes.time.sleep", pause)

    redriving = ParallelWrites(write, verb="Redrove", rate=MOST_WRITES_PER_SECOND)
    redriving.run(a_job() for _ in range(5 * MOST_WRITES_PER_SECOND))

    assert redriving.written == sum(written.values()) == 5 * MOST_WRITES_PER_SECOND
    # A batch waits for the one before it, so the last one is not paid for.
    assert timedelta(seconds=4.5) <= now[0] - NOW <= timedelta(seconds=5)
    assert max(written.values()) <= MOST_WRITES_PER_SECOND + BATCH

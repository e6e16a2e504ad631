"""`elect_probe`: which parked job probes an open breaker, and when none is elected."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tests.support.one_breaker import CLOSED, DUE, ELECTED, Worker
from tidemill.application.breakers.probe_election import elect_probe
from tidemill.domain.breakers.breaker import Breaker, BreakerState
from tidemill.domain.errors import TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Cause, Line, Wait

LINE = Line.for_breaker("pay")
WAIT = Wait(cause=Cause.BREAKER, key="pay", since=NOW)


class Parked:
    """The line of the breaker: what the index shows, and the jobs that cannot be unparked any more."""

    def __init__(self, *jobs: Job, cancelled: Sequence[Job] = (), document: Job | None = None) -> None:
        self.jobs = jobs
        self.cancelled = [job.id for job in cancelled]
        self.document = document
        self.reads: list[tuple[int, datetime | None]] = []
        self.unparked: list[tuple[Job, datetime, datetime]] = []
        self.unpark_calls = 0
        self.refusal: Exception = WriteRefusedError("unpark", None)

    def parked(self, line: Line, *, most: int, since: datetime | None = None) -> Sequence[Job]:
        assert line == LINE
        self.reads.append((most, since))
        return [job for job in self.jobs if since is None or job.created_at >= since][:most]

    def get(self, _tenant: str, _job_id: str) -> Job | None:
        return self.document

    def unpark(self, job: Job, *, now: datetime, due: datetime) -> None:
        self.unpark_calls += 1
        if job.id in self.cancelled:
            raise self.refusal
        self.unparked.append((job, now, due))


def _jobs(count: int, tenant: str = "t") -> list[Job]:
    return [a_job(tenant=tenant, wait=WAIT, created_at=NOW + n * SECOND) for n in range(count)]


def _elected(worker: Worker, store: Parked, parked: Job | None = None) -> Job | None:
    return elect_probe(
        LINE,
        breakers=worker.breakers,
        store=store,  # type: ignore[arg-type]  # it needs no more
        clock=lambda: worker.now,
        parked=parked,
    )


@pytest.mark.parametrize("called_ago", [timedelta(seconds=15), timedelta(seconds=5)])
def test_the_first_job_of_the_line_is_queued_for_the_time_of_the_probe(called_ago: timedelta) -> None:
    jobs = _jobs(2)
    worker, store = Worker(replace(DUE, called_at=NOW - called_ago)), Parked(*jobs)

    assert _elected(worker, store) is jobs[0]

    probe_at = NOW + 15 * SECOND - called_ago
    assert store.unparked == [(jobs[0], NOW, probe_at)]
    breaker = worker.item.breaker
    assert (breaker.probe, breaker.probe_at) == (("t", jobs[0].id), probe_at)
    assert store.reads == [(3, None)]


@pytest.mark.parametrize("breaker", [CLOSED, ELECTED, replace(DUE, state=BreakerState.CLOSED)])
def test_a_breaker_that_needs_no_probe_reads_no_line(breaker: Breaker) -> None:
    store = Parked(*_jobs(1))
    worker = Worker(breaker)

    assert _elected(worker, store) is None
    assert (store.reads, worker.item.reads) == ([], [False])


@pytest.mark.parametrize("present", [ELECTED, CLOSED])
def test_the_breaker_is_read_afresh_before_an_election(present: Breaker) -> None:
    """Its copy may lag behind the election of another worker."""
    store = Parked(*_jobs(1))
    worker = Worker(replace(present, version=9))
    worker.item.copies = [DUE]

    assert _elected(worker, store) is None
    assert (worker.item.reads, worker.item.tries, store.unpark_calls) == ([False, True], 0, 0)


def test_none_is_elected_if_another_worker_is_faster() -> None:
    store, worker = Parked(*_jobs(2)), Worker(DUE)
    worker.item.faster = [replace(ELECTED, version=4)]

    assert _elected(worker, store) is None
    assert (store.unpark_calls, worker.item.tries) == (0, 1)


@pytest.mark.parametrize("refusal", [WriteRefusedError("unpark", None), TransactionConflictError("busy")])
def test_the_next_job_is_elected_if_the_first_is_cancelled_just_now_or_in_a_transaction(refusal: Exception) -> None:
    jobs = _jobs(3)
    store, worker = Parked(*jobs, cancelled=jobs[:2]), Worker(DUE)
    store.refusal = refusal

    assert _elected(worker, store) is jobs[2]
    assert worker.item.breaker.probe == ("t", jobs[2].id)


def test_at_most_three_jobs_are_tried_and_the_breaker_is_left_without_a_probe() -> None:
    jobs = _jobs(4)
    store = Parked(*jobs, cancelled=jobs)
    worker = Worker(replace(DUE, failed_probe=("t", "failed"), failed_probe_created=NOW))

    assert _elected(worker, store) is None
    assert store.unpark_calls == 3
    assert worker.item.breaker.probe is None


def test_no_job_that_waits_means_no_probe() -> None:
    worker = Worker(DUE)

    assert _elected(worker, Parked()) is None
    assert worker.item.breaker == DUE


@pytest.mark.parametrize(
    ("wait", "comes"),
    [(WAIT, True), (None, False), (Wait(cause=Cause.BREAKER, key="mail", since=NOW), False)],
)
def test_a_job_that_was_just_parked_is_elected_though_the_index_does_not_show_it(
    wait: Wait | None, comes: bool
) -> None:
    job = a_job(tenant="t", wait=WAIT)
    document = replace(job, wait=wait, generation=2)

    assert _elected(Worker(DUE), Parked(document=document), job) == (document if comes else None)
    assert _elected(Worker(DUE), Parked(document=None), job) is None


def test_the_index_comes_before_the_job_that_was_just_parked() -> None:
    jobs, parked = _jobs(1), a_job(tenant="t", wait=WAIT)

    assert _elected(Worker(DUE), Parked(*jobs, document=parked), parked) is jobs[0]


def test_the_line_goes_on_behind_the_probe_that_failed() -> None:
    jobs = _jobs(30)
    failed = jobs[2]
    breaker = replace(DUE, failed_probe=("t", failed.id), failed_probe_created=failed.created_at)
    store = Parked(*jobs)

    assert _elected(Worker(breaker), store) is jobs[3]
    assert store.reads == [(25, failed.created_at)]


@pytest.mark.parametrize("failed_tenant", ["t", "u"])
def test_after_its_last_job_the_line_begins_again(failed_tenant: str) -> None:
    jobs = _jobs(2)
    failed = replace(jobs[1], tenant=failed_tenant)
    breaker = replace(DUE, failed_probe=(failed_tenant, failed.id), failed_probe_created=failed.created_at)
    store = Parked(jobs[0], failed)

    assert _elected(Worker(breaker), store) is jobs[0]
    assert store.reads == [(25, failed.created_at), (25, None)]


def test_a_job_of_another_tenant_with_the_id_of_the_failed_probe_is_another_job() -> None:
    (job,) = _jobs(1)
    breaker = replace(DUE, failed_probe=("u", job.id), failed_probe_created=job.created_at)
    store = Parked(job)

    assert _elected(Worker(breaker), store) is job
    assert store.reads == [(25, job.created_at)]

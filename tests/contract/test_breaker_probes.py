"""A breaker closes once its service works with any jobs in its line, and an outage costs no attempt."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, stored
from tests.support.configurations import configured
from tests.support.failing_downstream import PAYMENTS, Downstream
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tests.support.patience import PATIENCE_SECONDS
from tests.support.single_job import Clock, carried_out
from tidemill import Breaker as Declared
from tidemill import Run, WaitFor
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.ports import LimitSlot
from tidemill.domain.breakers.breaker import HEARD_WITHIN, BreakerState
from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Limit
from tidemill.domain.operations.runtime_configuration import NOTHING_SET
from tidemill.domain.operations.setting import Setting
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits

LINE = Line.for_breaker("payments")
PROBE_AT = NOW + 15 * SECOND


@pytest.fixture
def downstream(
    client: FaultyClient, table: Table, store: DynamoJobStore, limits: DynamoLimits, clock: Clock
) -> Downstream:
    return Downstream(client, table, store, limits, clock)


def play(downstream: Downstream, store: DynamoJobStore, jobs: list[Job], *, until_closed: str, most: int) -> int:
    """Runs each job at its time, and releases. How many runs it took until the breaker closed."""
    for runs in range(most):
        if downstream.stored.read(until_closed, consistent=True).closed:
            return runs
        live = [job for job in (stored(store, each) for each in jobs) if job.state in {State.QUEUED, State.RETRYING}]
        if not live:
            downstream.clock.now += 60 * SECOND
            downstream.releaser.release_from_breaker(Line.for_breaker(until_closed))
            continue
        first = min(live, key=lambda job: job.due or NOW)
        downstream.clock.now = max(downstream.clock.now, first.due or NOW) + SECOND / 50
        downstream.run(first)
    raise AssertionError("the breaker did not close")


def test_a_job_whose_own_call_always_fails_does_not_keep_it_open(downstream: Downstream, store: DynamoJobStore) -> None:
    poison: list[str] = []

    def handle(_payload: Any, run: Run) -> None:
        if run.job_id in poison or downstream.error:
            raise TimeoutError

    downstream.declare(handle, PAYMENTS)
    jobs = [downstream.submit(created_at=NOW + number * SECOND) for number in range(6)]
    poison += [job.id for job in jobs[:3]]
    for job in jobs:
        downstream.run(job)
    downstream.error = None

    play(downstream, store, jobs, until_closed="payments", most=8)


def test_jobs_that_end_without_a_call_cost_no_interval(downstream: Downstream, store: DynamoJobStore) -> None:
    downstream.fail_twice()
    late = [downstream.submit(created_at=NOW - number * SECOND, useful_until=PROBE_AT) for number in range(1, 9)]
    jobs = [*late, downstream.submit(created_at=NOW + SECOND)]
    for job in jobs:
        downstream.run(job)
    downstream.error, downstream.clock.now = None, PROBE_AT + SECOND

    play(downstream, store, jobs, until_closed="payments", most=14)

    assert downstream.clock.now < PROBE_AT + 150 * SECOND, "two minutes of wake, and no interval for each of the jobs"


def test_a_lane_that_is_minutes_behind_still_has_its_probe(downstream: Downstream, store: DynamoJobStore) -> None:
    _, probe = downstream.fail_twice()
    waiting = downstream.submit()
    downstream.run(waiting)
    downstream.error, downstream.clock.now = None, PROBE_AT + timedelta(minutes=2)
    assert downstream.releaser.release_from_breaker(LINE), "wake has elected another"

    assert downstream.run(stored(store, probe)).ending is Ending.SUCCEEDED

    assert downstream.breaker.closed


def test_a_probe_that_finds_no_slot_calls_once_it_has_one(
    downstream: Downstream, store: DynamoJobStore, limits: DynamoLimits
) -> None:
    """Other runs of its limit, or of its tenant with a cap, may keep all slots busy for the whole outage."""
    downstream.limit_to(Limit(concurrency=1))
    jobs = downstream.fail_twice()
    downstream.error, downstream.clock.now = None, PROBE_AT
    line = downstream.type.limit_line({}, tenant=jobs[0].tenant, lane=jobs[0].lane)
    assert line
    other = LimitSlot(
        line=line, limit=Limit(concurrency=1), token="other", until=NOW + timedelta(hours=1), job=("t", "other")
    )
    limits.acquire(other, now=NOW)
    (elected,) = [job for job in jobs if (job.tenant, job.id) == downstream.breaker.probe]

    downstream.run(stored(store, elected))
    waits = stored(store, elected)
    assert (waits.state, waits.wait and waits.wait.line, downstream.calls) == (State.PARKED, line, 2)

    downstream.clock.now += 3 * SECOND
    downstream.releaser.leave(other, line_stands=True)
    downstream.run(stored(store, elected))

    assert (stored(store, elected).state, downstream.calls) == (State.SUCCEEDED, 3)
    assert downstream.breaker.closed


@pytest.mark.parametrize("interval", [15, 60])
def test_two_breakers_of_one_type_close(downstream: Downstream, store: DynamoJobStore, interval: int) -> None:
    one = Declared("one", failure_threshold=1, probe_seconds=15)
    two = Declared("two", failure_threshold=1, probe_seconds=interval)
    calls = []

    def handle(_payload: Any, _run: Run) -> None:
        calls.append(downstream.clock.now)
        if downstream.error:
            raise downstream.error

    downstream.declare(handle, one, two)
    jobs = [downstream.submit(created_at=NOW + number * SECOND) for number in range(4)]
    for job in jobs:
        downstream.run(job)
    downstream.error = None

    play(downstream, store, jobs, until_closed="one", most=30)
    play(downstream, store, jobs, until_closed="two", most=30)

    assert calls[1] - calls[0] < timedelta(minutes=3)


def test_a_call_that_hangs_in_a_block_counts_and_the_end_of_its_thread_does_not(
    downstream: Downstream, store: DynamoJobStore
) -> None:
    entered, leave = threading.Event(), threading.Event()

    def handle(_payload: Any, _run: Run) -> None:
        with PAYMENTS:
            entered.set()
            leave.wait(PATIENCE_SECONDS)

    downstream.declare(handle)
    attempts = []
    for _ in range(2):
        job = downstream.submit()
        entered.clear()
        attempt = downstream.attempt(job)
        thread = threading.Thread(target=carried_out, args=(attempt,))
        thread.start()
        assert entered.wait(PATIENCE_SECONDS)
        attempt.expire()
        attempts.append(stored(store, job).attempt)
        downstream.clock.now += HEARD_WITHIN
        if len(attempts) == 2:
            assert downstream.breaker.state is BreakerState.OPEN
        leave.set()
        thread.join()
        leave.clear()

    assert attempts == [1, 0], "no attempt is used once it is open"
    assert downstream.breaker.state is BreakerState.OPEN


def test_each_failed_call_of_one_run_counts(downstream: Downstream) -> None:
    def handle(_payload: Any, _run: Run) -> None:
        for _ in range(5):
            try:
                PAYMENTS.call(downstream.fail)
            except TimeoutError:
                continue

    downstream.declare(handle)

    assert downstream.run(downstream.submit()).ending is Ending.PARKED
    assert (downstream.calls, downstream.breaker.state) == (2, BreakerState.OPEN)


def test_the_success_of_a_probe_is_written_once_the_store_responds(
    downstream: Downstream, client: FaultyClient, store: DynamoJobStore
) -> None:
    _, probe = downstream.fail_twice()
    downstream.clock.now = PROBE_AT

    def handle(_payload: Any, _run: Run) -> None:
        client.faults = [Fault.NOT_SENT]

    downstream.declare(handle, PAYMENTS)

    assert downstream.run(stored(store, probe)).ending is Ending.SUCCEEDED
    assert downstream.breaker.closed


def test_a_probe_that_waits_for_something_else_closes_nothing(downstream: Downstream, store: DynamoJobStore) -> None:
    _, probe = downstream.fail_twice()
    downstream.clock.now = PROBE_AT
    downstream.declare(lambda _payload, _run: WaitFor("approval", timeout=timedelta(hours=1)), PAYMENTS)

    downstream.run(stored(store, probe))

    assert downstream.breaker.state is BreakerState.OPEN


def test_after_a_forced_opening_a_probe_comes_first(downstream: Downstream, store: DynamoJobStore) -> None:
    downstream.error = None
    downstream.settings = configured(_forced("open"))
    jobs = [downstream.submit(created_at=NOW + number * SECOND) for number in range(3)]
    for job in jobs:
        downstream.run(job)
    assert downstream.releaser.release_from_breaker(LINE) == []
    downstream.settings = NOTHING_SET

    (probe,) = downstream.releaser.release_from_breaker(LINE)

    assert (probe.id, probe.state) == (jobs[0].id, State.PARKED)
    assert stored(store, probe).due == PROBE_AT


def test_what_runs_while_it_is_forced_closed_decides_nothing(downstream: Downstream) -> None:
    downstream.settings = configured(_forced("closed"))
    for _ in range(3):
        assert downstream.run(downstream.submit()).ending is Ending.RETRYING
    assert downstream.breaker.version == 0

    assert downstream.breaker.failures == 0


@pytest.mark.parametrize(
    ("forced", "ending", "probed"),
    [("closed", Ending.SUCCEEDED, True), ("open", Ending.PARKED, False)],
)
def test_a_job_of_two_downstreams_follows_the_force_of_one_and_probes_the_other_only_if_it_runs(
    downstream: Downstream, forced: str, ending: Ending, probed: bool
) -> None:
    def handle(_payload: Any, _run: Run) -> None:
        if downstream.error:
            raise downstream.error

    downstream.declare(
        handle, *(Declared(name, failure_threshold=1, probe_seconds=15) for name in ("other", "payments"))
    )
    downstream.run(downstream.submit())
    downstream.error, downstream.clock.now = None, PROBE_AT
    downstream.settings = configured(_forced(forced))

    assert downstream.run(downstream.submit()).ending is ending

    assert downstream.stored.read("other", consistent=True).closed is probed
    assert not downstream.breaker.closed, "its force decides, and not its state"


def _forced(state: str) -> Setting:
    return Setting(name="breakers.payments", value={"force": state}, at=NOW, by="eve", reason="")

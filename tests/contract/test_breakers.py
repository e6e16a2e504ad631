"""Breakers over one table: counted failures, the opening, one probe, the drain, and runs that wait."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, stored
from tests.support.configurations import configured
from tests.support.failing_downstream import PAYMENTS, Downstream
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill import Run
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.breakers.breakers import CACHED_FOR
from tidemill.application.ports import WHOLE
from tidemill.application.waiting.release import Released
from tidemill.domain.breakers.breaker import Breaker, BreakerState
from tidemill.domain.job import Job
from tidemill.domain.operations.runtime_configuration import NOTHING_SET
from tidemill.domain.operations.setting import Setting
from tidemill.domain.states import State
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits


@pytest.fixture
def downstream(
    client: FaultyClient, table: Table, store: DynamoJobStore, limits: DynamoLimits, clock: Clock
) -> Downstream:
    return Downstream(client, table, store, limits, clock)


def test_the_run_that_reaches_the_threshold_opens_it_and_keeps_its_attempt(
    downstream: Downstream, store: DynamoJobStore
) -> None:
    first, second = downstream.fail_twice()

    assert downstream.breaker.state is BreakerState.OPEN
    assert (stored(store, first).state, stored(store, first).attempt) == (State.RETRYING, 1)
    waiting = stored(store, second)
    assert (waiting.attempt, len(waiting.errors)) == (0, 0)
    assert waiting.state is State.QUEUED, "it is elected as the probe"
    assert waiting.due == NOW + 15 * SECOND


def test_a_dependent_is_parked_without_a_call_while_it_is_open(downstream: Downstream, store: DynamoJobStore) -> None:
    downstream.fail_twice()
    calls, job = downstream.calls, downstream.submit()

    assert downstream.run(job).ending is Ending.PARKED

    parked = stored(store, job)
    assert parked.wait is not None
    assert (str(parked.wait.cause), parked.wait.key, parked.attempt) == ("breaker", "payments", 0)
    assert downstream.calls == calls


def test_a_probe_that_fails_is_followed_by_another_an_interval_later(
    downstream: Downstream, store: DynamoJobStore
) -> None:
    _, probe = downstream.fail_twice()
    assert downstream.breaker.last_error == "TimeoutError"
    downstream.clock.now, downstream.error = NOW + 15 * SECOND, ExceptionGroup("of 4111", [ConnectionError("4111")])

    downstream.run(stored(store, probe))

    assert (downstream.breaker.state, downstream.breaker.probes) == (BreakerState.OPEN, 1)
    assert downstream.breaker.last_error == "ConnectionError", "its message may quote the payload of another tenant"
    again = stored(store, probe)
    assert (again.state, again.attempt, again.due) == (State.QUEUED, 0, NOW + 30 * SECOND)


def test_one_job_probes_and_the_others_wait(downstream: Downstream, store: DynamoJobStore) -> None:
    _, probe = downstream.fail_twice()
    newcomer = downstream.submit(created_at=NOW - SECOND)
    downstream.clock.now = NOW + 15 * SECOND
    calls = downstream.calls

    assert downstream.run(newcomer).ending is Ending.PARKED
    assert downstream.run(stored(store, probe)).ending is Ending.PARKED
    assert downstream.calls == calls + 1, "the first that came was the probe"


def test_a_probe_that_succeeds_closes_it_and_the_line_drains(downstream: Downstream, store: DynamoJobStore) -> None:
    _, probe = downstream.fail_twice()
    waiting = [downstream.submit(created_at=NOW + number * SECOND) for number in range(2, 6)]
    for job in waiting:
        downstream.run(job)
    downstream.error, downstream.clock.now = None, NOW + 15 * SECOND

    assert downstream.run(stored(store, probe)).ending is Ending.SUCCEEDED

    assert downstream.breaker.state is BreakerState.CLOSED
    released = [stored(store, job) for job in waiting]
    assert {job.state for job in released} == {State.QUEUED}
    assert [job.due for job in released] == [downstream.clock.now + number * SECOND / 5 for number in range(4)]


def test_a_probe_whose_downstream_refuses_its_call_for_ever_closes_it(
    downstream: Downstream, store: DynamoJobStore
) -> None:
    class NotFoundError(Exception):
        status_code = 404

    _, probe = downstream.fail_twice()
    downstream.error, downstream.clock.now = NotFoundError(), NOW + 15 * SECOND

    assert downstream.run(stored(store, probe)).ending is Ending.RETRYING
    assert downstream.breaker.state is BreakerState.CLOSED


def test_a_defect_of_the_handler_neither_opens_nor_closes_it(downstream: Downstream, store: DynamoJobStore) -> None:
    downstream.error = KeyError("a")
    for _ in range(3):
        downstream.run(downstream.submit())
    assert downstream.breaker == Breaker(name="payments")
    downstream.error = TimeoutError()
    _, probe = downstream.fail_twice()
    downstream.error, downstream.clock.now = KeyError("a"), NOW + 15 * SECOND

    assert downstream.run(stored(store, probe)).ending is Ending.RETRYING
    assert downstream.breaker.state is BreakerState.OPEN


def test_wake_replaces_a_probe_that_does_not_come(downstream: Downstream, store: DynamoJobStore) -> None:
    _, probe = downstream.fail_twice()
    store.cancel(stored(store, probe), now=NOW)
    other = downstream.submit()
    downstream.run(other)
    assert downstream.releaser.release_from_breaker(_line(stored(store, other))) == []
    downstream.clock.now = downstream.breaker.probe_until

    (elected,) = downstream.releaser.release_from_breaker(_line(stored(store, other)))

    assert elected.id == other.id
    assert downstream.breaker.probe == (other.tenant, other.id)


def test_the_line_drains_too_if_a_job_that_did_not_wait_was_the_probe(
    downstream: Downstream, store: DynamoJobStore
) -> None:
    _, probe = downstream.fail_twice()
    waiting = downstream.submit(created_at=NOW + 2 * SECOND)
    downstream.run(waiting)
    downstream.error, downstream.clock.now = None, NOW + 15 * SECOND

    assert downstream.run(downstream.submit()).ending is Ending.SUCCEEDED

    assert stored(store, probe).state is State.QUEUED
    assert stored(store, waiting).state is State.QUEUED, "it need not wait for wake"


def test_an_open_breaker_without_waiting_jobs_is_probed_by_the_next_that_comes(
    downstream: Downstream, store: DynamoJobStore
) -> None:
    _, probe = downstream.fail_twice()
    store.cancel(stored(store, probe), now=NOW)
    downstream.error, downstream.clock.now = None, downstream.breaker.probe_until

    assert downstream.run(downstream.submit()).ending is Ending.SUCCEEDED
    assert downstream.breaker.state is BreakerState.CLOSED


def test_failures_of_an_earlier_window_do_not_count(downstream: Downstream) -> None:
    downstream.run(downstream.submit())
    downstream.clock.now = NOW + 10 * SECOND

    downstream.run(downstream.submit())

    assert (downstream.breaker.failures, downstream.breaker.state) == (1, BreakerState.CLOSED)


def test_successes_since_the_last_write_count_as_calls(downstream: Downstream) -> None:
    downstream.error = None
    for _ in range(4):
        downstream.run(downstream.submit())
    downstream.error = TimeoutError()

    for _ in range(2):
        downstream.run(downstream.submit())

    assert (downstream.breaker.failures, downstream.breaker.calls) == (2, 6)
    assert downstream.breaker.state is BreakerState.CLOSED


@pytest.mark.parametrize(
    ("after", "state", "calls"),
    [(300 * SECOND - SECOND, BreakerState.OPEN, 2), (300 * SECOND, BreakerState.CLOSED, 6)],
)
def test_soon_after_it_closed_successes_from_before_the_first_failure_do_not_count(
    downstream: Downstream, store: DynamoJobStore, after: timedelta, state: BreakerState, calls: int
) -> None:
    _, probe = downstream.fail_twice()
    downstream.error, downstream.clock.now = None, NOW + 15 * SECOND
    downstream.run(stored(store, probe))
    downstream.clock.now += after
    for _ in range(4):
        downstream.run(downstream.submit())
    downstream.error = TimeoutError()

    for _ in range(2):
        downstream.run(downstream.submit())

    assert (downstream.breaker.state, downstream.breaker.calls) == (state, calls)


def test_soon_after_it_closed_successes_between_two_failures_count(
    downstream: Downstream, store: DynamoJobStore
) -> None:
    _, probe = downstream.fail_twice()
    downstream.error, downstream.clock.now = None, NOW + 15 * SECOND
    downstream.run(stored(store, probe))
    for failing in (True, False, False, False, True):
        downstream.error = TimeoutError() if failing else None
        downstream.run(downstream.submit())
        downstream.clock.now += SECOND

    assert (downstream.breaker.failures, downstream.breaker.calls) == (2, 5)
    assert downstream.breaker.closed


def test_a_healthy_downstream_costs_one_read_in_each_time_of_the_cache_and_no_write(downstream: Downstream) -> None:
    class ReadOnly(DynamoBreakers):
        """Fails a test that writes."""

        def read(self, name: str, *, consistent: bool = False) -> Breaker:
            reads.append(consistent)
            return downstream.stored.read(name, consistent=consistent)

    reads: list[bool] = []
    downstream.breakers._store = ReadOnly(None, table="")  # type: ignore[arg-type]
    downstream.error = None
    for _ in range(3):
        downstream.run(downstream.submit())
    assert reads == [False]
    downstream.clock.now = NOW + CACHED_FOR

    assert downstream.run(downstream.submit()).ending is Ending.SUCCEEDED
    assert reads == [False, False]


def test_an_open_breaker_of_a_block_parks_the_job(downstream: Downstream) -> None:
    entered = []

    def handle(_payload: Any, _run: Run) -> None:
        with PAYMENTS:
            entered.append(1)
            raise TimeoutError

    downstream.declare(handle)
    endings = [downstream.run(downstream.submit()).ending for _ in range(4)]

    assert endings == [Ending.RETRYING, Ending.PARKED, Ending.PARKED, Ending.PARKED]
    assert len(entered) == 2


def test_outside_of_a_worker_a_block_only_runs() -> None:
    assert PAYMENTS.call(lambda value: value + 1, 1) == 2
    with pytest.raises(TimeoutError), PAYMENTS:
        raise TimeoutError


def test_each_opening_and_each_closing_is_reported_once(downstream: Downstream, store: DynamoJobStore) -> None:
    _, probe = downstream.fail_twice()
    downstream.error, downstream.clock.now = None, NOW + 15 * SECOND
    downstream.run(stored(store, probe))

    states = [(str(before.state), str(after.state)) for before, after in downstream.moves]

    assert states == [("closed", "open"), ("open", "open"), ("open", "half-open"), ("half-open", "closed")]


def test_a_breaker_that_is_forced_open_parks_its_jobs_until_the_setting_is_removed(
    downstream: Downstream, store: DynamoJobStore
) -> None:
    downstream.error = None
    downstream.settings = configured(_forced("open"))
    job = downstream.submit()

    assert downstream.run(job).ending is Ending.PARKED
    line = _line(stored(store, job))
    assert downstream.releaser.release_from_breaker(line) == []
    downstream.settings = NOTHING_SET

    (released,) = downstream.releaser.release_from_breaker(line)
    assert (released.id, downstream.calls) == (job.id, 0)


def test_a_breaker_that_is_forced_closed_lets_all_jobs_run(downstream: Downstream, store: DynamoJobStore) -> None:
    downstream.fail_twice()
    waiting = downstream.submit()
    downstream.run(waiting)
    downstream.settings = configured(_forced("closed"))

    assert downstream.run(downstream.submit()).ending is Ending.RETRYING
    assert [job.id for job in downstream.releaser.release_from_breaker(_line(stored(store, waiting)))] == [waiting.id]


def test_wake_reports_how_long_it_is_open_without_a_read_more(
    downstream: Downstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    downstream.fail_twice()
    for _ in range(2):
        downstream.run(downstream.submit())
    downstream.clock.now += timedelta(minutes=20)
    reads: list[bool] = []
    read = downstream.stored.read

    def counted(name: str, *, consistent: bool = False) -> Breaker:
        reads.append(consistent)
        return read(name, consistent=consistent)

    with monkeypatch.context() as counting:
        counting.setattr(downstream.stored, "read", counted)
        assert _woken(downstream).breaker_open == timedelta(minutes=20)
    assert reads.count(False) == 1, "it releases with what it has read"

    downstream.clock.now += timedelta(minutes=1)
    downstream.settings = configured(_forced("open"))
    assert _woken(downstream).breaker_open == timedelta(0), "the operator who forces it knows"


def test_wake_reports_no_open_breaker_for_which_no_job_waits(downstream: Downstream, store: DynamoJobStore) -> None:
    downstream.fail_twice()
    jobs = [downstream.submit() for _ in range(2)]
    for job in jobs:
        downstream.run(job)
    downstream.clock.now += timedelta(minutes=20)
    assert _woken(downstream).breaker_open == timedelta(minutes=20)

    for job in jobs:
        store.cancel(stored(store, job), now=downstream.clock.now)
    downstream.clock.now += timedelta(minutes=5)
    assert _woken(downstream).breaker_open == timedelta(0)


def test_wake_reports_no_closed_breaker(downstream: Downstream) -> None:
    downstream.fail_twice()
    downstream.run(downstream.submit())
    downstream.error = None
    downstream.clock.now += timedelta(minutes=1)
    downstream.run(downstream.submit())
    assert downstream.breaker.closed

    assert _woken(downstream).breaker_open == timedelta(0)


def _woken(downstream: Downstream) -> Released:
    return downstream.releaser.release_all(part=WHOLE, in_time=lambda: True, draw=lambda: 0.5)


def _forced(state: str) -> Setting:
    return Setting(name="breakers.payments", value={"force": state}, at=NOW, by="eve", reason="")


def _line(job: Job) -> Any:
    assert job.wait is not None
    return job.wait.line

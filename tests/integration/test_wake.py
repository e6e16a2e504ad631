"""Wake through its function: from the index to the lane, exact to the second."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import SECOND, a_job, stored
from tests.support.deployed_functions import TENANT, Context, Mill
from tests.support.job_tables import client
from tests.support.parked_jobs import LINE, enter, park
from tidemill import composition
from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.waiting.wake import Waker
from tidemill.domain.breakers.breaker import Breaker, elected, opened
from tidemill.domain.job import Job
from tidemill.domain.limits.limit_state import run_name
from tidemill.domain.limits.limits import Rate
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.entrypoints import wake
from tidemill.names import WAKE_INTERVAL_SECONDS, WAKE_PART, WAKE_PARTS, WAKE_WINDOW_SECONDS

WINDOW = timedelta(seconds=WAKE_WINDOW_SECONDS)
TICK = Context(timedelta(seconds=WAKE_INTERVAL_SECONDS))


@pytest.fixture
def delays() -> Iterator[list[int]]:
    """The delay in seconds of each sent message."""
    noted: list[int] = []

    def note(params: Any, **_rest: Any) -> None:
        noted.extend(entry["DelaySeconds"] for entry in params["Entries"])

    event, events = "before-parameter-build.sqs.SendMessageBatch", client("sqs").meta.events
    events.register(event, note)
    yield noted
    events.unregister(event, note)


def submitted(mill: Mill, **when: Any) -> Job:
    return composition.parts().submit(Submission(type="test.scripted", **when), tenant=TENANT, trace="a test").job


def test_a_job_far_ahead_is_dispatched_only_shortly_before_it_is_due(mill: Mill, delays: list[int]) -> None:
    mill.stop_clock()
    job = submitted(mill, delay=timedelta(hours=3))
    assert job.due is not None

    for early in (timedelta(0), timedelta(hours=3) - WINDOW - timedelta(minutes=1)):
        mill.late = early
        wake.handle({}, TICK)
        assert mill.publish() == []
    assert (mill.job(job.id).state, delays) == (State.SCHEDULED, [])

    mill.late = timedelta(hours=3) - timedelta(minutes=4)
    wake.handle({}, TICK)
    assert mill.publish() == []

    assert mill.job(job.id).state is State.QUEUED
    (delay,) = delays
    # The message has the remaining seconds as its delay, so it arrives when the job is due.
    assert delay - 1 <= (job.due - mill.now()).total_seconds() <= delay
    assert delay == pytest.approx(240, abs=5)


def test_two_concurrent_calls_make_one_message(mill: Mill, delays: list[int]) -> None:
    submitted(mill, delay=timedelta(hours=3))
    mill.late = timedelta(hours=3)

    wake.handle({}, TICK)
    wake.handle({}, TICK)
    mill.run()

    assert delays == [0]
    assert mill.depth(mill.queue) == 0


def test_wake_after_an_outage_of_the_scheduler_runs_overdue_jobs(mill: Mill) -> None:
    jobs = [submitted(mill, delay=timedelta(minutes=20 + number)) for number in range(15)]
    mill.late = timedelta(hours=5)

    wake.handle({}, TICK)
    mill.run()

    assert {mill.job(job.id).state for job in jobs} == {State.SUCCEEDED}


def test_the_calls_of_one_minute_wake_all_jobs_together(mill: Mill) -> None:
    mill.stop_clock()
    # So many that each part has some.
    jobs = [submitted(mill, delay=timedelta(minutes=20)) for _ in range(60)]
    mill.late = timedelta(hours=1)
    asleep = []

    for part in range(3):
        wake.handle({"part": str(part), "parts": "3"}, TICK)
        asleep.append(sum(mill.job(job.id).state is State.SCHEDULED for job in jobs))

    assert len(jobs) > asleep[0] > asleep[1] > asleep[2] == 0


def test_a_call_by_hand_needs_no_event(mill: Mill) -> None:
    job = submitted(mill, delay=timedelta(hours=1))
    mill.late = timedelta(hours=1)

    wake.handle(None, TICK)

    assert mill.job(job.id).state is State.QUEUED


def test_a_cancelled_job_is_not_woken(mill: Mill, delays: list[int]) -> None:
    job = submitted(mill, delay=timedelta(hours=3))
    composition.parts().store.cancel(job, now=mill.now())
    mill.late = timedelta(hours=4)

    wake.handle({}, TICK)
    mill.run()

    assert (mill.job(job.id).state, delays) == (State.CANCELLED, [])


def test_wake_logs_its_result(mill: Mill, caplog: pytest.LogCaptureFixture) -> None:
    mill.stop_clock()
    submitted(mill, delay=timedelta(hours=3))
    mill.late = timedelta(hours=3) + timedelta(minutes=2)

    wake.handle({}, TICK)

    said, metrics = (record.__dict__ for record in caplog.records[-2:])
    assert (said["message"], said["jobs"], said["finished"]) == ("woken", 1, True)
    assert said["ahead_ms"] == pytest.approx(-120_000, abs=5_000)
    assert (metrics["JobsWoken"], metrics["lane"]) == (1, "default")


def test_wake_writes_how_long_the_oldest_breaker_is_open(mill: Mill, caplog: pytest.LogCaptureFixture) -> None:
    mill.stop_clock()
    limits = DynamoLimits(mill.table.client, table=mill.table.name)
    store = DynamoBreakers(mill.table.client, table=mill.table.name)
    for name, minutes in (("payments", 20), ("mail", 40)):
        opened_at = mill.now() - timedelta(minutes=minutes)
        _, breaker = store.move(Breaker(name=name), opened(Breaker(name=name), probe_interval=SECOND, now=opened_at))
        store.move(breaker, elected(breaker, a_job(), now=mill.now()))
        line, rate = Line.for_breaker(name), Rate(count=1, period=timedelta(seconds=1))
        limits.list_line(line, rate, job=(TENANT, "a job"), now=opened_at)

    wake.handle({}, TICK)

    written = [each for record in caplog.records if (each := record.__dict__.get("BreakerOpenSeconds")) is not None]
    assert written == [40 * 60]


def test_without_an_open_breaker_wake_writes_no_age(mill: Mill, caplog: pytest.LogCaptureFixture) -> None:
    mill.stop_clock()

    wake.handle({}, TICK)

    assert not [record for record in caplog.records if "BreakerOpenSeconds" in record.__dict__]


def test_each_parallel_call_takes_its_part_of_the_owed_work(mill: Mill) -> None:
    mill.stop_clock()
    for number in range(20):
        work = Work(kind=Kind.ADVANCE, tenant=TENANT, name=str(number))
        composition.parts().owed_work.owe(work, now=mill.now(), error="busy")

    left = []
    for part in range(2):
        wake.handle({WAKE_PART: str(part), WAKE_PARTS: "2"}, TICK)
        left.append(mill.stored())

    assert 0 < left[0] < 20
    assert left[1] == 0


def test_parked_jobs_are_released_though_scheduled_jobs_take_all_the_time(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    class BusyError(Exception):
        """The end of the invocation."""

    def wake_without_end(*_: object, **__: object) -> None:
        raise BusyError

    store = DynamoJobStore(mill.table.client, table=mill.table.name, retention=timedelta(days=1))
    limits = DynamoLimits(mill.table.client, table=mill.table.name)
    slot = enter(limits, a_job())
    parked = park(store, limits)
    limits.vacate(LINE, run_name(slot.token))
    monkeypatch.setattr(Waker, "wake", wake_without_end)

    with pytest.raises(BusyError):
        wake.handle({}, TICK)

    assert stored(store, parked).state is State.QUEUED

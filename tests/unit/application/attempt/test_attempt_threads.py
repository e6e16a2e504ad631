"""An attempt that the thread of its invocation ends while the thread of its message works on it."""

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from threading import Event, current_thread, main_thread
from typing import Any

from tests.support.builders import INVOCATION, NOW, a_job, a_job_type
from tests.support.one_job import attempt_at
from tests.support.patience import PATIENCE_SECONDS
from tests.support.single_job import Clock
from tidemill.application.attempt.attempt_report import Ending, Report, Unobserved
from tidemill.application.attempt.participant import Called, SoleParticipant
from tidemill.domain.attempt.outcomes import Settlement, Succeeded
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.in_memory.single_job import OneJob

#: How long a thread stays where the other one could pass it.
MOMENT = 0.2


class ClaimedLate(OneJob):
    """Its claim is answered as the other thread is inside of `expire`."""

    def __init__(self, expiring: Event) -> None:
        super().__init__(a_job())
        self.expiring = expiring
        self.expire: Any = None
        self.unclaimed = 0

    def claim(self, reference: Reference, **how: Any) -> Job:  # type: ignore[override]  # the same
        job = super().claim(reference, **how)
        self.expire()
        assert self.expiring.wait(PATIENCE_SECONDS)
        return job

    def unclaim(self, *_: Any, **__: Any) -> None:  # type: ignore[override]  # this one returns
        self.unclaimed += 1


def test_a_claim_that_is_answered_as_the_time_runs_out_is_given_back() -> None:
    """Either the claim counts or the end. With both, the message would be put back while its job runs."""
    expiring = Event()

    def clock() -> datetime:
        if current_thread() is not main_thread():
            expiring.set()
            time.sleep(MOMENT)
        return NOW

    store = ClaimedLate(expiring)
    attempt = attempt_at(store, a_job_type(), clock)  # type: ignore[arg-type]  # a clock
    with ThreadPoolExecutor(1) as pool:
        store.expire = lambda: pool.submit(attempt.expire)
        claimed = attempt.claim(remaining=INVOCATION)

    assert (claimed, store.unclaimed) == (False, 1)
    assert attempt.report == Report(ending=Ending.NOT_STARTED, put_back_until=NOW)


class Slow(Unobserved):
    """An observer that takes a moment to hear of each message that is put back."""

    def __init__(self) -> None:
        self.hears = Event()

    def ended(self, _reference: Reference | None, report: Report) -> None:
        if report.ending is Ending.UNAVAILABLE:
            self.hears.set()
            time.sleep(MOMENT)


def test_a_report_that_can_be_seen_does_not_change(clock: Clock) -> None:
    observer = Slow()
    attempt = attempt_at(OneJob(a_job()), a_job_type(), clock, observer=observer)
    assert attempt.claim(remaining=INVOCATION)
    with ThreadPoolExecutor(1) as pool:
        put_back = pool.submit(attempt.unavailable, StoreUnavailableError("down"))
        assert observer.hears.wait(PATIENCE_SECONDS)
        attempt.finish(Succeeded())
        seen = attempt.report
        put_back.result()

    assert seen is not None
    assert (seen.ending, attempt.report) == (Ending.UNAVAILABLE, seen)


class SettledSlowly(OneJob):
    """Its settle takes a moment. It notes how many are under way."""

    def __init__(self) -> None:
        super().__init__(a_job())
        self.begun = Event()
        self.settles = 0

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> Sequence[Job]:
        self.settles += 1
        self.begun.set()
        time.sleep(MOMENT)
        return super().settle(job, settlement, now=now)


def test_an_attempt_that_has_been_settled_is_not_settled_by_the_other_thread(clock: Clock) -> None:
    store = SettledSlowly()
    attempt = attempt_at(store, a_job_type(), clock)
    assert attempt.claim(remaining=INVOCATION)
    with ThreadPoolExecutor(1) as pool:
        finished = pool.submit(attempt.finish, Succeeded())
        assert store.begun.wait(PATIENCE_SECONDS)
        attempt.expire()
        finished.result()

    assert store.settles == 1
    assert attempt.report is not None
    assert attempt.report.ending is Ending.SUCCEEDED


class Calling(SoleParticipant):
    """Says when the attempt is about to call its handler."""

    calls = False

    def call(self, called: Called) -> Any:
        self.calls = True
        return super().call(called)


def test_a_handler_that_begins_as_its_time_runs_out_is_known_to_run() -> None:
    """Its settle must see it: a process with a stray thread takes no more jobs."""
    store, participant, ends = SettledSlowly(), Calling(), list[Future[None]]()

    def clock() -> datetime:
        if participant.calls and not ends and current_thread() is main_thread():
            ends.append(pool.submit(attempt.expire))
            time.sleep(MOMENT)
            seen.append(store.settles)
        return NOW

    seen: list[int] = []
    attempt = attempt_at(store, a_job_type(), clock, participant=participant)  # type: ignore[arg-type]  # a clock
    with ThreadPoolExecutor(1) as pool:
        assert attempt.claim(remaining=INVOCATION)
        attempt.run()
        ends[0].result()

    assert seen == [0], "the end waits until the handler has begun"
    assert attempt.report is not None
    assert attempt.report.ending is Ending.RETRYING

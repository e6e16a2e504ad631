"""The breakers that the threads of one worker share."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, Event
from typing import Any

import pytest

from tests.support.builders import NOW
from tests.support.one_breaker import DUE, JOB, POLICY, Worker
from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.breakers.breakers import CACHED_FOR, Breakers
from tidemill.domain.breakers.breaker import Breaker
from tidemill.domain.errors import StoreUnavailableError

THREADS = 10


class _Store:
    """Its reads take so long that those of all threads overlap."""

    def __init__(self) -> None:
        self.reads: list[bool] = []
        self.out = False

    def read(self, name: str, *, consistent: bool = False) -> Breaker:
        self.reads.append(consistent)
        time.sleep(0.05)
        if self.out:
            raise StoreUnavailableError("out")
        return Breaker(name=name, version=len(self.reads))

    fail: Any = None
    contradict: Any = None
    move: Any = None


@pytest.mark.parametrize("out", [False, True], ids=["answers", "out"])
def test_the_jobs_of_a_batch_read_a_closed_breaker_once(out: bool) -> None:
    """A type that depends on it would make a call for each job of each batch otherwise, and not one in two seconds."""
    store, now, together = _Store(), [NOW], Barrier(THREADS)
    breakers = Breakers(store, clock=lambda: now[0], pause=time.sleep)
    store.out = out

    def look(_thread: int) -> Breaker:
        together.wait()
        return breakers.look("payments")

    with ThreadPoolExecutor(THREADS) as pool:
        first = set(pool.map(look, range(THREADS)))
        now[0] += CACHED_FOR - timedelta(milliseconds=1)
        within = set(pool.map(look, range(THREADS)))
        now[0] += timedelta(milliseconds=1)
        later = set(pool.map(look, range(THREADS)))

    assert store.reads == [False, False]
    assert first == within == {Breaker(name="payments", version=0 if out else 1)}
    assert later == {Breaker(name="payments", version=0 if out else 2)}


def test_each_job_reads_afresh_what_an_open_breaker_is_by_now() -> None:
    store = _Store()
    breakers = Breakers(store, clock=lambda: NOW, pause=time.sleep)

    breakers.look("payments")
    breakers.look("payments", afresh=True)
    breakers.look("payments", afresh=True)

    assert store.reads == [False, True, True]


def test_a_job_whose_breaker_is_known_does_not_wait_for_the_read_of_another_breaker() -> None:
    begun, answered, store = Event(), Event(), _Store()
    breakers = Breakers(store, clock=lambda: NOW, pause=time.sleep)
    breakers.look("payments")

    def slow_read(name: str, *, consistent: bool = False) -> Breaker:
        begun.set()
        answered.wait(PATIENCE_SECONDS)
        return Breaker(name=name)

    store.read = slow_read  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool:
        pool.submit(breakers.look, "mail")
        assert begun.wait(PATIENCE_SECONDS)
        try:
            answer = pool.submit(breakers.look, "payments").result(PATIENCE_SECONDS)
            assert answer == Breaker(name="payments", version=1)
        finally:
            answered.set()


@pytest.mark.parametrize("known", [True, False])
def test_an_answer_that_a_transition_has_overtaken_does_not_hide_it(known: bool) -> None:
    """The answer to the one thread is under way while the other becomes the probe."""
    worker = Worker(DUE)
    if known:
        worker.breakers.look("pay")
    read = worker.item.read

    def overtaken(name: str, *, consistent: bool = False) -> Breaker:
        answer = read(name, consistent=consistent)
        worker.item.read = read  # type: ignore[method-assign]  # once only
        assert worker.breakers.admits(POLICY, JOB)
        return answer

    worker.item.read = overtaken  # type: ignore[method-assign]  # it keeps its answer back
    worker.breakers.look("pay", afresh=True)

    assert worker.breakers.succeeded(POLICY, JOB)
    assert worker.item.breaker.closed

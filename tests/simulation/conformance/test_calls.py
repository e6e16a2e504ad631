"""Asynchronous invocations."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from tests.simulation.conformance.cited import LAMBDA, LAMBDA_GUIDE, cites
from tests.simulation.conformance.simulated import Simulated
from tests.simulation.world.calls import Calls
from tests.simulation.world.faults import Fault

HANDLING: Final = LAMBDA_GUIDE + "invocation-async-error-handling.html"
HOUR_SECONDS: Final = 3_600


def called(
    simulated: Simulated, handler: Callable[[Any], Any], *, retries: int = 2, oldest_seconds: int = 6 * HOUR_SECONDS
) -> Calls:
    """The queue of a function, with one event in it."""
    calls = Calls(
        simulated.function(handler),
        retries=retries,
        oldest_seconds=oldest_seconds,
        scheduler=simulated.scheduler,
        weather=simulated.world.weather,
        trace=simulated.world.trace,
    )
    calls.call({})
    return calls


def failing_at(simulated: Simulated, times: list[int], *, tries: int = 100) -> Callable[[Any], None]:
    """A handler that notes when it is called, and raises as often."""

    def handle(_event: Any) -> None:
        times.append(simulated.scheduler.now_ms)
        if len(times) <= tries:
            raise RuntimeError

    return handle


@cites(
    HANDLING,
    "If the function returns an error, by default Lambda attempts to run it two more times, with a one-minute wait "
    "between the first two attempts, and two minutes between the second and third attempts.",
)
def test_an_event_is_tried_three_times(simulated: Simulated) -> None:
    times: list[int] = []
    calls = called(simulated, failing_at(simulated, times))
    simulated.sleep(HOUR_SECONDS)
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert [round(wait / 60_000) for wait in waits] == [1, 2]
    assert calls.missed == [{}]


@cites(LAMBDA, "The maximum number of times to retry when the function returns an error.")
def test_an_event_is_tried_no_more_than_asked_for(simulated: Simulated) -> None:
    times: list[int] = []
    calls = called(simulated, failing_at(simulated, times), retries=0)
    simulated.sleep(HOUR_SECONDS)
    assert (len(times), calls.missed) == (1, [{}])


@cites(
    LAMBDA_GUIDE + "invocation-async.html",
    "Lambda manages the function's asynchronous event queue and attempts to retry on errors.",
)
def test_an_event_that_succeeds_is_done_with(simulated: Simulated) -> None:
    times: list[int] = []
    calls = called(simulated, failing_at(simulated, times, tries=1))
    simulated.sleep(HOUR_SECONDS)
    assert (len(times), calls.missed, calls.under_way) == (2, [], 0)


@cites(
    HANDLING,
    "Function errors include errors returned by the function's code and errors returned by the function's runtime, "
    "such as timeouts.",
)
def test_a_timeout_is_tried_again(simulated: Simulated) -> None:
    times: list[int] = []

    def handle(_event: Any) -> None:
        times.append(simulated.scheduler.now_ms)
        simulated.scheduler.sleep(HOUR_SECONDS * 1000)

    called(simulated, handle)
    simulated.sleep(HOUR_SECONDS)
    assert len(times) == 3


@cites(
    HANDLING,
    "For throttling errors (429) and system errors (500-series), Lambda returns the event to the queue and attempts to "
    "run the function again for up to 6 hours by default.",
)
def test_throttles_do_not_count_as_tries_of_an_event(simulated: Simulated) -> None:
    times: list[int] = []
    simulated.struck(Fault.NOT_STARTED)
    calls = called(simulated, failing_at(simulated, times, tries=0), retries=0)
    simulated.sleep(5 * HOUR_SECONDS)
    assert (times, calls.missed) == ([], [])
    simulated.calm()
    simulated.sleep(HOUR_SECONDS / 2)
    assert (len(times), calls.missed) == (1, [])


@cites(LAMBDA, "The maximum age of a request that Lambda sends to a function for processing.")
def test_an_event_that_is_too_old_is_given_up(simulated: Simulated) -> None:
    times: list[int] = []
    simulated.struck(Fault.NOT_STARTED)
    calls = called(simulated, failing_at(simulated, times, tries=0), oldest_seconds=600)
    simulated.sleep(HOUR_SECONDS)
    simulated.calm()
    simulated.sleep(HOUR_SECONDS)
    assert (times, calls.missed) == ([], [{}])


@cites(
    HANDLING,
    "Even if your function doesn't return an error, it's possible for it to receive the same event from Lambda "
    "multiple times because the queue itself is eventually consistent.",
)
def test_an_event_may_come_twice(simulated: Simulated) -> None:
    times: list[int] = []
    called(simulated, failing_at(simulated, times, tries=0))
    simulated.struck(Fault.CALL_REPEATED)
    simulated.sleep(30)
    simulated.calm()
    simulated.sleep(HOUR_SECONDS)
    assert len(times) > 1

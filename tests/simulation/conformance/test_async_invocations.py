"""Events of asynchronous invocations, as schedules and alarms make them."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tests.simulation.conformance.citations import LAMBDA_GUIDE, cites
from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.async_invocations import AsyncInvocations
from tests.simulation.world.faults import Fault

ERRORS = LAMBDA_GUIDE + "invocation-async-error-handling.html"


def calls(
    simulated: Simulated, handle: Callable[[Any], None], *, retries: int = 2, oldest_seconds: int = 21_600
) -> AsyncInvocations:
    return AsyncInvocations(
        simulated.function(handle, timeout_seconds=10),
        retries=retries,
        oldest_seconds=oldest_seconds,
        scheduler=simulated.scheduler,
        faults=simulated.world.faults,
        trace=simulated.world.trace,
    )


@cites(
    ERRORS,
    "If the function returns an error, by default Lambda attempts to run it two more times, with a one-minute wait "
    "between the first two attempts, and two minutes between the second and third attempts.",
)
def test_a_failed_invocation_is_retried_twice(simulated: Simulated) -> None:
    at_ms: list[int] = []

    def fail(_event: Any) -> None:
        at_ms.append(simulated.scheduler.now_ms)
        raise ValueError("no")

    made = calls(simulated, fail)
    made.invoke({"n": 1})
    simulated.sleep(1_000)
    waits = [round((later - earlier) / 60_000) for earlier, later in pairwise(at_ms)]
    assert (waits, made.discarded) == ([1, 2], [{"n": 1}])


@cites(
    ERRORS,
    "For throttling errors (429) and system errors (500-series), Lambda returns the event to the queue and attempts to "
    "run the function again for up to 6 hours by default.",
)
def test_a_throttled_invocation_is_retried_later(simulated: Simulated) -> None:
    came: list[Any] = []
    simulated.inject(Fault.NOT_STARTED)
    made = calls(simulated, came.append, retries=0)
    made.invoke({})
    simulated.sleep(600)
    assert (came, made.under_way) == ([], 1)
    simulated.stop_faults()
    simulated.sleep(600)
    assert (came, made.under_way) == ([{}], 0)


@cites(
    ERRORS,
    "When an event expires or fails all processing attempts, Lambda discards it.",
    quoted=False,
)
def test_an_expired_event_is_discarded(simulated: Simulated) -> None:
    simulated.inject(Fault.NOT_STARTED)
    made = calls(simulated, lambda _event: None, oldest_seconds=60)
    made.invoke({})
    simulated.sleep(600)
    assert (made.discarded, made.under_way) == ([{}], 0)


@cites(
    ERRORS,
    "Even if your function doesn't return an error, it's possible for it to receive the same event from Lambda "
    "multiple times because the queue itself is eventually consistent.",
)
def test_an_event_may_be_delivered_again_after_success(simulated: Simulated) -> None:
    came: list[Any] = []
    simulated.inject(Fault.INVOCATION_REPEATED)
    calls(simulated, came.append).invoke({"n": 1})
    simulated.sleep(600)
    assert len(came) > 1

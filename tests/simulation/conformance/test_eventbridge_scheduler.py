"""EventBridge Scheduler."""

from typing import Any

from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.conformance.citations import SCHEDULER, SCHEDULER_GUIDE, cites
from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.faults import Fault

DAY_MS = 86_400_000


class RecordedInvocations:
    """Replaces the event queue of a function."""

    def __init__(self, simulated: Simulated) -> None:
        self._scheduler = simulated.scheduler
        self.times_ms: list[int] = []

    def invoke(self, _event: Any) -> None:
        self.times_ms.append(self._scheduler.now_ms)


def daily(simulated: Simulated, *, times: int) -> list[float]:
    """The times, in days since the first scheduled time, at which a daily schedule invoked its function."""
    recorded = RecordedInvocations(simulated)
    calls: Any = simulated.world.async_invocations
    calls["tick"] = recorded
    first_ms = (simulated.scheduler.now_ms // DAY_MS + 1) * DAY_MS
    EventBridgeScheduler(simulated.world).begin_ticks("a.b", "rate(1 day)", times=times)
    simulated.sleep((times + 0.5) * DAY_MS / 1000)
    return [(time_ms - first_ms) / DAY_MS for time_ms in recorded.times_ms]


@cites(SCHEDULER, "The expression that defines when the schedule runs.")
def test_a_schedule_runs_at_its_times(simulated: Simulated) -> None:
    assert daily(simulated, times=3) == [0, 1, 2]


@cites(
    SCHEDULER_GUIDE + "what-is-scheduler.html",
    "EventBridge Scheduler provides at-least-once event delivery to targets, meaning that at least one delivery "
    "succeeds with a response from the target.",
)
def test_a_schedule_may_run_twice(simulated: Simulated) -> None:
    simulated.inject(Fault.SCHEDULE_TWICE)
    assert daily(simulated, times=2) == [0, 0, 1, 1]


@cites(
    SCHEDULER,
    "Retry attempts with exponential backoff continue until either the maximum number of attempts is made or until the "
    "duration of the MaximumEventAgeInSeconds is reached.",
)
def test_a_schedule_may_run_late(simulated: Simulated) -> None:
    simulated.inject(Fault.SCHEDULE_LATE)
    times = daily(simulated, times=3)
    assert len(times) == 3
    assert all(day < time < day + 0.5 for day, time in enumerate(times))

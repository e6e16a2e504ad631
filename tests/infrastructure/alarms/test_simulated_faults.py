"""Faults of the protocol: in the simulated AWS, the functions as they ship write the metrics that fire an alarm."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, Final

import pytest

from tests.infrastructure.alarms.installation import Installation, of_function, ours, worker
from tests.infrastructure.alarms.traces import Trace
from tests.simulation.actors.api_gateway import as_json, ask
from tests.simulation.deployment import Deployment
from tests.simulation.world.cloudwatch import Line
from tests.simulation.world.faults import no_faults
from tests.simulation.world.lambda_environments import Throttled
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb.document import SCHEMA_ATTRIBUTE, SCHEMA_VERSION
from tidemill.local.alarms import Evaluator
from tidemill.local.alarms import State as AlarmState
from tidemill.names import Lane

#: In minutes. The fault begins one second after a minute begins.
BEGIN: Final = 20
MINUTES: Final = 40
#: One job is due so late that wake looks ahead to it after the fault.
SCHEDULED: Final = timedelta(minutes=BEGIN + 5, seconds=30)
TENANT: Final = "111122223333:AROASIM"
#: The functions of the simulation, and those of the template.
FUNCTIONS: Final = {"wake": "Wake", "publish": "Publisher"} | {f"work-{lane}": worker(lane) for lane in Lane}

Fault = Callable[["Run"], None]


class Run:
    """A world without other faults: each minute a call of wake, and ten submissions to `critical`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.began_ms = world.scheduler.now_ms
        self.trace = Trace(seed=1, minutes=MINUTES)
        #: The fault turns these off and over.
        self.calls_wake = True
        self.payload: dict[str, Any] = {"count": 1}
        world.cloudwatch.line_watchers.append(self._metrics)
        for name in FUNCTIONS:
            self._count_calls(name)

    def now(self) -> int:
        return (self.world.scheduler.now_ms - self.began_ms) // 60_000

    def play(self, fault: Fault | None) -> Trace:
        scheduler = self.world.scheduler
        scheduler.spawn(Process("early caller"), partial(self._submit, delay=SCHEDULED))
        for minute in range(MINUTES):
            scheduler.after(minute * 60_000, self._wake)
            for part in range(10):
                caller = Process(f"caller {minute} {part}")
                scheduler.spawn(caller, self._submit, delay_ms=minute * 60_000 + part * 6_000)
        if fault:
            scheduler.after(BEGIN * 60_000 + 1_000, fault, self)
        scheduler.run(until_ms=self.began_ms + MINUTES * 60_000, most_steps=10**7)
        return self.trace

    def _wake(self) -> None:
        if self.calls_wake:
            self.world.async_invocations["wake"].invoke({"part": "0", "parts": "1"})

    def _submit(self, delay: timedelta | None = None) -> None:
        submission = Submission(type="sim.urgent", payload=self.payload, delay=delay)
        ask(self.world, "submit", "POST", "/jobs", tenant=TENANT, body=as_json(submission))

    def _metrics(self, line: Line) -> None:
        for metric, value in line.metrics.items():
            self.trace.put(ours(metric, Lane(line.fields["lane"])), self.now(), *_values(value))

    def _count_calls(self, name: str) -> None:
        function = self.world.functions[name]
        invoke = function.invoke

        def counting(event: Any) -> Any:
            self.trace.put(of_function("Invocations", FUNCTIONS[name]), self.now(), 1.0)
            return invoke(event)

        function.invoke = counting  # type: ignore[method-assign]  # a watcher


def _values(value: Any) -> list[float]:
    """A metric of a line is one value, or a list of them."""
    return value if isinstance(value, list) else [value]


def played(fault: Fault | None) -> Trace:
    faults = no_faults(Random(1))
    with World(1, Deployment(), faults=faults) as world:
        return Run(world).play(fault)


def fired(installation: Installation, trace: Trace, names: set[str]) -> dict[str, int]:
    """The seconds from the fault until each of the alarms fired first."""
    # The canary job and periodic jobs are not part of the simulated world.
    parts = {"Established", "UncalledWake"}
    evaluator = Evaluator([alarm for alarm in installation.alarms if alarm.name in names | parts], trace.series())
    seconds: dict[str, int] = {}
    for change in evaluator.run(0, MINUTES):
        if change.new is AlarmState.ALARM and change.alarm.name in names:
            seconds.setdefault(change.alarm.name, change.minute * 60 - BEGIN * 60 - 1)
    return seconds


def _disable_publisher(run: Run) -> None:
    """A disabled mapping calls nothing."""

    def refuse(event: Any) -> Any:
        raise Throttled

    run.world.functions["publish"].invoke = refuse  # type: ignore[method-assign]  # as a disabled mapping


def _disable_schedule(run: Run) -> None:
    run.calls_wake = False


def _break_type(run: Run) -> None:
    """From now on, each attempt of the type fails."""
    run.payload = {"fails": 9}


def _write_newer_schema(run: Run) -> None:
    """The scheduled job gets a document that only a newer version can read."""
    jobs = run.world.jobs
    ((key, item),) = [(key, item) for key, item in jobs.items.items() if item.get("state") == {"S": State.SCHEDULED}]
    newer = {**item, SCHEMA_ATTRIBUTE: {"N": str(SCHEMA_VERSION + 1)}}
    jobs.put(key, newer, now_ms=run.world.scheduler.now_ms)


SIMULATED: Final = {
    "SilentScheduler",
    "FailedJobs",
    "BrokenInvariant",
    "IdlePublisher",
    "StoreUnavailable",
    "LostMessages",
}


def test_without_a_fault_no_alarm_fires(installation: Installation) -> None:
    assert fired(installation, played(None), SIMULATED) == {}


@pytest.mark.parametrize(
    ("fault", "alarm"),
    [
        (_disable_schedule, "SilentScheduler"),
        (_disable_publisher, "IdlePublisher"),
        (_break_type, "FailedJobs"),
        (_write_newer_schema, "BrokenInvariant"),
    ],
)
def test_an_alarm_reports_the_fault_within_its_bound(installation: Installation, fault: Fault, alarm: str) -> None:
    found = fired(installation, played(fault), SIMULATED)
    assert found[alarm] <= installation.entries[alarm].within.total_seconds()

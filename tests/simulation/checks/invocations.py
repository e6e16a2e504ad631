"""Checks of single invocations: each writes the metrics that it counted, and one that asks for a pass gets one."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

from tests.simulation.checks.violation import number_of, require, require_in_task
from tests.simulation.world.lambda_environments import Context
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill.dynamodb.passes.pass_items import PASS_KEY
from tidemill.names import CONTINUE, JOB_KEY
from tidemill.telemetry.outcome_log import Telemetry

_PASS: Final = PASS_KEY[JOB_KEY]["S"]
#: By more than two clocks differ.
_SKEW_MS: Final = 100_000


class InvocationChecks:
    """Watches the functions of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: When the latest call of reconcile began that its schedule did not make, and that ended well.
        self._asked_ms = 0
        #: By process, what its present invocation counts.
        self._telemetry: defaultdict[Process, list[Telemetry]] = defaultdict(list)
        world.telemetry_watchers.append(lambda process, made: self._telemetry[process].append(made))
        for name, function in world.functions.items():
            function.handler = self._watched(name, function.handler)

    def at_end(self) -> None:
        """Raises `Violation`."""
        item = self._world.jobs.items.get((_PASS,)) or {}
        began_ms = number_of(item, "began_at")
        detail = f"the last pass began {self._asked_ms - began_ms} ms before reconcile was asked for one"
        # Otherwise one is open, and the next begins when that ends.
        begins = began_ms + _SKEW_MS >= self._asked_ms or (bool(item) and item["asked"]["BOOL"])
        require(begins, "a pass that was asked for begins", detail, _PASS)

    def _watched(self, name: str, handler: Callable[[Any, Context], Any]) -> Callable[[Any, Context], Any]:
        def watched(event: Any, context: Context) -> Any:
            scheduler = self._world.scheduler
            assert scheduler.current
            began_ms, process = scheduler.now_ms, scheduler.current.process
            spoiled = process.streams_closed
            # Drop the lines of an earlier invocation that failed.
            self._telemetry.pop(process, None)
            answer = handler(event, context)
            # A handler that outlived its batch may have closed them after it.
            require_in_task(scheduler, not spoiled, "a spoiled process ends after its batch", process.name, "*")
            self._each_metric_is_written(name, process)
            if name == "reconcile" and CONTINUE not in event:
                self._asked_ms = max(self._asked_ms, began_ms)
            return answer

        return watched

    def _each_metric_is_written(self, name: str, process: Process) -> None:
        """The environment of a function is frozen after its answer, and may never be used again."""
        for made in self._telemetry.pop(process, ()):
            left = sorted({metric for counted in made._metrics.values() for metric in counted})
            require_in_task(self._world.scheduler, not left, "each metric is written", f"{name} keeps {left}", "*")

"""The alarms that invoke reconcile when they fire and when they resolve.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-actions.html
"""

from functools import partial
from typing import Final

from tests.simulation.world.faults import Fault
from tests.simulation.world.sqs_queue import Queue
from tests.simulation.world.world import World
from tidemill.metrics import Metric

#: Each alarm evaluates periods of a minute: see `tidemill.cdk.alarms.alarm_catalogue`. That of passed-over records
#: resolves after so many quiet ones.
_PERIOD_MS: Final = 60_000
_QUIET_MS: Final = 20 * _PERIOD_MS
#: Delay from the end of a period to its evaluation: CloudWatch extracts metrics from a log and evaluates each minute.
_KNOWN_WITHIN_MS: Final = 90_000
#: Delay from there to the evaluation of a period without data points.
_RESOLVED_WITHIN_MS: Final = (_PERIOD_MS, 10 * _PERIOD_MS)
#: "The metrics of an idle queue come up to 15 minutes late": see `tidemill.cdk.alarms.alarm_catalogue`.
_IDLE_QUEUE_MS: Final = 15 * 60_000
#: Share of seeds with DLQ alarms. Jobs die in most seeds, and each alarm makes reconcile scan the whole table.
_SEEDS_WITH_DLQ_ALARMS: Final = 0.15
#: How often a queue is checked while its alarm fires.
_LOOK_AGAIN_MS: Final = 3_600_000


class Alarms:
    """The alarms of one world. An alarm that stays in its state invokes nothing again.

    "The actions happen only on state transitions, and are not performed again if the condition persists for hours or
    days."
    """

    def __init__(self, world: World) -> None:
        self._world = world
        #: End of the last evaluated period in which publish gave up records.
        self._passed_over_until_ms = 0
        self._on: dict[str, bool] = {}
        world.cloudwatch.watchers.append(self._counted)
        alarmed = world.dead_letters.values() if world.random.random() < _SEEDS_WITH_DLQ_ALARMS else ()
        for queue in (world.failures, *alarmed):
            queue.watchers.append(partial(self._look_at, queue))

    def _counted(self, metric: Metric) -> None:
        if metric is Metric.PASSED_OVER:
            ends_ms = (self._world.scheduler.now_ms // _PERIOD_MS + 1) * _PERIOD_MS
            known_ms = ends_ms + self._world.random.randint(0, _KNOWN_WITHIN_MS)
            self._world.scheduler.at(known_ms, self._passed_over, ends_ms)

    def _passed_over(self, ends_ms: int) -> None:
        resolved = ends_ms - self._passed_over_until_ms > _QUIET_MS
        self._passed_over_until_ms = max(ends_ms, self._passed_over_until_ms)
        if resolved:
            self._notify("PassedOverRecords", "ALARM")
        self._world.scheduler.after(
            _QUIET_MS + self._world.random.randint(*_RESOLVED_WITHIN_MS), self._resolve, ends_ms
        )

    def _resolve(self, ends_ms: int) -> None:
        if self._passed_over_until_ms == ends_ms:
            self._notify("PassedOverRecords", "OK")

    def _look_at(self, queue: Queue, visible_ms: int) -> None:
        if queue.name not in self._on:
            self._on[queue.name] = False
            late_ms = _PERIOD_MS + self._world.random.randint(0, _IDLE_QUEUE_MS)
            self._world.scheduler.at(visible_ms + late_ms, self._looked_at, queue)

    def _looked_at(self, queue: Queue) -> None:
        visible, _, hidden = queue.counts()
        if not visible + hidden:
            if self._on.pop(queue.name):
                self._notify(f"messages in {queue.name}", "OK")
            return
        if not self._on[queue.name]:
            self._on[queue.name] = True
            self._notify(f"messages in {queue.name}", "ALARM")
        self._world.scheduler.after(_LOOK_AGAIN_MS, self._looked_at, queue)

    def _notify(self, name: str, state: str) -> None:
        """Deliver the event as SNS does. Reconcile ignores its content."""
        self._world.faults.count(Fault.ALARM)
        self._world.log("alarm", f"*{name}: {state}")
        self._world.async_invocations["reconcile"].invoke({"AlarmName": name, "NewStateValue": state})

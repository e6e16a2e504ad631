"""Checks that each repair path has nothing to do until a fault occurs.

What a step forgets, a repair does minutes, hours or a day later. All jobs then end in time, so no other check notices.
"""

from typing import Final

from tests.simulation.checks.table_watch import watch_items, watch_jobs
from tests.simulation.checks.violation import (
    Item,
    map_of,
    number_of,
    require,
    run_ended,
    state_of,
    tenant_of,
    text_of,
    waits_alone,
)
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World
from tidemill.application.operations.reconcile import Reconciled
from tidemill.domain.states import TERMINAL, State
from tidemill.dynamodb.flows.flow_items import CURSOR_PREFIX
from tidemill.names import FLOW_TYPE, OWED_PREFIX

_CHECK: Final = "a repair path is used only after a fault"
#: A flow looks again sooner only because others kept the groups of its nodes busy.
_UNASKED_MS: Final = 15 * 60_000


class RepairChecks:
    """Watches one world until its first disturbance.

    Owed work, nudges, repairs by reconcile, and a look that a flow takes although nothing asked it to.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._reports_seen = 0
        #: The flows whose wait ended by itself, until that run ends, each with the process that runs it.
        self._unasked: dict[str, str] = {}
        watch_items(world, self._item_changes)
        watch_jobs(world, changed=(self._nudged, self._flow_changes, self._node_changes), inserted=self._node_is_made)

    def _unused(self, holds: bool, what: str, about: str) -> None:
        require(holds or self._world.faults.disturbed, _CHECK, what, about)

    def _item_changes(self, key: str, record: Record) -> None:
        self._unused(record.after is None or not key.startswith(OWED_PREFIX), f"owed: {record.after}", key)
        if key.startswith(CURSOR_PREFIX):
            for flow in self._unasked:
                moved = flow.rpartition("#")[2] in key and self._looks_unasked(flow)
                self._unused(not moved, "an unasked look moved a cursor", flow)

    def _nudged(self, key: str, before: Item, after: Item) -> None:
        nudged = number_of(after, "nudges") > number_of(before, "nudges")
        nudged = nudged or ("nudged_at" in after and after["nudged_at"] != before.get("nudged_at"))
        self._unused(not nudged, f"{self._by()} nudged it while {state_of(before)}", key)

    def _flow_changes(self, key: str, before: Item, after: Item) -> None:
        """A request to look, or a redrive, makes the run one that was asked for."""
        if text_of(after, "type") != FLOW_TYPE:
            return
        if before.get("looks") != after.get("looks") or before.get("redrives") != after.get("redrives"):
            self._unasked.pop(key, None)
            return
        if waits_alone(before) and state_of(after) is State.QUEUED and _waited_ms(before) >= _UNASKED_MS:
            self._unasked[key] = ""
        elif key in self._unasked and state_of(after) is State.RUNNING:
            self._unasked[key] = self._by()
        elif run_ended(before, after) and key in self._unasked:
            ended = state_of(after) in TERMINAL
            self._unused(not ended, f"an unasked look found that it was {state_of(after)}", key)
            del self._unasked[key]

    def _node_changes(self, key: str, before: Item, after: Item) -> None:
        """Its worker ends its run, and may be the process in which its flow looks."""
        was, now = state_of(before), state_of(after)
        redriven, cancelled = was in TERMINAL and now not in TERMINAL, now is State.CANCELLED
        if redriven or (cancelled and was not in {State.CANCELLED, State.RUNNING}):
            self._node_is_made(key, after)

    def _node_is_made(self, key: str, after: Item) -> None:
        place = map_of(after, "flow")
        flow = f"{tenant_of(key)}#{text_of(place, 'id')}"
        found = bool(place) and self._looks_unasked(flow)
        self._unused(not found, f"an unasked look wrote node {text_of(place, 'node')}", flow)

    def _looks_unasked(self, flow: str) -> bool:
        return self._unasked.get(flow, "") == self._by() != ""

    def _by(self) -> str:
        """The process that writes; empty for a transaction, which DynamoDB applies later."""
        task = self._world.scheduler.current
        return task.process.name if task else ""

    def look(self) -> None:
        """Call it between the steps of the world. Reconcile reports what it repaired."""
        reports = self._world.use_case_reports
        if len(reports) == self._reports_seen:
            return
        for _, by, report in reports[self._reports_seen :]:
            if isinstance(report, Reconciled):
                self._unused(not any(report.actions.values()), f"{by} did {dict(report.actions)}", "*")
        self._reports_seen = len(reports)


def _waited_ms(flow: Item) -> int:
    """For how long it was to wait."""
    return number_of(flow, "due") - number_of(map_of(flow, "wait"), "since")


__all__ = ["RepairChecks"]

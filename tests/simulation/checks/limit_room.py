"""Checks of the jobs that found no room: the limit item says so, and gives a time to each job that waits on its lane.

A job that was parked although its limit has room starts late, and loses no promise of any other check.
"""

from typing import Final

from tests.simulation.checks.adaptive_limits import slots_of
from tests.simulation.checks.limit_keys import waits_in_wrong_line
from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import (
    Item,
    capped,
    map_of,
    number_of,
    require,
    state_of,
    tenant_of,
    text_of,
)
from tests.simulation.world.code_versions import job_type
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.domain.limits.limits import Rate
from tidemill.domain.states import State

_PREFIX: Final = "!limit#"
_USE: Final = ("held", "arrival", "promised", "allowed")
#: While a line stands, a job whose rate lets it start this soon waits on its lane.
_NEAR_MS: Final = 30_000
#: Between the look at the clock and the write.
_SLACK_MS: Final = 1_000


class LimitRoomChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By limit item, when a slot or a start was taken or given last, in milliseconds.
        self._used_ms: dict[str, int] = {}
        #: By job, when it was claimed last.
        self._claimed_ms: dict[str, int] = {}
        watch_items(world, self._changed)

    def _changed(self, key: str, record: Record) -> None:
        before, after, now_ms = record.before or {}, record.after or {}, self._world.scheduler.now_ms
        if key.startswith(_PREFIX):
            if any(before.get(name) != after.get(name) for name in _USE):
                self._used_ms[key] = now_ms
        elif "state" in after:
            if text_of(after, "owner") and text_of(after, "owner") != text_of(before, "owner"):
                self._claimed_ms[key] = now_ms
            elif state_of(before if "state" in before else None) is State.RUNNING and "wait" in after:
                if text_of(map_of(after, "wait"), "cause") != "limit":
                    return
                if not capped(after):
                    wrong = waits_in_wrong_line(tenant_of(key), after)
                    require(wrong is None, "a job waits in the line of its limit", wrong or "", key)
                if state_of(after) is State.PARKED:
                    self._parked_without_room(key, after)
                elif text_of(after, "hold_cause") == "limit" and number_of(after, "holds") > number_of(before, "holds"):
                    self._has_its_time(key, after)

    def _parked_without_room(self, key: str, after: Item) -> None:
        name = _PREFIX + text_of(map_of(after, "wait"), "key")
        since_ms = self._claimed_ms.get(key, 0)
        unchanged = self._used_ms.get(name, 0) < since_ms
        if unchanged and not self._world.faults.counted[Fault.CLOCK_FAR_OFF]:
            item = self._world.jobs.items.get((name,), {})
            room = self._has_slot(after, item, since_ms) and self._may_start(after, item, since_ms)
            require(not room, "a job is parked only without room", f"{item}", key)

    def _has_slot(self, job: Item, item: Item, now_ms: int) -> bool:
        limit = job_type(text_of(job, "type")).limit
        ends = [int(until["N"]) for until in map_of(item, "held").values()]
        taken = sum(until > now_ms - LARGEST_SKEW_MS - _SLACK_MS for until in ends)
        # For a cap, what the worker wrote that found no room.
        slots = slots_of(limit, item) if limit else number_of(item, "slots")
        return slots is None or taken < slots

    def _may_start(self, job: Item, item: Item, now_ms: int) -> bool:
        limit = job_type(text_of(job, "type")).limit
        if limit is None or limit.rate is None:
            return True
        burst = (limit.rate.count - 1) * _interval_us(limit.rate)
        at_us = max(number_of(item, "arrival") - burst, number_of(item, "promised"))
        return at_us // 1000 <= now_ms + _NEAR_MS - LARGEST_SKEW_MS - _SLACK_MS

    def _has_its_time(self, key: str, after: Item) -> None:
        """Its time was promised to it, so no later job may have it."""
        item = self._world.jobs.items.get((_PREFIX + text_of(map_of(after, "wait"), "key"),), {})
        limit = job_type(text_of(after, "type")).limit
        if limit and limit.rate:
            spare = number_of(item, "promised") - _interval_us(limit.rate) - number_of(after, "due") * 1000
            require(spare >= 0, "a job that waits for a rate has its time", f"{-spare} us after the last one", key)


def _interval_us(rate: Rate) -> int:
    """In microseconds, rounded up."""
    return -(-round(rate.period.total_seconds() * 1_000_000) // rate.count)

"""Checks of adaptive concurrency: the number follows the rule, at no write of its own.

All figures are those of the job type and of the design, not those of the engine.
"""

import math
from typing import Final

from tests.simulation.checks.limit_keys import limit_of, types_of
from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import Item, map_of, number_of, require, text_of
from tests.simulation.jobs.handler_runs import HandlerRun
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.world import World
from tidemill.domain.limits.adaptive_limit import Adaptive
from tidemill.domain.limits.limits import Limit

_PREFIX: Final = "!limit#"
_FOLLOWS: Final = "an adaptive limit follows its rule"
_CAUSED: Final = "an adaptive limit follows what its runs measured"
_FREE: Final = "an adaptive limit costs no write"
#: The handler of the simulated type measures its time, and fails only by its own fault.
_CAUSES: Final = frozenset({"slow", "timeout"})
_SHARE: Final = 0.7
_WINDOW_MS: Final = 1_000
#: Between the run of a handler and the measure of its worker.
_SLACK_MS: Final = 100
_EXACT: Final = 0.00001


def slots_of(limit: Limit, item: Item) -> int | None:
    """How many runs may hold a slot of this limit item."""
    return _slots(item, limit.adaptive.floor, limit.adaptive.ceiling) if limit.adaptive else limit.concurrency


def slots_in(item: Item) -> int:
    """Return the slots that the last job without room wrote."""
    bounds = map_of(item, "adaptive")
    return (
        _slots(item, number_of(bounds, "floor"), number_of(bounds, "ceiling")) if bounds else number_of(item, "slots")
    )


def _slots(item: Item, floor: int, ceiling: int) -> int:
    return math.ceil(min(max(_allowed(item, floor), floor), ceiling))


class AdaptiveLimitChecks:
    """Watches the limit items of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        watch_items(world, self._changed)

    def _changed(self, key: str, record: Record) -> None:
        before, after = record.before or {}, record.after
        if not key.startswith(_PREFIX) or after is None or "allowed" not in after:
            return
        limit = limit_of(key.removeprefix(_PREFIX))
        if limit is None or limit.adaptive is None:
            return
        bounds = limit.adaptive
        if "allowed" not in before:
            require(_allowed(after, 0) == bounds.floor, _FOLLOWS, f"it begins with {_allowed(after, 0)}", key)
        elif before["allowed"] != after["allowed"] or before.get("falls") != after.get("falls"):
            require(before.get("held") != after.get("held"), _FREE, "the number changed alone", key)
            if number_of(before, "falls") == number_of(after, "falls"):
                self._rose(key, bounds, before, after)
            else:
                self._fell(key, bounds, before, after)

    def _rose(self, key: str, bounds: Adaptive, before: Item, after: Item) -> None:
        """By one until the first decrease, and then by one in a round of runs."""
        was, now = _allowed(before, 0), _allowed(after, 0)
        step = now - was
        most = 1.0 if number_of(before, "falls") == 0 else 1 / bounds.floor
        require(0 < step <= most + _EXACT, _FOLLOWS, f"it rose by {step} from {was}", key)
        good = any(
            run.ended_ms is not None and run.ended_ms - run.began_ms <= bounds.target_seconds * 1000 + _SLACK_MS
            for run in self._runs_of_this_process(key)
        )
        require(good or self._odd_clocks, _CAUSED, f"it rose by {step}, and no run was within the target", key)

    def _fell(self, key: str, bounds: Adaptive, before: Item, after: Item) -> None:
        """To a share of the number that the run found, which may have risen since. Once in a window."""
        was, now = _allowed(before, 0), _allowed(after, 0)
        require(
            number_of(after, "falls") == number_of(before, "falls") + 1, _FOLLOWS, "a decrease was not counted", key
        )
        require(bounds.floor <= now < was, _FOLLOWS, f"it fell from {was} to {now}", key)
        found = now / _SHARE
        known = now == bounds.floor or found <= was + _EXACT
        require(known, _FOLLOWS, f"it fell from {was} to {now}, which is the share of {found}", key)
        require("fell_at" in after and "fell_why" in after, _FOLLOWS, "a decrease has no time or no cause", key)
        why = text_of(after, "fell_why")
        require(why in _CAUSES, _CAUSED, f"it fell by {why}, and no run failed because of its downstream", key)
        if "fell_at" in before:
            since_ms = number_of(after, "fell_at") - number_of(before, "fell_at")
            # The clock of the process that lowered it first may be ahead.
            require(abs(since_ms) >= _WINDOW_MS, _FOLLOWS, f"it fell again after {since_ms} ms", key)
        bad = any(
            run.ended_ms is None or run.ended_ms - run.began_ms > bounds.target_seconds * 1000 - _SLACK_MS
            for run in self._runs_of_this_process(key)
        )
        require(bad or self._odd_clocks, _CAUSED, f"it fell to {now}, and no run was above the target", key)

    def _runs_of_this_process(self, key: str) -> list[HandlerRun]:
        task = self._world.scheduler.current
        by = task.process.name if task else ""
        types = types_of(key.removeprefix(_PREFIX))
        return [run for run in self._world.runs if run.by == by and run.kind in types]

    @property
    def _odd_clocks(self) -> bool:
        counted = self._world.faults.counted
        return bool(counted[Fault.CLOCK_FAR_OFF] or counted[Fault.FROZEN_MID_CALL])


def _allowed(item: Item, otherwise: float) -> float:
    return float(item["allowed"]["N"]) if "allowed" in item else otherwise

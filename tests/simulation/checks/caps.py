"""Checks of caps: no tenant has more runs at once in a lane than its cap, and who has no cap pays no write.

The figures are those of the guide of quotas, not those of the engine.
"""

import json
from collections import defaultdict
from typing import Any, Final

from tests.simulation.checks.limits import still_running
from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import cap_in_words, map_of, require, tenant_of, text_of
from tests.simulation.jobs.handler_runs import HandlerRun
from tests.simulation.world.code_versions import job_type
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import LARGEST_SKEW_MS
from tests.simulation.world.world import World

_CONFIGURATION: Final = "!config"
_CAP_ITEM: Final = "!limit#{"
_LARGEST: Final = 100
#: A change of a setting acts within this time: in a world with faults, later by the calls that are tried again.
_ACTS_WITHIN_MS: Final = 10_000
_FAULTY_ACTS_WITHIN_MS: Final = 110_000
_HOLDS: Final = "no tenant has more runs than its cap"


class CapChecks:
    """Watches the runtime configuration of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: The settings by name, and since when the table has them. The last ones are present.
        self._settings: list[tuple[int, dict[str, Any]]] = [(0, {})]
        watch_items(world, self._changed)

    def caps_of(self, key: str, now_ms: int) -> set[int | None]:
        """Those that a process may know for the item of a cap; None for no cap."""
        return self._caps(json.loads(key.removeprefix("!limit#"))["tenant"], now_ms, now_ms)

    def at_end(self) -> None:
        """Raises `Violation`."""
        if self._world.faults.counted[Fault.CLOCK_FAR_OFF]:
            return
        counted: dict[tuple[str, str], list[HandlerRun]] = defaultdict(list)
        for run in sorted(self._world.runs, key=lambda run: run.began_ms):
            # A process that could not read goes by the last known settings, or by none.
            if run.kind and job_type(run.kind).limit is None and not self._world.sdk.gave_up[run.by]:
                caps = self._caps(run.tenant, run.claimed_ms, run.began_ms)
                if None not in caps:
                    counted[run.tenant, run.lane].append(run)
        for (tenant, lane), runs in counted.items():
            for index, run in enumerate(runs):
                most = max(cap or 0 for cap in self._caps(tenant, run.claimed_ms, run.began_ms))
                beside = still_running(self._world, runs[:index], run)
                what = f"{[one.job_id for one in beside]} still ran in {lane}; the cap is {most}"
                require(len(beside) < most, _HOLDS, what, run.key)

    def _changed(self, key: str, record: Record) -> None:
        after, now_ms = record.after or {}, self._world.scheduler.now_ms
        if key == _CONFIGURATION:
            settings = json.loads(text_of(after, "document") or "{}").get("settings", {})
            self._settings.append((now_ms, {name: entry["value"] for name, entry in settings.items()}))
        elif key.startswith(_CAP_ITEM) and record.before is None:
            capped = any(name.startswith("caps.") for _, settings in self._settings for name in settings)
            require(capped, "who has no cap pays no write", "no cap was ever set", key)
        elif cap := cap_in_words(map_of(after, "wait")):
            own = f"cap of tenant {tenant_of(key)} in lane {text_of(after, 'lane')}"
            require(cap == own, "a job waits for the cap of its own tenant and lane", cap, key)

    def _caps(self, tenant: str, from_ms: int, to_ms: int) -> set[int | None]:
        faulty = any(self._world.faults.rates.values())
        begins_ms = from_ms - LARGEST_SKEW_MS - (_FAULTY_ACTS_WITHIN_MS if faulty else _ACTS_WITHIN_MS)
        ends = [at_ms for at_ms, _ in self._settings[1:]] + [to_ms + LARGEST_SKEW_MS + 1]
        return {
            cap_of(settings, tenant)
            for (at_ms, settings), end_ms in zip(self._settings, ends, strict=True)
            if at_ms <= to_ms + LARGEST_SKEW_MS and end_ms >= begins_ms
        }


def cap_of(settings: dict[str, Any], tenant: str) -> int | None:
    if f"caps.{tenant}" in settings:
        return int(settings[f"caps.{tenant}"])
    if "caps.default" not in settings:
        return None
    return min(int(settings["caps.default"] * settings.get(f"weights.{tenant}", 1)), _LARGEST)

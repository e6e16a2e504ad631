"""Operators that pause lanes, types, tenants, groups and limit keys at random, and resume them after a while.

Their own chance leaves the choices of other actors as they are.
"""

from contextlib import suppress
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, Final

from tests.simulation.actors.callers import run_tool
from tests.simulation.actors.operator_objects import configurator
from tests.simulation.checks.violation import group_of
from tests.simulation.world.faults import Fault
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill.domain.errors import ConfigurationConflictError, InvalidSettingError
from tidemill.domain.limits.limits import Rate
from tidemill.domain.operations.runtime_configuration import PAUSE_PREFIX
from tidemill.dynamodb.limits.limit_item import LIMIT_PREFIX
from tidemill.names import SCHEDULE_TENANT
from tidemill.system import clock

#: Share of the seeds with pauses.
_PAUSING: Final = 0.3
_MOST_PAUSES: Final = 4
#: With more kills for each call, hardly any wake comes to an end, and its other work waits for hours.
_DENSE: Final = 0.05
#: Share of the pauses at which another operator changes another setting.
_AT_ONCE: Final = 0.3
_LASTS_MS: Final = (2_000, 20_000, 120_000, 900_000, 4 * 3_600_000)
#: Share of the seeds with periodic jobs in which operators pause these.
_DISABLING: Final = 0.6
_FIRST_TIMES_MS: Final = 300_000
_PERIODIC: Final = "sim.periodic"
#: After the faults, the pauses that an operator has forgotten end.
_TIDY_MS: Final = 60_000
_TIDY_LATER_MS: Final = 3_600_000
_PROMPT_LOOKS: Final = 30
_SECOND: Final = timedelta(seconds=1)


class PausingOperators:
    """Pause targets in one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"pauses {world.seed}")

    def plan(self, until_ms: int, *, periodic: bool) -> None:
        """`periodic`: this world has periodic jobs."""
        if periodic:
            self._plan_schedules(until_ms)
        scheduler, random = self._world.scheduler, self._random
        if random.random() >= _PAUSING or self._world.faults.rates.get(Fault.KILLED_BEFORE, 0.0) > _DENSE:
            return
        for _ in range(random.randint(1, _MOST_PAUSES)):
            begins_ms = min(scheduler.now_ms + random.choice([0, 1_000, 30_000, 600_000]), until_ms)
            scheduler.at(scheduler.now_ms + random.randint(0, begins_ms - scheduler.now_ms), self._begin, until_ms)

    def _plan_schedules(self, until_ms: int) -> None:
        """Pause the periodic jobs, or their schedule, about its first times."""
        scheduler, random = self._world.scheduler, Random(f"disabled schedules {self._world.seed}")
        if random.random() >= _DISABLING or self._world.faults.rates.get(Fault.KILLED_BEFORE, 0.0) > _DENSE:
            return
        for _ in range(random.randint(1, _MOST_PAUSES)):
            begins_ms = min(scheduler.now_ms + random.randint(0, _FIRST_TIMES_MS), until_ms)
            target = random.choice([f"schedule={_PERIODIC}", f"type={_PERIODIC}", f"tenant={SCHEDULE_TENANT}"])
            scheduler.at(begins_ms, self._begin, until_ms, target)

    def resume_all(self, *, looks: int = 0) -> None:
        """Each minute at first, then each hour: until all jobs have expired, days may pass."""
        if any(key.startswith("!config") for (key,) in self._world.jobs.items):
            run_tool(self._world, "eve", self._resume_all)
        again_ms = _TIDY_MS if looks < _PROMPT_LOOKS else _TIDY_LATER_MS
        self._world.scheduler.after(again_ms, partial(self.resume_all, looks=looks + 1))

    def _begin(self, until_ms: int, target: str | None = None) -> None:
        target = target or self._target()
        lasts_ms = self._random.choice(_LASTS_MS)
        ends_ms = min(self._world.scheduler.now_ms + lasts_ms, until_ms)
        value: dict[str, Any] = {"rate": self._random.choice([1, 10, 100])}
        by_itself = self._random.random() < 0.5

        def act(_process: Process) -> None:
            self._world.log("eve", f"pauses {target} for {lasts_ms // 1000} s")
            changes = configurator()
            until = clock.now() + timedelta(milliseconds=lasts_ms) if by_itself else None
            changes.set(changes.read(), PAUSE_PREFIX + target, value, by="eve", reason="", until=until)

        run_tool(self._world, "eve", act)
        # Another operator changes another setting at the same moment, and one of the two has to read again.
        if self._random.random() < _AT_ONCE:
            run_tool(self._world, "bob", _set_a_flag)
        if not by_itself:
            self._world.scheduler.at(ends_ms, self._end, target)

    def _end(self, target: str) -> None:
        run_tool(self._world, "bob", lambda _process: _resume(PAUSE_PREFIX + target))

    def _resume_all(self, _process: Process) -> None:
        for name in configurator().read().settings:
            if name.startswith(PAUSE_PREFIX):
                _resume(name)

    def _target(self) -> str:
        """Something that a job of this world has, if there is a job yet."""
        jobs = [(key, item) for (key,), item in sorted(self._world.jobs.items.items()) if "state" in item]
        limits = [key.removeprefix(LIMIT_PREFIX) for (key,) in self._world.jobs.items if key.startswith(LIMIT_PREFIX)]
        if not jobs:
            return f"lane={self._random.choice(sorted(self._world.lanes))}"
        key, item = self._random.choice(jobs)
        tenant = key.rpartition("#")[0]
        names = [f"lane={item['lane']['S']}", f"type={item['type']['S']}", f"tenant={tenant}"]
        names += [f"group={tenant} {group}"] if (group := group_of(item)) else []
        names += [f"schedule={item['type']['S']}"] if tenant == SCHEDULE_TENANT else []
        names += [f"limit={self._random.choice(sorted(limits))}"] if limits else []
        return self._random.choice(names)


def _set_a_flag(_process: Process) -> None:
    changes = configurator()
    changes.set(changes.read(), "flags.colour", "blue", by="bob", reason="")


def _resume(name: str) -> None:
    changes = configurator()
    # It has ended by itself, or another operator was faster.
    with suppress(InvalidSettingError, ConfigurationConflictError):
        rate = Rate(count=50, period=_SECOND)
        changes.remove(changes.read(), name, by="bob", reason="", drain_rate=rate)

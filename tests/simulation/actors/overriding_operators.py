"""Operators that override how often the jobs of a type are tried, at random, and remove the overrides after a while.

Their own chance leaves the choices of other actors as they are.
"""

from contextlib import suppress
from random import Random
from typing import Final

from tests.simulation.actors.callers import run_tool
from tests.simulation.actors.operator_objects import configurator
from tests.simulation.checks.odd_values import ODD_TYPE
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill.domain.errors import ConfigurationConflictError, InvalidSettingError
from tidemill.domain.operations.overrides import TYPE_PREFIX
from tidemill.domain.operations.type_overrides import Option

#: Share of the seeds with overrides.
_OVERRIDING: Final = 0.3
_MOST_OVERRIDES: Final = 4
#: Fewer than a job may have used already, and more than its type declares.
_ATTEMPTS: Final = (1, 2, 6)
_BEGINS_WITHIN_MS: Final = (0, 5_000, 60_000, 600_000)
_LASTS_MS: Final = (20_000, 120_000, 900_000, 4 * 3_600_000)


class OverridingOperators:
    """Override types in one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"overrides {world.seed}")

    def plan(self, until_ms: int) -> None:
        scheduler, random = self._world.scheduler, self._random
        if random.random() >= _OVERRIDING:
            return
        for _ in range(random.randint(1, _MOST_OVERRIDES)):
            within_ms = min(random.choice(_BEGINS_WITHIN_MS), until_ms - scheduler.now_ms)
            scheduler.at(scheduler.now_ms + random.randint(0, within_ms), self._begin)

    def _begin(self) -> None:
        items = (item for _, item in sorted(self._world.jobs.items.items()) if "state" in item)
        types = sorted({item["type"]["S"] for item in items} - {ODD_TYPE})
        if not types:
            return
        type_, attempts = self._random.choice(types), self._random.choice(_ATTEMPTS)
        # Before the call, since its answer may be lost.
        self._world.overridden_attempts[type_].add(attempts)
        name = f"{TYPE_PREFIX}{type_}.{Option.MAX_ATTEMPTS}"

        def act(_process: Process) -> None:
            changes = configurator()
            with suppress(ConfigurationConflictError):
                changes.set(changes.read(), name, attempts, by="eve", reason="")

        def end(_process: Process) -> None:
            changes = configurator()
            # Another operator was faster, or the override was never written.
            with suppress(InvalidSettingError, ConfigurationConflictError):
                changes.remove(changes.read(), name, by="bob", reason="")

        run_tool(self._world, "eve", act)
        self._world.scheduler.after(self._random.choice(_LASTS_MS), run_tool, self._world, "bob", end)

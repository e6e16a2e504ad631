"""Operators that force the breaker of the downstream open or closed at random, for a while, as its jobs flow.

Their own chance leaves the choices of other actors as they are.
"""

from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Final

from tests.simulation.actors.callers import run_tool
from tests.simulation.actors.operator_objects import configurator
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import PAYMENTS, World
from tidemill.domain.breakers.breaker import BreakerState
from tidemill.domain.errors import ConfigurationConflictError, InvalidSettingError
from tidemill.domain.operations.runtime_configuration import BREAKER_PREFIX
from tidemill.system import clock

#: Share of the seeds with forces.
_FORCING: Final = 0.3
_MOST_FORCES: Final = 3
_BEGINS_WITHIN_MS: Final = (0, 5_000, 60_000)
_LASTS_MS: Final = (30_000, 120_000, 900_000)
#: Share of the forces that end before their time, by another operator.
_REMOVED: Final = 0.5


class ForcingOperators:
    """Force the breakers of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"forces {world.seed}")

    def plan(self, until_ms: int) -> None:
        scheduler, random = self._world.scheduler, self._random
        if random.random() >= _FORCING:
            return
        for _ in range(random.randint(1, _MOST_FORCES)):
            within_ms = min(random.choice(_BEGINS_WITHIN_MS), until_ms - scheduler.now_ms)
            scheduler.at(scheduler.now_ms + random.randint(0, within_ms), self._begin, until_ms)

    def _begin(self, until_ms: int) -> None:
        """Each force has an end, so a removal that fails leaves none behind."""
        scheduler, random = self._world.scheduler, self._random
        state = random.choice([BreakerState.OPEN, BreakerState.CLOSED])
        lasts_ms = max(min(random.choice(_LASTS_MS), until_ms - scheduler.now_ms), 1_000)
        name, value = BREAKER_PREFIX + PAYMENTS, {"force": state.value}

        def act(_process: Process) -> None:
            self._world.log("eve", f"forces {PAYMENTS} {state} for {lasts_ms // 1000} s")
            changes, until = configurator(), clock.now() + timedelta(milliseconds=lasts_ms)
            with suppress(ConfigurationConflictError):
                changes.set(changes.read(), name, value, by="eve", reason="", until=until)

        run_tool(self._world, "eve", act)
        if random.random() < _REMOVED:
            scheduler.after(random.randint(1_000, lasts_ms), run_tool, self._world, "bob", _end)


def _end(_process: Process) -> None:
    changes = configurator()
    # It has ended, another operator was faster, or it was never written.
    with suppress(InvalidSettingError, ConfigurationConflictError):
        changes.remove(changes.read(), BREAKER_PREFIX + PAYMENTS, by="bob", reason="")

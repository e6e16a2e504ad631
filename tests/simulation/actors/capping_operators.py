"""Operators who cap the runs of a tenant, or of each one, and later raise the cap or remove it. The tenant has a crowd.

Their own chance leaves the other seeds as they are.
"""

from contextlib import suppress
from random import Random
from typing import Any, Final

from tests.simulation.actors.callers import Caller, PlannedSubmission, run_tool
from tests.simulation.actors.operator_objects import configurator
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill.domain.errors import ConfigurationConflictError, InvalidSettingError
from tidemill.domain.limits.caps import DEFAULT_CAP
from tidemill.domain.operations.runtime_configuration import CAP_PREFIX, WEIGHT_PREFIX
from tidemill.domain.submission.submission import Submission

CAPPED: Final = "111122223333:AROACAP"
#: Share of the seeds without faults, and of the others, with a cap.
_CAPPING: Final = 0.3
_CAPPING_AND_FAULTY: Final = 0.15
#: Share of them where the cap is that of each tenant, and this one has a weight.
_FOR_ALL: Final = 0.4
_MOST_BURSTS: Final = 2
_MOST_JOBS: Final = 7
#: The first number of its callers.
_FIRST_NUMBER: Final = 1_000
#: The bursts begin when the cap acts.
_BEGINS_AFTER_MS: Final = (9_000, 12_000, 40_000)
_BURST_WITHIN_MS: Final = (200, 3_000)
#: Share of the seeds where the cap changes later, and when.
_CHANGED: Final = 0.6
_CHANGES_AFTER_MS: Final = (14_000, 20_000, 60_000)


class CappingOperators:
    """Set caps in one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"caps {world.seed}")

    def plan(self) -> None:
        world, random = self._world, self._random
        faulty = any(world.faults.rates.values())
        if random.random() >= (_CAPPING_AND_FAULTY if faulty else _CAPPING):
            return
        cap, weight = random.choice([1, 1, 2]), random.choice([1.5, 2, 3])
        if random.random() < _FOR_ALL:
            name = CAP_PREFIX + DEFAULT_CAP
            self._change(WEIGHT_PREFIX + CAPPED, weight)
        else:
            name = CAP_PREFIX + CAPPED
        self._change(name, cap)
        now_ms = world.scheduler.now_ms
        if random.random() < _CHANGED:
            higher = random.choice([cap + 1, cap + 1, None])
            world.scheduler.at(now_ms + random.choice(_CHANGES_AFTER_MS), self._change, name, higher)
        for burst in range(random.randint(1, _MOST_BURSTS)):
            self._crowd(burst, now_ms + random.choice(_BEGINS_AFTER_MS))

    def _crowd(self, burst: int, at_ms: int) -> None:
        random, within_ms = self._random, self._random.choice(_BURST_WITHIN_MS)
        group = random.choice([None, None, None, "capped"])
        for number in range(random.randint(2, _MOST_JOBS)):
            key = f"capped-{burst}-{number}"
            submission = Submission(
                type=random.choice(["sim.effect", "sim.effect", "sim.plain", "sim.urgent"]),
                payload={"seconds": random.choice([0, 1, 3, 20]), "fails": random.choice([0, 0, 0, 1])},
                key=key,
                group=group if number % 2 else None,
            )
            planned = PlannedSubmission(CAPPED, submission, at_ms + random.randint(0, within_ms))
            Caller(self._world, planned, _FIRST_NUMBER + burst * _MOST_JOBS + number)

    def _change(self, name: str, value: Any) -> None:
        """None for the removal."""

        def act(_process: Process) -> None:
            changes = configurator()
            # Another operator was faster, or it was never written.
            with suppress(ConfigurationConflictError, InvalidSettingError):
                if value is None:
                    changes.remove(changes.read(), name, by="eve", reason="")
                else:
                    changes.set(changes.read(), name, value, by="eve", reason="")

        run_tool(self._world, "eve", act)

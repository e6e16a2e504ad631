"""Operators that backfill what jobs skipped: early, late, twice, at once with others, and from an old read."""

from random import Random
from typing import Final

from tests.simulation.actors.callers import PlannedSubmission, run_tool
from tests.simulation.actors.operator_objects import backfiller
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill import composition

#: Of one job.
_MOST_OPERATORS: Final = 4
_WITHIN_MS: Final = (10_000, 60_000, 600_000, 3_000_000)
_NAMES: Final = ("receipt", "receipt", "report")
#: Between the read of a job and its backfill.
_STALE_MS: Final = (0, 0, 20, 60_000)


class BackfillingOperators:
    """Those of one world. Their own chance leaves the other seeds as they are."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"backfills {world.seed}")

    def plan(self) -> None:
        """Draw the backfills of the submissions that were planned."""
        for planned in self._world.submissions:
            if planned.submission.type != "sim.books":
                continue
            for _ in range(self._random.randint(0, _MOST_OPERATORS)):
                at_ms = planned.at_ms + self._random.randint(0, self._random.choice(_WITHIN_MS))
                self._world.scheduler.at(at_ms, self._begin, planned)

    def _begin(self, planned: PlannedSubmission) -> None:
        name, stale_ms = self._random.choice(_NAMES), self._random.choice(_STALE_MS)

        def act(_process: Process) -> None:
            if not planned.ids:
                return
            store = composition.store()
            done = store.get(planned.tenant, planned.ids[-1])
            self._world.scheduler.sleep(stale_ms)
            if done:
                backfiller().backfill(done, name)

        run_tool(self._world, "eve", act)

"""Checks of the rests of workers: strain slows the lanes that can wait, and nothing else makes a worker rest.

The figures are those of the guide of strain, not those of the engine.
"""

from typing import Final

from tests.simulation.checks.floods import FloodChecks
from tests.simulation.checks.governor import GovernorChecks
from tests.simulation.checks.violation import require
from tests.simulation.world.worked_batch import WorkedBatch
from tests.simulation.world.world import World

#: By lane and level, how many times as long a batch keeps its worker.
_SLOWDOWN: Final = {"critical": (1, 1, 1, 1), "default": (1, 1, 2, 4), "bulk": (1, 2, 4, 8)}
#: A process knows a level within this time.
_KNOWN_WITHIN_MS: Final = 10_000
#: A worker keeps this part of its time for the answer.
_ANSWER_MS: Final = 1_000
#: The calls of a batch after its last run.
_SLACK_MS: Final = 50


class SlowdownChecks:
    """Runs at the end of one world."""

    def __init__(self, world: World, governor: GovernorChecks, floods: FloodChecks) -> None:
        self._world = world
        self._governor = governor
        self._floods = floods

    def at_end(self) -> None:
        """Raises `Violation`."""
        for batch in self._world.batches:
            from_ms = batch.began_ms - _KNOWN_WITHIN_MS
            operators = self._floods.operator_levels(from_ms, batch.ended_ms)
            governed = self._governor.levels(from_ms, batch.ended_ms)
            unsure = bool(self._world.sdk.gave_up[batch.by] or batch.by in self._world.scheduler.interrupted)
            # The higher one is in force.
            self._strain_slows(batch, unsure=unsure, level=max(min(operators), min(governed)))
            self._calm_does_not(batch, unsure=unsure, level=max(operators | governed))

    def _strain_slows(self, batch: WorkedBatch, *, unsure: bool, level: int) -> None:
        ends = [run.ended_ms for run in self._world.runs if run.by == batch.by and run.ended_ms is not None]
        worked_ms = max((end for end in ends if batch.began_ms <= end <= batch.ended_ms), default=0) - batch.began_ms
        longest_ms = batch.ends_ms - batch.began_ms - _ANSWER_MS
        least_ms = min(worked_ms * _SLOWDOWN[batch.lane][level], longest_ms) - _SLACK_MS
        took_ms = batch.ended_ms - batch.began_ms
        what = f"a batch of {batch.lane} at level {level}: {worked_ms} ms of work, and its worker was back in {took_ms}"
        require(unsure or took_ms >= least_ms, "strain slows the lanes that can wait", what, "*")

    def _calm_does_not(self, batch: WorkedBatch, *, unsure: bool, level: int) -> None:
        rested = any(batch.began_ms <= at_ms <= batch.ended_ms and by == batch.by for at_ms, by in self._world.rests)
        slowed = _SLOWDOWN[batch.lane][level] > 1
        what = f"a worker of {batch.lane} rested at level {level}"
        require(unsure or slowed or not rested, "a worker rests only under strain", what, "*")


__all__ = ["SlowdownChecks"]

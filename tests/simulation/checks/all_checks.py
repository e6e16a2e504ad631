"""All checks of one world, and how long it may take until all has ended."""

from typing import Final

from tests.simulation.checks.at_rest import HistoryChecks
from tests.simulation.checks.attempts import RunChecks
from tests.simulation.checks.code_versions import VersionChecks
from tests.simulation.checks.document_changes import DocumentChecks
from tests.simulation.checks.document_fields import BookkeepingChecks
from tests.simulation.checks.limits import LimitChecks
from tests.simulation.checks.payloads import PayloadChecks
from tests.simulation.checks.violation import Violation, state_of
from tests.simulation.world.faults import LOSSES
from tests.simulation.world.world import World
from tidemill.domain.states import TERMINAL

_DAY_SECONDS: Final = 86_400
#: What a workload asks for at most: jobs that are yet to follow, attempts of a life, and their longest waits.
_MOST_FOLLOWING: Final = 3
_MOST_ATTEMPTS: Final = 4
_LONGEST_BACKOFF_SECONDS: Final = 2_000
_FARTHEST_RUN_AT_SECONDS: Final = 6 * 3600
#: For how long a job is held whose type or payload is of another version, at most.
_LONGEST_HELD_SECONDS: Final = 4 * 3600


class Checks:
    """Make it before anything happens."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._documents = DocumentChecks(world)
        self._bookkeeping = BookkeepingChecks(world)
        self._runs = RunChecks(world)
        self._history = HistoryChecks(world, self._documents)
        self._limits = LimitChecks(world, self._documents)
        self.payloads = PayloadChecks(world)
        self.versions = VersionChecks(world)

    def at_rest(self) -> bool:
        """Nothing is left that the quiet has to bring about."""
        if self._world.stream.behind or any(queue.messages for queue in self._world.lanes.values()):
            return False
        return all(state_of(item) in TERMINAL for item in self._world.jobs.items.values() if "state" in item)

    def bound_ms(self) -> int:
        """How long after the last fault every job has ended: see docs/internals/proof.md.

        A message that was lost is found by the next daily round that comes after the limit, or the one after; where
        nothing was, nobody waits for a day. What a dead worker held comes back with the visibility timeout; and a job
        may have to wait for others of its group, each with all attempts of two lives.
        """
        stage = self._world.deployment.stage
        visibility_seconds = max(lane.visibility_timeout_seconds for lane in stage.lanes)
        a_life_seconds = _MOST_ATTEMPTS * (visibility_seconds + _LONGEST_BACKOFF_SECONDS)
        a_life_seconds += _LONGEST_HELD_SECONDS if self._world.rollout.planned else 0
        jobs = len([item for item in self._world.jobs.items.values() if "state" in item])
        # What publish of one version cannot read for too long waits for reconcile of the other.
        planned = self._world.rollout.planned
        lost = planned or any(self._world.weather.counted[fault] for fault in LOSSES)
        lost_seconds = 2 * _DAY_SECONDS + stage.reconcile_limit_seconds if lost else 0
        return 1000 * (lost_seconds + _FARTHEST_RUN_AT_SECONDS + 2 * (jobs + _MOST_FOLLOWING) * a_life_seconds)

    def at_end(self) -> None:
        """Raises `Violation`."""
        self._history.at_end()
        self._bookkeeping.at_end()
        self._runs.at_end()
        self._limits.at_end()
        self.versions.at_end()


__all__ = ["Checks", "Violation"]

"""The deployment of the small scope: two workers for each lane, and invocations that the director watches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from tests.simulation.deployment import Deployment
from tests.simulation.scope.director import Director
from tests.simulation.world.installed_patches import world
from tidemill.cdk.lanes.lane_config import LaneConfig

WORKERS: Final = 2


@dataclass(frozen=True)
class SmallDeployment(Deployment):
    #: Most messages in one batch.
    batch_size: int = 1
    #: Each further message and read multiplies the schedules.
    varied: bool = False

    @property
    def stream_factors(self) -> Sequence[int]:
        """One poller for each shard keeps the schedules few."""
        return (1,)

    @cached_property
    def lanes(self) -> Sequence[LaneConfig]:
        return [
            replace(lane, batch_size=self.batch_size, max_concurrency=WORKERS, reserved_concurrency=None)
            for lane in self.stage.lanes
        ]

    def handler(self, verb: str) -> Callable[[Any, Any], Any]:
        handle = super().handler(verb)

        def watched(event: Any, context: Any) -> Any:
            director = world().scheduler
            assert isinstance(director, Director)
            with director.invocation(verb, event):
                return handle(event, context)

        return watched

"""The TTL of DynamoDB: it deletes expired items within days."""

from typing import Final

from tests.simulation.world.faults import Fault
from tests.simulation.world.world import World

_ROUND_MS: Final = 3_600_000
_LATEST_MS: Final = 48 * 3_600_000


class TtlSweeper:
    """Sweeps once an hour."""

    def __init__(self, world: World) -> None:
        self._world = world

    def begin(self) -> None:
        self._world.scheduler.after(_ROUND_MS, self._sweep)

    def _sweep(self) -> None:
        world = self._world
        now_ms = world.scheduler.now_ms
        for key in list(world.jobs.expired(now_ms)):
            expired_ms = int(world.jobs.items[key][world.jobs.ttl]["N"]) * 1000
            if now_ms - expired_ms < _LATEST_MS and world.faults.occurs(Fault.EXPIRED_LATE):
                continue
            world.jobs.put(key, None, now_ms=now_ms, by_ttl=True)
        world.scheduler.after(_ROUND_MS, self._sweep)

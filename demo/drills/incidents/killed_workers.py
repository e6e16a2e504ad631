"""Jobs of one type use up the memory of their workers, so the host kills these, again and again."""

from collections.abc import Mapping
from typing import Final

from demo.drills.drill import Drill

TYPE: Final = "demo.slow"
JOBS: Final = 3
#: Every so many minutes the host kills a worker. The alarm counts periods of five minutes.
INTERVAL: Final = 4


class KilledWorkers(Drill):
    name = "killed-workers"
    alarm = "FunctionErrorsworkers"
    heading = "function-errors"

    def begin(self) -> Mapping[str, str]:
        self._minutes = 0
        self._kill()
        return {"TYPE": TYPE}

    def each_minute(self) -> None:
        self._minutes += 1
        if self._minutes % INTERVAL == 0:
            self._kill()

    def _kill(self) -> None:
        self.stage.kill_worker("work", self.traffic.also([{"type": TYPE}] * JOBS))

    def deploy(self) -> None:
        """With enough memory, nothing kills the workers."""

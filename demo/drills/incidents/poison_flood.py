"""A caller floods a lane with jobs that their handler cannot process, so they die."""

from collections.abc import Mapping
from typing import Final

from demo.drills.drill import Drill

TYPE: Final = "demo.poison"
JOBS: Final = 40
#: The setting that stands for the fixed handler.
FIXED: Final = "TIDEMILL_DEMO_FIXED"


class PoisonFlood(Drill):
    name = "poison-flood"
    alarm = "DeadJobsdefault"
    heading = "dead-jobs"

    def begin(self) -> Mapping[str, str]:
        self.stage.deploy_variable("work", FIXED, "no")
        self.traffic.also([{"type": TYPE, "payload": {"body": f"poison {n}"}} for n in range(JOBS)])
        return {"TYPE": TYPE}

    def deploy(self) -> None:
        self.stage.deploy_variable("work", FIXED, "yes")

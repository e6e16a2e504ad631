"""A deployment breaks a type of job, so its jobs die."""

from collections.abc import Mapping
from typing import Final

from demo.drills.drill import Drill
from demo.drills.traffic import TYPE

#: A setting of the demo's job types.
BROKEN: Final = "broken_demo_release=on"


class BrokenDeployment(Drill):
    name = "broken-deployment"
    alarm = "DeadJobsdefault"
    heading = "dead-jobs"
    #: A deployment takes the processors of this host, where a minute of the alarms has a few seconds.
    pages = frozenset({"LateCanary", "SilentScheduler"})

    def begin(self) -> Mapping[str, str]:
        self.stage.deploy([BROKEN])
        return {"TYPE": TYPE}

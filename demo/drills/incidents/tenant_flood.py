"""One tenant floods the lane bulk, so the jobs of the others wait behind its jobs."""

from collections.abc import Mapping
from typing import Final

from demo.drills.drill import Drill

ROLE: Final = "flood"
JOBS: Final = 600
SECONDS: Final = 1.4


class TenantFlood(Drill):
    name = "tenant-flood"
    alarm = "LateCanary"
    heading = "late-canary"

    def begin(self) -> Mapping[str, str]:
        job = {"type": "demo.wait", "lane": "bulk", "payload": {"seconds": SECONDS}}
        ids = self.traffic.also([job] * JOBS, role=ROLE)
        (first,) = self.stage.jobs(ids[:1]).values()
        return {"TENANT": first.tenant}

"""One tenant floods the lane bulk, so the jobs of the others wait behind its jobs. It goes on until the end."""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from demo.drills.drill import Drill
from demo.drills.traffic import late_starts
from tidemill.domain.job import Job

ROLE: Final = "flood"
#: At once, and after each evaluation of the alarms: more than the workers of the lane run in three seconds.
FIRST: Final = 300
EACH_MINUTE: Final = 60
SECONDS: Final = 1.4


class TenantFlood(Drill):
    name = "tenant-flood"
    alarm = "LateCanary"
    heading = "late-canary"

    def submit(self) -> Sequence[str]:
        return self.traffic.submit(lane="bulk")

    def begin(self) -> Mapping[str, str]:
        (first, *_) = self.traffic.some([self._job] * FIRST, role=ROLE)
        (job,) = self.stage.jobs([first]).values()
        return {"TENANT": job.tenant}

    def goes_on(self) -> None:
        self.traffic.some([self._job] * EACH_MINUTE, role=ROLE)

    def unmet(self, later: Sequence[Job]) -> Iterator[str]:
        yield from late_starts(later)
        self.goes_on()
        answer = self.traffic.offer(self._job, role=ROLE)
        if answer.status != HTTPStatus.TOO_MANY_REQUESTS or not answer.retry_after:
            yield f"the flood is not refused with 429 and Retry-After: {answer}"

    @property
    def _job(self) -> Mapping[str, Any]:
        return {"type": "demo.wait", "lane": "bulk", "payload": {"seconds": SECONDS}}

"""Jobs that callers can do without flood the lane critical, so the jobs that users wait for are late."""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from demo.drills.drill import Drill
from demo.drills.stage import Answer, Stage
from demo.drills.traffic import late_starts
from tidemill.domain.job import Job
from tidemill.local.wait import wait_until

FOREGROUND: Final = "demo.checkout"
FLOOD: Final = "demo.preview"
#: At once, and after each evaluation of the alarms: more than the workers of the lane run in three seconds.
FIRST: Final = 300
EACH_MINUTE: Final = 80
SECONDS: Final = 1.4
#: In evaluations of the alarms: the time in which the level acts and the lane drains, and then the rest of the flood.
DRAINED_WITHIN: Final = 6
REST: Final = 2
#: A setting that is removed, with time for a slow machine.
ACTS_WITHIN_SECONDS: Final = 20


class ForegroundStrained(Drill):
    name = "foreground-strained"
    alarm = "LateCanary"
    heading = "late-canary"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._waited = 0
        self._answers: list[Answer] = []
        #: The jobs that were submitted while the flood was refused.
        self._foreground: Sequence[str] = ()

    def submit(self) -> Sequence[str]:
        return self.traffic.submit(type_=FOREGROUND)

    def begin(self) -> Mapping[str, str]:
        self.traffic.some([self._job] * FIRST)
        return {}

    def goes_on(self) -> None:
        if self._waited < DRAINED_WITHIN + REST:
            self.traffic.some([self._job] * EACH_MINUTE)
            self._answers.append(self.traffic.offer(self._job))

    def cause_has_ended(self) -> bool:
        self._waited += 1
        if self._waited == DRAINED_WITHIN:
            self._foreground = self.submit()
        return self._waited >= DRAINED_WITHIN + REST

    def unmet(self, later: Sequence[Job]) -> Iterator[str]:
        yield from late_starts([*self.stage.jobs(self._foreground).values(), *later])
        if not any(each.status == HTTPStatus.SERVICE_UNAVAILABLE and each.retry_after for each in self._answers):
            yield "no job was refused with 503 and Retry-After"
        wait_until(self._accepted_again, ACTS_WITHIN_SECONDS, f"a job of {FLOOD} to be accepted again")

    def _accepted_again(self) -> bool:
        return self.traffic.offer(self._job).id is not None

    @property
    def _job(self) -> Mapping[str, Any]:
        return {"type": FLOOD, "payload": {"seconds": SECONDS}}

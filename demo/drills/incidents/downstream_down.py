"""The service payments answers 503. Its operators ask for silence while they repair it."""

import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Final

from demo.drills.downstream import down, healthy
from demo.drills.drill import Drill
from demo.drills.stage import Stage
from demo.drills.traffic import JOBS, late_starts
from demo.drills.waiting import waiting
from functions.demo_jobs.downstream import PAYMENTS
from tidemill.domain.job import Job
from tidemill.domain.waiting.waiting import Cause

TYPE: Final = "demo.charge"
#: In evaluations of the alarms, of three seconds at least: the time in which the setting acts, and then the time
#: without a call until the service works again. A probe comes each three seconds.
ACTS_WITHIN: Final = 4
SILENCE: Final = 3


class DownstreamDown(Drill):
    name = "downstream-down"
    alarm = None
    heading = "open-breaker"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._service = stage.downstream()
        #: The jobs of another type that were submitted during the outage.
        self._others: list[str] = []
        self._waited = self._before_silence = 0
        self._began = self._repaired = time.monotonic()
        #: None until the service works again.
        self._in_silence: int | None = None

    def submit(self) -> Sequence[str]:
        charges = self.traffic.submit(type_=TYPE, payload={"port": self._service.port})
        return [*charges, *self.traffic.submit()]

    def begin(self) -> Mapping[str, str]:
        # Calls that are at work may end before or after it, so the outage begins between them.
        self.traffic.settle()
        self._service.behave(down)
        self._began = time.monotonic()
        return {"BREAKER": PAYMENTS.name}

    def shown(self) -> bool:
        return waiting(self.stage.status(), cause=Cause.BREAKER, key=PAYMENTS.name) > 0

    def goes_on(self) -> None:
        if self._in_silence is None:
            self._others += self.traffic.submit(1)

    def cause_has_ended(self) -> bool:
        self._waited += 1
        if self._waited == ACTS_WITHIN:
            self._before_silence = self._failures()
        if self._waited < ACTS_WITHIN + SILENCE:
            return False
        self._in_silence = self._failures() - self._before_silence
        self._service.behave(healthy)
        self._repaired = time.monotonic()
        return True

    def unmet(self, later: Sequence[Job]) -> Iterator[str]:  # noqa: ARG002 - the probe may come a minute late
        yield from late_starts(list(self.stage.jobs(self._others).values()))
        if self._in_silence:
            yield f"{self._in_silence} calls while the breaker was forced open"
        # Each job that was at work when the breaker opened may have called once more.
        probes = 1 + int((self._repaired - self._began) / PAYMENTS.probe_seconds)
        if (calls := self._failures()) > (bound := PAYMENTS.failure_threshold + JOBS + probes):
            yield f"{calls} calls failed, which is more than {bound}"

    def end(self) -> None:
        self._service.close()

    def _failures(self) -> int:
        return self._service.calls().count(HTTPStatus.SERVICE_UNAVAILABLE)

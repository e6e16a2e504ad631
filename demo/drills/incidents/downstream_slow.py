"""A service answers slowly, and refuses calls above ten at once. The adaptive limit of its type falls to its floor.

Each call takes longer than the limit's target, however few there are, so the limit cannot know that the service takes
more than one. An operator who knows sets the number.
"""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Final

from demo.drills.downstream import healthy
from demo.drills.drill import Drill
from demo.drills.stage import Stage
from demo.drills.traffic import JOBS
from demo.drills.waiting import waiting
from tidemill.domain.job import Job
from tidemill.domain.waiting.waiting import Cause

TYPE: Final = "demo.ship"
#: One at a time takes longer than a drill may.
BACKLOG: Final = 240
SECONDS: Final = 1.0
AT_ONCE: Final = 10
#: The largest share of refused calls: the first ones come before the limit has fallen.
MOST_REFUSED: Final = 0.05
#: By how much more jobs end in a minute with the setting.
GAIN: Final = 2
#: In evaluations of the alarms: the time in which the setting acts, and then the time that is measured.
ACTS_WITHIN: Final = 4
MEASURED: Final = 3


def slow(at_work: int) -> tuple[HTTPStatus, float]:
    return (HTTPStatus.NO_CONTENT, SECONDS) if at_work <= AT_ONCE else (HTTPStatus.SERVICE_UNAVAILABLE, 0.0)


class DownstreamSlow(Drill):
    name = "downstream-slow"
    alarm = None
    heading = "slow-service"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._service = stage.downstream()
        self._before: list[int] = []
        self._with_setting: list[int] = []

    def submit(self) -> Sequence[str]:
        return self._submit(JOBS)

    def begin(self) -> Mapping[str, str]:
        self.traffic.settle()
        self._service.behave(slow)
        self._last = self._submit(BACKLOG)[-1]
        return {"TYPE": TYPE}

    def shown(self) -> bool:
        """The setting may act late, so the time before it is measured for as long."""
        self._before.append(self._served())
        if len(self._before) <= MEASURED or not waiting(self.stage.status(), cause=Cause.LIMIT, key=TYPE):
            return False
        return "was lowered last" in self.stage.explain(self._last)

    def cause_has_ended(self) -> bool:
        self._with_setting.append(self._served())
        if len(self._with_setting) <= ACTS_WITHIN + MEASURED:
            return False
        self._service.behave(healthy)
        return True

    def unmet(self, later: Sequence[Job]) -> Iterator[str]:  # noqa: ARG002 - they wait behind the others
        before, after = (series[-1] - series[-1 - MEASURED] for series in (self._before, self._with_setting))
        if after < GAIN * before:
            yield f"{before} calls succeeded in {MEASURED} minutes, and {after} with the setting"
        calls = self._service.calls()
        if (refused := calls.count(HTTPStatus.SERVICE_UNAVAILABLE)) > MOST_REFUSED * len(calls):
            yield f"the service refused {refused} of {len(calls)} calls"
        if any(each["type"] == TYPE for each in self.stage.status()["overrides"] or ()):
            yield f"an option of {TYPE} is still set"

    def end(self) -> None:
        self._service.close()

    def _submit(self, number: int) -> Sequence[str]:
        return self.traffic.submit(number, type_=TYPE, payload={"port": self._service.port})

    def _served(self) -> int:
        return self._service.calls().count(HTTPStatus.NO_CONTENT)

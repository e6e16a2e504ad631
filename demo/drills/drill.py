"""`Drill`: one incident. Its subclasses are in `incidents`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from demo.drills.errors import DrillError
from demo.drills.stage import Stage
from demo.drills.traffic import Traffic
from tidemill.domain.job import Job


class Drill(ABC):
    """Each run of a drill has its own."""

    #: The name in `make drill NAME=…`, and on the fenced block of the runbook that fixes the incident.
    name: ClassVar[str]
    #: The alarm that must fire, by its id in the catalogue. None: only `tidemill status` shows the incident.
    alarm: ClassVar[str | None]
    #: The anchor of its heading in the runbook.
    heading: ClassVar[str]
    #: The pages that the incident also causes. No other page may fire.
    pages: ClassVar[frozenset[str]] = frozenset()

    #: Whether jobs are submitted between the incident and its fix.
    submits_during: ClassVar[bool] = True

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        #: The jobs that the drill submits and follows.
        self.traffic = Traffic(stage)

    @property
    def expected(self) -> frozenset[str]:
        return self.pages | ({self.alarm} if self.alarm else frozenset())

    def submit(self) -> Sequence[str]:
        """Submit jobs that must begin soon on a healthy stage, and succeed. Returns the ids of the accepted ones."""
        return self.traffic.submit()

    @abstractmethod
    def begin(self) -> Mapping[str, str]:
        """Break the stage. Returns the values of the words in capitals in the commands of the runbook."""

    def shown(self) -> bool:
        """Whether `tidemill status` shows the incident. Asked after each evaluation, if the drill has no alarm."""
        raise DrillError(f"{self.name} has an alarm")

    def each_minute(self) -> None:
        """What goes on while the incident lasts. Called after each evaluation of the alarms until the fix."""
        return

    def goes_on(self) -> None:
        """What goes on after the fix has begun, too. Called after each evaluation, from the incident to the end."""
        return

    def cause_has_ended(self) -> bool:
        """Asked after each evaluation, where the runbook says `# when the cause has ended`. In time, the cause ends."""
        raise DrillError(f"{self.name} has no cause that ends by itself")

    def unmet(self, later: Sequence[Job]) -> Iterator[str]:  # noqa: ARG002 - for subclasses
        """What else does not hold at the end. `later`: the jobs submitted after the fix. All jobs have succeeded."""
        return iter(())

    def end(self) -> None:
        """End what the drill has started beside the stage. Called once, also after an error."""
        return

    def deploy(self) -> None:
        """What the line `# deploy …` of the runbook stands for: the deployment of a fixed version."""
        raise DrillError(f"{self.name} has no deployment")

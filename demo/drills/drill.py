"""`Drill`: one incident. Its subclasses are in `incidents`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from demo.drills.errors import DrillError
from demo.drills.stage import Stage
from demo.drills.traffic import Traffic


class Drill(ABC):
    """Each run of a drill has its own."""

    #: As in `make drill NAME=…`, and as on the fenced block of the runbook that fixes it.
    name: ClassVar[str]
    #: The alarm that must fire, by its id in the catalogue, and the anchor of its heading in the runbook.
    alarm: ClassVar[str]
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
        return self.pages | {self.alarm}

    @abstractmethod
    def begin(self) -> Mapping[str, str]:
        """Break the stage. Returns the values of the words in capitals in the commands of the runbook."""

    def each_minute(self) -> None:
        """What goes on while the incident lasts. Called after each evaluation of the alarms until the fix."""
        return

    def deploy(self) -> None:
        """What the line `# deploy …` of the runbook stands for: the deployment of a fixed version."""
        raise DrillError(f"{self.name} has no deployment")

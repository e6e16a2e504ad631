"""`AlarmWatch`: which alarms of a stage fire. `AlarmLog` reads it from the log of the watch beside the embedded AWS."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol

from tidemill.local.alarms import State
from tidemill.operator.status.alarm_states import Severity

#: A line of `tidemill.local.alarm_watch.watch`: time, state, severity, name.
_CHANGE: Final = re.compile(r"[\d:]{8} (\w+) +(\w+) +(\S+?):(?: |$)")
#: The first line of the watch.
_BEGAN: Final = "watching "
#: A line is read when the evaluation of its minute is over.
_AFTER: Final = 0.5
#: The composite of all pages.
PAGE: Final = "Page"


class AlarmWatch(Protocol):
    #: The length of a minute of the alarms.
    minute_seconds: float
    #: The ids of the alarms that fire, without those that only a composite reads.
    firing: frozenset[str]
    #: The ids of all pages that have fired since `forget_pages`.
    pages: frozenset[str]

    def forget_pages(self) -> None:
        """Called before the incident begins."""

    def next(self) -> None:
        """Wait for the next evaluation, and read what it changed."""

    def now(self) -> float:
        """Seconds."""


class AlarmLog:
    """`offset`: where in the log the watch began."""

    def __init__(
        self, log: Path, *, offset: int = 0, minute_seconds: float, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.firing = frozenset[str]()
        self.pages = frozenset[str]()
        #: How many the watch has made, about, since it began.
        self.evaluations = 0
        self._log = log
        self._offset = offset
        self.minute_seconds = minute_seconds
        self._sleep = sleep

    def forget_pages(self) -> None:
        self.pages = frozenset()

    def next(self) -> None:
        since = time.time() % self.minute_seconds
        self._sleep(self.minute_seconds * (1 + _AFTER) - since if since > _AFTER else self.minute_seconds * _AFTER)
        self.evaluations += self.evaluations > 0
        for state, severity, id_ in self._changes():
            if severity is Severity.PART:
                continue
            self.firing = self.firing - {id_} | ({id_} if state is State.ALARM else frozenset())
            if state is State.ALARM and severity is Severity.PAGE:
                self.pages |= {id_}

    def now(self) -> float:
        return time.monotonic()

    def _changes(self) -> Iterator[tuple[State, Severity, str]]:
        with self._log.open("rb") as log:
            log.seek(self._offset)
            text = log.read()
        # The last line may be incomplete.
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            if line.startswith(_BEGAN):
                self.evaluations = 1
            if found := _CHANGE.match(line):
                yield State(found[1]), Severity(found[2]), alarm_id(found[3])


def alarm_id(name: str) -> str:
    """In the catalogue. The name has the stack before it, eight digits of CDK and some of CloudFormation behind it."""
    return re.sub(r"[0-9A-F]{8}(-\w+)?$", "", name.rpartition("Pipeline-")[2])

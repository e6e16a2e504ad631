"""What a fan-in costs, and what it promises."""

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from demo.figures.stream_log import StreamLog
from tidemill import Submission
from tidemill.client import Tidemill
from tidemill.domain.states import State
from tidemill.local.lifecycle import App
from tidemill.local.wait import wait_until
from tidemill.names import Output

TENANT: Final = "fan-in"
_PATIENCE_SECONDS: Final = 3_600
_POLL_SECONDS: Final = 2.0
NOOP: Final = Submission(type="demo.flaky", payload={"failures": 0})
_READ_UNIT_BYTES: Final = 4_096


@dataclass(slots=True)
class FanIn:
    """What one fan-in cost, and what became of it."""

    name: str
    jobs: int = 0
    #: By what was written: `job`, `page` (or cursor), `end` and `callback`.
    writes: Counter[str] = field(default_factory=Counter)
    #: The read units of each look.
    looks: list[int] = field(default_factory=list)
    callbacks: int = 0
    states: Counter[State] = field(default_factory=Counter)
    #: Seconds from the end of the last job to the callback, and at most how many.
    delay_seconds: float = 0.0
    allowed_seconds: float = 0.0
    #: Seconds from the close to the end of the last job.
    took_seconds: float = 0.0

    @property
    def faults(self) -> list[str]:
        found = []
        if self.states != {State.SUCCEEDED: self.jobs}:
            found.append(f"the jobs are {dict(self.states)}, not {self.jobs} succeeded")
        if self.callbacks != 1:
            found.append(f"the callback came into being {self.callbacks} times")
        if self.delay_seconds > self.allowed_seconds:
            allowed = f"{self.allowed_seconds:.0f} s are allowed"
            found.append(f"the callback came {self.delay_seconds:.0f} s after the last end, and {allowed}")
        return found


def client_of(app: App) -> Tidemill:
    return Tidemill.at(
        app.outputs[Output.JOBS_TABLE],
        tenant=TENANT,
        job_packages=["functions.demo_jobs"],
        client=app.client("dynamodb"),
        files=(app.client("s3"), app.outputs[Output.FILES_BUCKET]),
    )


def units(bytes_: int) -> int:
    """The read units of an item."""
    return math.ceil(bytes_ / _READ_UNIT_BYTES)


class Reader(Protocol):
    """Follows one fan-in through the records of the table."""

    found: FanIn

    @property
    def has_ended(self) -> bool: ...

    def take(self, log: StreamLog) -> None: ...


def follow(read: Reader, log: StreamLog, say: Callable[[str], object]) -> None:
    """Until the whole has ended, and a moment longer, in which a second callback would come."""

    def ended() -> bool:
        # Thousands of records come in between, and each read of them takes the time of the workers.
        time.sleep(_POLL_SECONDS)
        read.take(log)
        say(f"{read.found.states[State.SUCCEEDED]:,} have succeeded, {len(read.found.looks)} looks")
        return read.has_ended

    wait_until(ended, _PATIENCE_SECONDS, f"the {read.found.name} to end")
    ended()

"""Settings of the deployment, requests to it, and the jobs and workers of the reference model.

Times are seconds since the beginning of an example.
"""

import math
from dataclasses import dataclass, field
from typing import Final

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
#: Retention of a terminal job.
RETENTION: Final = DAY
#: Period of a unique job.
PERIOD: Final = 2 * DAY
#: Duration of an invocation, and the time that must be left for another run to begin.
INVOCATION: Final = 10
LONGEST_RUN: Final = 6
MAX_ATTEMPTS: Final = 2
MAX_HOPS: Final = 2
#: Largest random delay after the first failure. It doubles with each failure.
BACKOFF: Final = 2
#: Longest delay of a message, window of wake, and allowance of a lease for clock skew.
DELAY: Final = 15 * MINUTE
WINDOW: Final = 5 * MINUTE
SKEW: Final = 2
#: Longest wait for a limit slot.
LONGEST_HOLD: Final = 5 * MINUTE
#: Lateness after which reconcile nudges a job; number of nudges and lateness after which it dies.
LATE: Final = HOUR
MAX_NUDGES: Final = 6
GIVEN_UP: Final = 7 * DAY
ENDED: Final = ("succeeded", "dead", "cancelled", "gone")


@dataclass(frozen=True)
class SubmitRequest:
    """A submission. Its name is its key."""

    name: str
    #: plain; strict: `on_dead="block"`; single: one runs at a time.
    kind: str = "plain"
    group: str | None = None
    delay: int = 0
    deadline: float = math.inf
    #: Whether its payload is stored beside the document.
    large: bool = False
    unique: bool = False

    def __str__(self) -> str:
        parts = [self.name]
        parts += [self.kind] if self.kind != "plain" else []
        parts += [f"group {self.group}"] if self.group else []
        parts += [f"delay {self.delay}"] if self.delay else []
        parts += [f"deadline {self.deadline:g}"] if self.deadline < math.inf else []
        return ", ".join([*parts, *(word for word in ("large", "unique") if getattr(self, word))])


@dataclass(frozen=True, order=True)
class Message:
    """A message in a lane or its dead-letter queue."""

    name: str
    generation: int
    not_before: float = 0

    def __str__(self) -> str:
        return self.name if self.generation == 1 else f"{self.name} at generation {self.generation}"


@dataclass(frozen=True)
class Ending:
    """How a handler ends. `then` is a follow-up job of a success."""

    word: str
    seconds: int = 0
    then: SubmitRequest | None = None

    def __str__(self) -> str:
        seconds = f" ({self.seconds} s)" if self.seconds else ""
        return f"{self.word}{seconds}{f', then {self.then}' if self.then else ''}"


@dataclass(eq=False)
class Job:
    """The parts of a document that the protocol uses."""

    name: str
    request: SubmitRequest
    created: float
    hops: int = 0
    state: str = "new"
    #: Not-before time or end of the lease; infinite for neither.
    due: float = math.inf
    generation: int = 1
    attempt: int = 0
    owner: "Worker | None" = None
    checkpoint: int | None = None
    cancel_requested: bool = False
    death: str | None = None
    ended: float | None = None
    expires: float = math.inf
    nudges: int = 0
    nudged: float = 0
    redriven: bool = False

    @property
    def blocks(self) -> bool:
        return self.request.kind == "strict" and self.request.group is not None

    @property
    def stands(self) -> bool:
        """Whether its group waits for it while it is the head."""
        return self.state not in ENDED or (self.state == "dead" and self.blocks)

    @property
    def begins(self) -> float:
        return self.created + self.request.delay

    @property
    def longest_backoff(self) -> float:
        return BACKOFF * 2.0 ** (self.attempt - 1)

    @property
    def deadline(self) -> float:
        return math.inf if self.redriven else self.request.deadline

    @property
    def kept_until(self) -> float:
        return (self.created // PERIOD + 1) * PERIOD if self.request.unique else 0


@dataclass(eq=False)
class Worker:
    """Handles one message, and continues with the next job of its group."""

    number: int
    began: float
    job: Job | None = None
    message: Message = field(default=Message("", 0))
    timed_out: bool = False
    #: The result of each job that it tried.
    reported: list[str] = field(default_factory=list)

    @property
    def runs(self) -> Job:
        assert self.job is not None
        return self.job

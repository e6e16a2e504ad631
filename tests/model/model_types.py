"""The nouns: the figures of the deployment, what is asked of it, and what the reference knows of a job and a worker.

Times are seconds since a beginning.
"""

import math
from dataclasses import dataclass, field
from typing import Final

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
#: How long a job is kept that has ended.
RETENTION: Final = DAY
#: In each such period a unique job is the only one of its name.
PERIOD: Final = 2 * DAY
#: How long an invocation lasts, and what must be left of it for another run to begin.
INVOCATION: Final = 10
LONGEST_RUN: Final = 6
MAX_ATTEMPTS: Final = 2
MAX_HOPS: Final = 2
#: The ceiling of the random delay after the first failure; it doubles.
BACKOFF: Final = 2
#: The most that a message is delayed, how far wake looks ahead, and by how much clocks may differ.
DELAY: Final = 15 * MINUTE
WINDOW: Final = 5 * MINUTE
SKEW: Final = 2
#: The longest wait for a slot.
LONGEST_HOLD: Final = 5 * MINUTE
#: How late a job is before reconcile looks after it; after so many nudges in vain, and so late, it dies.
LATE: Final = HOUR
MAX_NUDGES: Final = 6
GIVEN_UP: Final = 7 * DAY
ENDED: Final = ("succeeded", "dead", "cancelled", "gone")


@dataclass(frozen=True)
class SubmitRequest:
    """A submission. Its name is its key."""

    name: str
    #: plain; strict: a dead head blocks its group; single: one runs at a time.
    kind: str = "plain"
    group: str | None = None
    delay: int = 0
    deadline: float = math.inf
    #: Its payload is stored beside the document.
    large: bool = False
    unique: bool = False

    def __str__(self) -> str:
        said = [self.name]
        said += [self.kind] if self.kind != "plain" else []
        said += [f"group {self.group}"] if self.group else []
        said += [f"delay {self.delay}"] if self.delay else []
        said += [f"deadline {self.deadline:g}"] if self.deadline < math.inf else []
        return ", ".join([*said, *(word for word in ("large", "unique") if getattr(self, word))])


@dataclass(frozen=True, order=True)
class Message:
    """What a lane or its dead-letter queue holds."""

    name: str
    generation: int
    not_before: float = 0

    def __str__(self) -> str:
        return self.name if self.generation == 1 else f"{self.name} at generation {self.generation}"


@dataclass(frozen=True)
class Ending:
    """How a handler ends. `then` is a job that follows its success."""

    word: str
    seconds: int = 0
    then: SubmitRequest | None = None

    def __str__(self) -> str:
        seconds = f" ({self.seconds} s)" if self.seconds else ""
        return f"{self.word}{seconds}{f', then {self.then}' if self.then else ''}"


@dataclass(eq=False)
class Job:
    """A document, as far as the protocol looks at it."""

    name: str
    request: SubmitRequest
    created: float
    hops: int = 0
    state: str = "new"
    #: Not before, or the end of the lease; infinite where there is neither.
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
        """Whether its group waits for it, as the head."""
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
    """Has one message, and goes on with the next of its group."""

    number: int
    began: float
    job: Job | None = None
    message: Message = field(default=Message("", 0))
    timed_out: bool = False
    #: What became of each job that it tried.
    reported: list[str] = field(default_factory=list)

    @property
    def runs(self) -> Job:
        assert self.job is not None
        return self.job

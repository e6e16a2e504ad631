"""The values that a handler may return instead of a plain result."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tidemill.domain.outcomes import TransactWrite
from tidemill.domain.submission import Submission
from tidemill.domain.time_constants import LONGEST_SPAN


@dataclass(frozen=True, slots=True)
class Done:
    """Success with more than a result.

    `writes` and the jobs of `then` commit together with the success or not at all: the exactly-once effect.
    """

    result: Any = None
    writes: Sequence[TransactWrite] = ()
    then: Sequence[Submission] = ()


@dataclass(frozen=True, slots=True)
class Snooze:
    """Run the job again after this time. The attempt is given back; the hop is counted."""

    after: timedelta

    def __post_init__(self) -> None:
        _require_wait(self.after)


@dataclass(frozen=True, slots=True)
class Continue:
    """Continue from `checkpoint` (JSON) in another invocation, with all attempts left. The hop is counted."""

    checkpoint: Any = None
    after: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        _require_wait(self.after)


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job dies: nothing failed, but a retry cannot help."""

    reason: str

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise TypeError(f"GiveUp takes its reason as a str; got {self.reason!r}")


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The job ended without effect, because a cancel was requested."""


def _require_wait(after: timedelta) -> None:
    if not isinstance(after, timedelta):
        raise TypeError(f"after must be a timedelta, such as timedelta(seconds=30); got {after!r}")
    if not timedelta(0) <= after <= LONGEST_SPAN:
        raise ValueError(f"after must be from 0 to {LONGEST_SPAN.days} days; got {after}")

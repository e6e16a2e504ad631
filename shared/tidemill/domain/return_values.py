"""What a handler may return instead of a plain value."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tidemill.domain.outcomes import TransactWrite
from tidemill.domain.submission import Submission
from tidemill.domain.time_constants import LONGEST_SPAN


@dataclass(frozen=True, slots=True)
class Done:
    """Success, for a handler that wants more than to return a value.

    `writes` and the jobs of `then` commit together with the success or not at all: the exactly-once effect.
    """

    result: Any = None
    writes: Sequence[TransactWrite] = ()
    then: Sequence[Submission] = ()


@dataclass(frozen=True, slots=True)
class Snooze:
    """Not now: run the job again after this time. The attempt is given back; the hop is counted."""

    after: timedelta

    def __post_init__(self) -> None:
        _require_wait(self.after)


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on from `checkpoint` (JSON) in another invocation, with all attempts anew; the hop is counted."""

    checkpoint: Any = None
    after: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        _require_wait(self.after)


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job is dead: nothing broke, but there is no point in trying again."""

    reason: str

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise TypeError(f"GiveUp takes its reason as text; got {self.reason!r}")


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The job has ended without effect, since somebody asked it to."""


def _require_wait(after: timedelta) -> None:
    if not isinstance(after, timedelta):
        raise TypeError(f"after is a timedelta, as timedelta(seconds=30); got {after!r}")
    if not timedelta(0) <= after <= LONGEST_SPAN:
        raise ValueError(f"after must lie within nothing and {LONGEST_SPAN.days} days; got {after}")

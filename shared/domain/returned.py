"""What a handler may return instead of a plain value."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from shared.domain.outcomes import TransactWrite
from shared.domain.submission import Submission


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


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on from `checkpoint` (JSON) in another invocation, with all attempts anew; the hop is counted."""

    checkpoint: Any = None
    after: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job is dead: nothing broke, but there is no point in trying again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The job has ended without effect, since somebody asked it to."""

"""The values that a handler may return instead of a plain result."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from tidemill.domain.attempt.effects import Effect
from tidemill.domain.events.events import Event
from tidemill.domain.spans import require_wait
from tidemill.domain.submission.submission import Submission
from tidemill.domain.waiting.signals import require_name


class Done(Struct, frozen=True):
    """Success with more than a result.

    `writes`, the jobs of `then` and the `events` commit together with the success or not at all: the exactly-once
    effect. `undo` is the job that would undo the effect. It is kept with the success, and submitted once on request.
    """

    result: Any = None
    writes: Sequence[Effect] = ()
    then: Sequence[Submission] = ()
    undo: Submission | None = None
    events: Sequence[Event] = ()


class Snooze(Struct, frozen=True):
    """Run the job again after this time. The attempt is given back; the hop is counted."""

    after: timedelta

    def __post_init__(self) -> None:
        require_wait(self.after, "after")


class Continue(Struct, frozen=True):
    """Continue from `checkpoint` (JSON) in another invocation, with all attempts left. The hop is counted."""

    checkpoint: Any = None
    after: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        require_wait(self.after, "after")


class WaitFor(Struct, frozen=True):
    """Run the job again when the signal `name` comes, or after `timeout`. It finds the data in `run.signal(name)`.

    `checkpoint` (JSON) is saved as by `Continue`. The attempt is given back; the hop is counted.
    """

    name: str
    timeout: timedelta
    checkpoint: Any = None

    def __post_init__(self) -> None:
        require_name(self.name)
        require_wait(self.timeout, "timeout")


class GiveUp(Struct, frozen=True):
    """The job dies: nothing failed, but a retry cannot help."""

    reason: str

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise TypeError(f"GiveUp takes its reason as a str; got {self.reason!r}")


class Cancelled(Struct, frozen=True):
    """The job ended without effect, because a cancel was requested."""


#: The run ended well, but may not have done its work: it says nothing about the services that the work calls.
WORK_NOT_DONE: Final = (Snooze, WaitFor, GiveUp, Cancelled)

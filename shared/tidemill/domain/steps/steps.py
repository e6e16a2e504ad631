"""The recorded steps of a job, which do not run again. Decision 21 gives the reasons."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from tidemill.domain.errors import StepsChangedError
from tidemill.domain.records import replace

#: The largest result of one step, and of all steps of a job, as compact JSON text in ASCII: they fit into its document.
LARGEST_STEP_BYTES: Final = 8 * 1024
LARGEST_STEPS_BYTES: Final = 64 * 1024
MOST_STEPS: Final = 64


class Step(Struct, frozen=True, kw_only=True):
    """One step that has run."""

    name: str
    at: datetime
    #: The number of the run that recorded it.
    attempt: int
    #: JSON text.
    result: str = "null"
    #: The version of the code that recorded it; empty if unknown. The history of the job forgets who did.
    version: str = ""


class RecordedSteps(Struct, frozen=True, kw_only=True):
    """The steps of a job."""

    #: The steps that have run, in order. Each is added by the run; cleared by success, and by a redrive with another
    #: payload.
    recorded: tuple[Step, ...] = ()
    #: By name, the steps that redrives with another payload have removed. Their effects stay.
    dropped: tuple[str, ...] = ()

    @property
    def with_effects(self) -> tuple[str, ...]:
        """By name, the steps that have run, with those that a redrive has removed."""
        return tuple(dict.fromkeys([*self.dropped, *(step.name for step in self.recorded)]))

    def with_step(self, step: Step) -> "RecordedSteps":
        return replace(self, recorded=(*self.recorded, step))


def require_same_order(recorded: Sequence[Step], asked: Sequence[str], *, ended: bool = False) -> None:
    """The recorded steps are the first that a run asks for. Raises `StepsChangedError`.

    `ended`: the run has asked for all of its steps.
    """
    names = [step.name for step in recorded]
    common = len(names) if ended else min(len(names), len(asked))
    if list(asked[:common]) != names[:common]:
        raise StepsChangedError(names, asked)


def key_of_step(job_key: str, name: str) -> str:
    """`job_key` is as `Run.idempotency_key`, and has no slash."""
    return f"{job_key}/{name}"

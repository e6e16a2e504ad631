"""Adaptive concurrency: how many runs of a limit key may work at once, found from what the runs measured. Pure.

The rule is additive increase and multiplicative decrease (AIMD), as in TCP: https://www.rfc-editor.org/rfc/rfc5681.
Until the first decrease each good run adds one, so the number doubles with each round of runs. After it, a round adds
one. A bad run lowers it to a share. Decision 5 compares the rule with others.

A run counts against the number that it found when it entered. Only a run that entered after the last decrease may
cause the next one: any other measured the load of before.
"""

import math
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from tidemill.domain import option_values

#: Each slot is an attribute of one item, and a run may look at all of them.
LARGEST_CONCURRENCY: Final = 100
#: The factor of CUBIC, https://www.rfc-editor.org/rfc/rfc9438#section-4.6: it gives way faster than 0.9, and loses less
#: throughput than one half.
DECREASE: Final = 0.7
#: Errors that come back at once would lower the number to the floor within a fraction of a second.
WINDOW: Final = timedelta(seconds=1)
#: A run raises the number only if this share of it was in use: an unused one was not tested. As in
#: https://github.com/Netflix/concurrency-limits, `AIMDLimit`.
IN_USE: Final = 0.5


class Adaptive(Struct, frozen=True, kw_only=True):
    """Bounds of an adaptive concurrency, and the run time above which the downstream counts as overloaded."""

    floor: int = 1
    ceiling: int
    target_seconds: float

    def __post_init__(self) -> None:
        option_values.whole("floor", self.floor)
        option_values.whole("ceiling", self.ceiling)
        if not 1 <= self.floor <= self.ceiling <= LARGEST_CONCURRENCY:
            raise ValueError(
                f"floor is {self.floor} and ceiling {self.ceiling}; "
                f"they must satisfy 1 <= floor <= ceiling <= {LARGEST_CONCURRENCY}"
            )
        option_values.span("target_seconds", self.target_seconds, timedelta(seconds=1))

    def begin(self) -> "Adapted":
        """For a limit key that has no number yet."""
        return Adapted(allowed=float(self.floor))

    def within(self, allowed: float) -> float:
        """The bounds may have changed since the number was written."""
        return min(max(allowed, self.floor), self.ceiling)

    def slots(self, adapted: "Adapted | None") -> int:
        """How many runs may hold a slot."""
        return math.ceil(self.within((adapted or self.begin()).allowed))


class Trouble(StrEnum):
    """Why a run lowers the number."""

    #: It took longer than the target.
    SLOW = "slow"
    #: The downstream asked for fewer calls: an error says so (`ErrorClass.THROTTLED`), or `Run.observed` reported it.
    THROTTLED = "throttled"
    TIMEOUT = "timeout"
    #: The call failed because the downstream is down, slow or cannot be reached (`ErrorClass.TRANSIENT`).
    ERROR = "error"


class Adapted(Struct, frozen=True, kw_only=True):
    """The number of one limit key, and its last decrease."""

    allowed: float
    #: Counts the decreases. A write that lowers the number is conditional on it.
    falls: int = 0
    fell_at: datetime | None = None
    why: Trouble | None = None


class RunSample(Struct, frozen=True, kw_only=True):
    """What one run measured."""

    #: The number that it found when it entered, and the slots in use then, its own included.
    entered: Adapted
    taken: int
    seconds: float
    #: None for a run without a failure, whose time decides.
    trouble: Trouble | None = None


class ConcurrencyChange(Struct, frozen=True, kw_only=True):
    """The change that a run makes to the number. Either `step` is added, or `lowered` is the new number."""

    step: float = 0
    lowered: Adapted | None = None
    sample: RunSample


def change_after(
    bounds: Adaptive, present: Adapted | None, sample: RunSample | None, *, now: datetime
) -> ConcurrencyChange | None:
    """What the run of this sample changes; None for nothing. `present` is the number as it was read last."""
    if sample is None or present is None:
        return None
    found = bounds.within(sample.entered.allowed)
    trouble = sample.trouble or (Trouble.SLOW if sample.seconds > bounds.target_seconds else None)
    if trouble is None:
        if found >= bounds.ceiling or sample.taken < IN_USE * found:
            return None
        return ConcurrencyChange(step=1.0 if sample.entered.falls == 0 else 1 / found, sample=sample)
    another_was_first = present.falls != sample.entered.falls
    # A process whose clock is far ahead must not keep the number until then.
    recent = present.fell_at is not None and abs(now - present.fell_at) < WINDOW
    if another_was_first or recent or found <= bounds.floor:
        return None
    lowered = max(float(bounds.floor), found * DECREASE)
    return ConcurrencyChange(
        lowered=Adapted(allowed=lowered, falls=present.falls + 1, fell_at=now, why=trouble), sample=sample
    )


def changed(adapted: Adapted, change: ConcurrencyChange | None) -> Adapted:
    """The number once the change is written."""
    if change is None:
        return adapted
    return change.lowered or Adapted(
        allowed=adapted.allowed + change.step, falls=adapted.falls, fell_at=adapted.fell_at, why=adapted.why
    )

"""How many jobs of a type may run for one limit key. A job above the limit waits, and uses up no attempt."""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from tidemill.domain import option_values
from tidemill.domain.limits.adaptive_limit import LARGEST_CONCURRENCY, Adapted, Adaptive

#: A lane delays by whole seconds.
SHORTEST_RATE_PERIOD: Final = timedelta(seconds=1)
LONGEST_RATE_PERIOD: Final = timedelta(days=1)


class Rate(Struct, frozen=True, kw_only=True):
    """At most `count` runs begin at once, and one more each `period / count`."""

    count: int
    period: timedelta

    def __post_init__(self) -> None:
        """Raises `ValueError`, and `TypeError` for a period that is not a timedelta."""
        option_values.whole("count", self.count)
        if not isinstance(self.period, timedelta):
            raise TypeError(f"the period of a rate is a timedelta, such as timedelta(minutes=1); got {self.period!r}")
        if self.count < 1 or not SHORTEST_RATE_PERIOD <= self.period <= LONGEST_RATE_PERIOD:
            raise ValueError(
                f"a rate is at least 1 in {SHORTEST_RATE_PERIOD} to {LONGEST_RATE_PERIOD}; "
                f"got {self.count} in {self.period}"
            )

    @property
    def interval(self) -> timedelta:
        return self.period / self.count


class Limit(Struct, frozen=True, kw_only=True):
    """`concurrency`: runs at the same time; None for no bound, or for one that adapts within `adaptive`."""

    concurrency: int | None = None
    rate: Rate | None = None
    adaptive: Adaptive | None = None

    def __post_init__(self) -> None:
        if self.concurrency is not None and not 1 <= self.concurrency <= LARGEST_CONCURRENCY:
            raise ValueError(
                f"concurrency_per_key is {self.concurrency}; it must lie within 1 and {LARGEST_CONCURRENCY}"
            )
        if self.concurrency is not None and self.adaptive is not None:
            raise ValueError("a concurrency is fixed or adaptive, not both")
        if not self.has_slots and self.rate is None:
            raise ValueError("a limit bounds concurrency, rate or both")

    @property
    def has_slots(self) -> bool:
        return self.concurrency is not None or self.adaptive is not None

    def slots(self, adapted: Adapted | None) -> int | None:
        """How many runs may hold a slot, given the number in the limit item; None for no bound."""
        return self.adaptive.slots(adapted) if self.adaptive else self.concurrency

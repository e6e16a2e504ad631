"""How many jobs of a type may run for one limit key. A job above the limit waits, and uses up no attempt."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

#: Each slot is an attribute of one item, and a run may look at all of them.
LARGEST_CONCURRENCY: Final = 100
#: A lane delays by whole seconds.
SHORTEST_RATE_PERIOD: Final = timedelta(seconds=1)
LONGEST_RATE_PERIOD: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """At most `count` runs begin at once, and one more each `period / count`."""

    count: int
    period: timedelta

    def __post_init__(self) -> None:
        if self.count < 1 or not SHORTEST_RATE_PERIOD <= self.period <= LONGEST_RATE_PERIOD:
            raise ValueError(
                f"a rate is at least 1 in {SHORTEST_RATE_PERIOD} to {LONGEST_RATE_PERIOD}; "
                f"got {self.count} in {self.period}"
            )

    @property
    def interval(self) -> timedelta:
        return self.period / self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """`concurrency`: runs at the same time; None for no bound."""

    concurrency: int | None = None
    rate: Rate | None = None

    def __post_init__(self) -> None:
        if self.concurrency is not None and not 1 <= self.concurrency <= LARGEST_CONCURRENCY:
            raise ValueError(
                f"concurrency_per_key is {self.concurrency}; it must lie within 1 and {LARGEST_CONCURRENCY}"
            )
        if self.concurrency is None and self.rate is None:
            raise ValueError("a limit bounds concurrency, rate or both")

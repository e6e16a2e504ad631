"""`Series`: the values of one metric, by minute, and the statistics of CloudWatch over them."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final

from tidemill.local.alarms.metric_math import UnsupportedError

#: Statistics that are sums over the values, so that a window is the difference of two running sums.
_TRIMMED_COUNT: Final = re.compile(r"TC\((\d*):(\d*)\)")
#: How many minutes ago a minute must have ended for its values to be known, by the minute of the evaluation.
Delay = Callable[[int], int]


class Series:
    """`values` maps a minute, counted from 0, to the values that were published in it."""

    def __init__(self, values: Mapping[int, Sequence[float]], *, delay: Delay | int = 0) -> None:
        self._values = values
        self._delay = delay if callable(delay) else lambda _: delay

    def known_until(self, now: int) -> int:
        """The first minute of which nothing is known at the start of minute `now`."""
        return now - self._delay(now)

    def statistic(self, name: str, first: int, end: int, *, now: int) -> float | None:
        """Over the minutes from `first` until before `end`, as known at the start of minute `now`.

        None without values.
        """
        end = min(end, self.known_until(now))
        if end <= first or not self._sum("SampleCount", first, end):
            return None
        if name in {"Maximum", "Minimum"}:
            extreme = max if name == "Maximum" else min
            return extreme(extreme(self._values[minute]) for minute in range(first, end) if self._values.get(minute))
        if name == "Average":
            return self._sum("Sum", first, end) / self._sum("SampleCount", first, end)
        return self._sum(name, first, end)

    def is_idle(self, first: int, end: int) -> bool:
        """Whether no values were published in these minutes, known or not."""
        return not self._sum("SampleCount", first, end)

    def _sum(self, statistic: str, first: int, end: int) -> float:
        """Over the minutes from `first` until before `end`."""
        start, stop = self._span
        if statistic not in self._running:
            of = _additive(statistic)
            each = (of(self._values.get(minute, ())) for minute in range(start, stop))
            self._running[statistic] = [0.0, *accumulate(each)]
        running = self._running[statistic]
        return running[min(max(end, start), stop) - start] - running[min(max(first, start), stop) - start]

    @cached_property
    def _running(self) -> dict[str, list[float]]:
        """By statistic: the running sums over the minutes of `_span`."""
        return {}

    @cached_property
    def _span(self) -> tuple[int, int]:
        return (min(self._values), max(self._values) + 1) if self._values else (0, 0)


def _additive(statistic: str) -> Callable[[Sequence[float]], float]:
    """The part of a statistic that the values of one minute contribute.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Statistics-definitions.html
    """
    if statistic == "Sum":
        return sum
    if statistic == "SampleCount":
        return len
    if bounds := _TRIMMED_COUNT.fullmatch(statistic):
        # Exclusive of the lower bound, inclusive of the upper bound.
        above, until = (float(bound) if bound else None for bound in bounds.groups())
        return lambda values: sum(
            (above is None or value > above) and (until is None or value <= until) for value in values
        )
    raise UnsupportedError(f"the statistic {statistic!r} is not implemented")

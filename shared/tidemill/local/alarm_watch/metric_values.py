"""`MetricValues`: the values of metrics by minute, as far back as an alarm may read."""

from collections.abc import Mapping, Sequence

from tidemill.local.alarms import MetricKey, Series

#: A line of the log is readable only when its invocation has ended, so a minute is judged when the next one is over.
DELAY_MINUTES = 1


class MetricValues:
    """A minute is a number: the minutes since the epoch. Where minutes are shortened, each counts as one."""

    def __init__(self) -> None:
        self._values: dict[MetricKey, dict[int, list[float]]] = {}

    def add(self, metric: MetricKey, minute: int, value: float) -> None:
        self._values.setdefault(metric, {}).setdefault(minute, []).append(value)

    def forget(self, *, before: int) -> None:
        """Drop the values of earlier minutes."""
        for values in self._values.values():
            for minute in [each for each in values if each < before]:
                del values[minute]

    def by_minute(self) -> Mapping[MetricKey, Mapping[int, Sequence[float]]]:
        return self._values

    def series(self) -> Mapping[MetricKey, Series]:
        return {metric: Series(values, delay=DELAY_MINUTES) for metric, values in self._values.items() if values}

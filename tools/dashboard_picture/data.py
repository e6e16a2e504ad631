"""`Data`: what the widgets show."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidemill.local.alarms import MetricKey, Series, State
from tidemill.local.alarms.metric_math import parse_expression
from tools.dashboard_picture.body import CountByVersion, Graph, Math, Statistic

_PERCENTILE: Final = re.compile(r"p(\d+)")


@dataclass(frozen=True, slots=True)
class Curve:
    label: str
    #: One for each period, oldest first. None without data.
    points: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The data of the minutes from `first` until before `end`."""

    first: int
    end: int
    #: The length of a minute. In a picture of a short run, a minute is short, too.
    minute_seconds: float
    values: Mapping[MetricKey, Mapping[int, Sequence[float]]]
    states: Mapping[str, State]
    #: By log group and version: how many lines of each minute have this version.
    versions: Mapping[str, Mapping[str, Mapping[int, int]]] = field(default_factory=dict)

    def curves(self, graph: Graph) -> list[Curve]:
        """The visible lines, also those without data."""
        points = {line: self._points(line, graph.period_minutes) for line in graph.lines if isinstance(line, Statistic)}
        ids = {line.id: found for line, found in points.items()}
        curves = []
        for line in graph.lines:
            if isinstance(line, Math):
                math = parse_expression(line.expression)
                found = tuple(
                    math.evaluate({id_: ids[id_][index] for id_ in math.ids})
                    for index in range(len(self.starts(graph.period_minutes)))
                )
                curves.append(Curve(line.label, found))
            elif line.visible:
                curves.append(Curve(line.label, points[line]))
        return curves

    def counts(self, widget: CountByVersion) -> list[Curve]:
        def count(minutes: Mapping[int, int], start: int) -> float:
            return sum(minutes.get(minute, 0) for minute in range(start, start + widget.period_minutes))

        starts = self.starts(widget.period_minutes)
        versions = sorted(self.versions.get(widget.log_group, {}).items())
        return [Curve(version, tuple(count(minutes, at) for at in starts)) for version, minutes in versions]

    def starts(self, period_minutes: int) -> list[int]:
        """The first minute of each period."""
        return list(range(self.first, self.end, period_minutes))

    def _points(self, line: Statistic, period: int) -> tuple[float | None, ...]:
        values = self.values.get(line.metric, {})
        series = Series(values)
        percentile = _PERCENTILE.fullmatch(line.name)

        def point(start: int) -> float | None:
            if not percentile:
                return series.statistic(line.name, start, start + period, now=self.end)
            within = [value for minute in range(start, start + period) for value in values.get(minute, ())]
            return _percentile(sorted(within), int(percentile[1]) / 100)

        return tuple(map(point, self.starts(period)))


def _percentile(ordered: Sequence[float], share: float) -> float | None:
    """Between the two nearest values, in proportion."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = ordered[int(place)]
    high = ordered[min(int(place) + 1, len(ordered) - 1)]
    return low + (high - low) * (place - int(place))

"""The widgets of a dashboard's body. A widget or a member that this module does not know is an error.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidemill.local.alarms import MetricKey


class UnknownWidgetError(Exception):
    """The body has something that would be missing in the picture."""


@dataclass(frozen=True, slots=True)
class Place:
    """In units of the grid, which has 24 columns."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Text:
    heading: str
    #: The words that link to a page.
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlarmStates:
    title: str
    names: tuple[str, ...]
    #: Only alarms in these states are shown. Empty: all.
    states: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statistic:
    """One metric of a graph, which expressions name by its id."""

    id: str
    metric: MetricKey
    name: str
    label: str
    visible: bool


@dataclass(frozen=True, slots=True)
class Math:
    expression: str
    label: str


@dataclass(frozen=True, slots=True)
class Graph:
    title: str
    lines: tuple[Statistic | Math, ...]
    period_minutes: int


@dataclass(frozen=True, slots=True)
class CountByVersion:
    """Lines `claimed` of a log group, counted by their field `version`."""

    title: str
    log_group: str
    period_minutes: int


Content = Text | AlarmStates | Graph | CountByVersion
_MEMBERS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"markdown"}),
    "alarm": frozenset({"title", "alarms", "states"}),
    "metric": frozenset({"view", "title", "region", "metrics", "yAxis", "period"}),
    "log": frozenset({"view", "title", "region", "query", "stacked"}),
}
_OPTIONS = frozenset({"label", "stat", "id", "visible", "expression", "period"})
_HEADING = re.compile(r"# (?P<heading>.*)\n(?P<rest>.*)")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_QUERY = re.compile(
    r"SOURCE '(?P<group>[^']*)' \| filter message = \"claimed\"\n"
    r"\| stats count\(\) by bin\((?P<minutes>\d+)m\), version"
)


def widgets(body: Mapping[str, Any]) -> Iterator[tuple[Place, Content]]:
    """Raises `UnknownWidgetError`."""
    for widget in body["widgets"]:
        known = _MEMBERS.get(widget["type"])
        properties = widget["properties"]
        if known is None:
            raise UnknownWidgetError(f"the type {widget['type']!r}")
        if unknown := properties.keys() - known:
            raise UnknownWidgetError(f"{', '.join(sorted(unknown))} of a widget {widget['type']!r}")
        if properties.get("view", "timeSeries") != "timeSeries" or properties.get("yAxis"):
            raise UnknownWidgetError(f"the view or the axis of {properties['title']!r}")
        yield Place(widget["x"], widget["y"], widget["width"], widget["height"]), _content(widget["type"], properties)


def _content(kind: str, properties: Mapping[str, Any]) -> Content:
    if kind == "text":
        found = _match(_HEADING, properties["markdown"])
        return Text(found["heading"], tuple(_LINK.findall(found["rest"])))
    title = properties["title"]
    if kind == "alarm":
        names = tuple(arn.rpartition(":")[2] for arn in properties["alarms"])
        return AlarmStates(title, names, tuple(properties.get("states", ())))
    if kind == "log":
        found = _match(_QUERY, properties["query"])
        return CountByVersion(title, found["group"], int(found["minutes"]))
    period = properties["period"]
    return Graph(title, tuple(_line(entry, period) for entry in properties["metrics"]), period // 60)


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if not found:
        raise UnknownWidgetError(f"the text {text!r}")
    return found


def _line(entry: Sequence[Any], period: int) -> Statistic | Math:
    options = entry[-1] if isinstance(entry[-1], Mapping) else {}
    if unknown := options.keys() - _OPTIONS:
        raise UnknownWidgetError(f"{', '.join(sorted(unknown))} of a metric")
    if options.get("period", period) != period:
        raise UnknownWidgetError(f"a metric of {options['period']} s in a graph of {period} s")
    if "expression" in options:
        return Math(options["expression"], options["label"])
    namespace, name, *pairs = (part for part in entry if isinstance(part, str))
    dimensions = tuple(sorted(zip(pairs[::2], pairs[1::2], strict=True)))
    return Statistic(
        id=options.get("id", ""),
        metric=MetricKey(namespace, name, dimensions),
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
        name=options.get("stat", "Average"),
        label=options.get("label", name),
        visible=options.get("visible", True),
    )

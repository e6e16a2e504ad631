"""The picture of the dashboard shows each widget with its data, and refuses what it would leave out."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from PIL import Image, ImageColor

from tidemill.local.alarms import MetricKey, State
from tools.dashboard_picture.axes import runs, time_label, time_ticks, value_label, value_ticks
from tools.dashboard_picture.body import CountByVersion, Graph, UnknownWidgetError, widgets
from tools.dashboard_picture.canvas import COLOURS, PAPER, fitted, text_width
from tools.dashboard_picture.data import Curve, Data
from tools.dashboard_picture.picture import draw, short_name

KEY: Final = MetricKey("Tidemill", "JobsDead", (("lane", "bulk"), ("stage", "dev")))
PLACE: Final = {"x": 0, "y": 0, "width": 8, "height": 6}


def widget(type_: str, **properties: Any) -> dict[str, Any]:
    return {"type": type_, **PLACE, "properties": properties}


def graph(*metrics: Any, **properties: Any) -> dict[str, Any]:
    drawn = {"view": "timeSeries", "title": "deaths", "metrics": list(metrics), "yAxis": {}, "period": 60}
    return widget("metric", **(drawn | properties))


def metric(**options: Any) -> list[Any]:
    return ["Tidemill", "JobsDead", "lane", "bulk", "stage", "dev", options]


def data(values: Mapping[int, list[float]] | None = None, **others: Any) -> Data:
    known: dict[str, Any] = {"first": 0, "end": 4, "minute_seconds": 2.0, "states": {}}
    return Data(values={KEY: values or {}}, **(known | others))


def only(found: dict[str, Any]) -> Any:
    ((_, content),) = widgets({"widgets": [found]})
    return content


@pytest.mark.parametrize(
    ("unknown", "named"),
    [
        (widget("explorer"), "explorer"),
        (graph(metric(), annotations={}), "annotations"),
        (graph(metric(), view="pie"), "view"),
        (graph(metric(), yAxis={"left": {"max": 1}}), "axis"),
        (graph(metric(color="#fff")), "color"),
        (graph(metric(period=300)), "300 s"),
        (widget("text", markdown="no heading"), "no heading"),
        (widget("log", view="timeSeries", title="x", query="SOURCE 'g' | limit 5"), "limit 5"),
    ],
)
def test_what_the_picture_would_leave_out_is_an_error(unknown: dict[str, Any], named: str) -> None:
    with pytest.raises(UnknownWidgetError, match=named):
        list(widgets({"widgets": [unknown]}))


def test_a_curve_has_the_statistic_of_each_period() -> None:
    found = data({0: [1.0, 2.0], 3: [8.0]})
    for name, points in {
        "Sum": (3.0, None, None, 8.0),
        "Maximum": (2.0, None, None, 8.0),
        "Average": (1.5, None, None, 8.0),
        "p50": (1.5, None, None, 8.0),
    }.items():
        assert found.curves(only(graph(metric(stat=name, label=name)))) == [Curve(name, points)]
    assert found.curves(only(graph(metric(stat="Sum", label="n"), period=120))) == [Curve("n", (3.0, 8.0))]


def test_an_expression_reads_metrics_that_are_not_shown() -> None:
    math = [{"expression": "IF(a > 2, 100, 0)", "label": "high"}]
    found = data({0: [3.0], 2: [1.0]}).curves(only(graph(math, metric(stat="Sum", id="a", visible=False))))
    assert found == [Curve("high", (100.0, None, 0.0, None))]


def test_lines_are_counted_by_version() -> None:
    query = "SOURCE '/work' | filter message = \"claimed\"\n| stats count() by bin(2m), version"
    content = only(widget("log", view="timeSeries", title="x", query=query, stacked=True))
    assert isinstance(content, CountByVersion)
    found = data(versions={"/work": {"b": {0: 1}, "a": {0: 2, 1: 3, 3: 4}}}).counts(content)
    assert found == [Curve("a", (5, 4)), Curve("b", (1, 0))]


def test_ticks_are_round_and_reach_the_largest_value() -> None:
    assert value_ticks(0) == [0, 0.5, 1]
    for largest in (0.03, 1, 7, 99, 100, 101, 4321):
        ticks = value_ticks(largest)
        assert ticks[-1] >= largest * 0.999
        assert 3 <= len(ticks) <= 5
    assert [value_label(value) for value in (0, 0.5, 250, 1500, 2e6)] == ["0", "0.5", "250", "1.5k", "2M"]
    assert [time_label(second) for second in time_ticks(61)] == ["0:00", "0:15", "0:30", "0:45", "1:00"]


def test_a_curve_breaks_where_data_is_missing() -> None:
    assert runs((1.0, 2.0, None, 3.0, None, None)) == [[0, 1], [3]]
    assert runs((None, None)) == []


def test_a_text_that_does_not_fit_ends_in_an_ellipsis() -> None:
    assert fitted("short", 200, size=11) == "short"
    shortened = fitted("a label that is much too long", 60, size=11)
    assert shortened.endswith("…")
    assert text_width(shortened, size=11) <= 60


def test_an_alarm_has_its_id_of_the_catalogue() -> None:
    assert short_name("Tidemill-local-Pipeline-DeadJobscritical73906041-6131833250A71") == "DeadJobscritical"
    assert short_name("Tidemill-local-Pipeline-LateCanary") == "LateCanary"


@pytest.fixture
def colours(tmp_path: Path) -> Callable[[dict[str, Any], Data], set[tuple[int, ...]]]:
    def drawn(found: dict[str, Any], shown: Data) -> set[tuple[int, ...]]:
        """The colours that cover at least twenty pixels of the picture."""
        path = tmp_path / "picture.png"
        assert draw({"widgets": [found]}, shown, path) == 1
        with Image.open(path) as picture:
            counted = picture.convert("RGB").getcolors(picture.width * picture.height)
        return {colour for number, colour in counted or () if number >= 20}  # type: ignore[misc]

    return drawn


def near(colour: str, found: set[tuple[int, ...]]) -> bool:
    """A palette may shift each colour a little."""
    wanted = ImageColor.getrgb(colour)
    return any(all(abs(a - b) < 10 for a, b in zip(wanted, each, strict=True)) for each in found)


def test_a_graph_shows_its_curves_and_its_legend(colours: Any) -> None:
    found = graph(metric(stat="Sum", label="a"), metric(stat="p99", label="b"))
    shown = colours(found, data({minute: [1.0, 5.0] for minute in range(4)}))
    assert near(PAPER, shown)
    assert near(COLOURS[0], shown)
    assert near(COLOURS[1], shown)
    assert not near(COLOURS[2], shown)


@pytest.mark.parametrize("fires", [True, False])
def test_alarms_show_their_states(colours: Any, fires: bool) -> None:
    found = widget("alarm", title="pages", alarms=["arn:x:alarm:Page"])
    shown = colours(found, data(states={"Page": State.ALARM if fires else State.OK}))
    assert near("#d13212", shown) is fires
    assert near("#1d8102", shown) is not fires


def test_only_alarms_in_the_states_of_the_widget_are_shown(colours: Any) -> None:
    found = widget("alarm", title="tickets", alarms=["arn:x:alarm:A"], states=["ALARM"])
    assert not near("#1d8102", colours(found, data(states={"A": State.OK})))


def test_a_graph_is_the_content_of_a_widget_of_metrics() -> None:
    assert isinstance(only(graph(metric())), Graph)

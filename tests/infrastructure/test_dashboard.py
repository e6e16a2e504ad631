"""The dashboard asks the questions of an incident in their order."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stacks.stages import STAGES
from tests.infrastructure.conftest import Synthesise, Synthesised
from tidemill.local.alarms import State
from tidemill.local.alarms.template import text
from tidemill.names import Lane
from tools.dashboard_picture.body import AlarmStates, Graph, widgets
from tools.dashboard_picture.data import Data
from tools.dashboard_picture.picture import draw, short_name


def _widgets(app: Synthesised) -> list[Any]:
    ((_, dashboard),) = app.of_type("AWS::CloudWatch::Dashboard")
    return list(json.loads(text(dashboard["DashboardBody"], str))["widgets"])


def _questions(app: Synthesised) -> list[str]:
    return [
        re.findall(r"# (.*)\n", widget["properties"]["markdown"])[0]
        for widget in _widgets(app)
        if widget["type"] == "text"
    ]


def test_the_questions_come_in_the_order_of_an_incident(dev: Synthesised) -> None:
    assert _questions(dev) == [
        "Are users affected?",
        "Where is work stuck?",
        "What fails?",
        "What changed?",
        "What does the engine do?",
    ]


def test_the_pages_come_first_and_the_tickets_that_fire_follow(dev: Synthesised) -> None:
    pages, tickets = (widget["properties"] for widget in _widgets(dev) if widget["type"] == "alarm")
    # The six causes and the composite that notifies.
    assert len(pages["alarms"]) == 7
    assert tickets["states"] == ["ALARM"]
    assert not set(map(str, pages["alarms"])) & set(map(str, tickets["alarms"]))


@pytest.mark.parametrize("stage", [*STAGES])
def test_no_row_is_wider_than_a_dashboard(synthesise: Synthesise, stage: str) -> None:
    for widget in _widgets(synthesise(stage=stage)):
        assert widget["x"] + widget["width"] <= 24


@pytest.mark.parametrize("stage", [*STAGES])
def test_the_picture_draws_every_widget(synthesise: Synthesise, tmp_path: Path, stage: str) -> None:
    body = {"widgets": _widgets(synthesise(stage=stage))}
    contents = [content for _, content in widgets(body)]
    states = {name: State.ALARM for content in contents if isinstance(content, AlarmStates) for name in content.names}
    picture = tmp_path / "dashboard.png"
    data = Data(first=0, end=10, minute_seconds=2, values={}, states=states)
    assert draw(body, data, picture) == len(body["widgets"])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_parts_of_other_alarms_are_not_listed_as_tickets(dev: Synthesised) -> None:
    """`Established` is on for as long as the stack exists."""
    _, tickets = (content for _, content in widgets({"widgets": _widgets(dev)}) if isinstance(content, AlarmStates))
    names = set(map(short_name, tickets.names))
    assert {"DeadJobscritical", "SlowBurn"} <= names
    assert not {"Established", "UncalledWake", "LateCanarycritical"} & names


def test_the_percentages_are_those_of_the_short_window_of_a_page(dev: Synthesised) -> None:
    found = {content.title: content for _, content in widgets({"widgets": _widgets(dev)}) if isinstance(content, Graph)}
    for title in ("submissions that failed (%)", "late starts of the lane critical (%)"):
        assert found[title].period_minutes == 5


def test_each_run_is_counted_once_by_version(dev: Synthesised) -> None:
    """The line of its begin has the version, and so has that of its end."""
    queries = [widget["properties"]["query"] for widget in _widgets(dev) if widget["type"] == "log"]
    assert len(queries) == len(Lane)
    for query in queries:
        assert 'filter message = "claimed"\n| stats count() by bin(5m), version' in query

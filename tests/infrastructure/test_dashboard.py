"""The dashboard asks the questions of an incident in their order."""

import json
import re
from typing import Any

import pytest

from stacks.stages import STAGES
from tests.infrastructure.conftest import Synthesise, Synthesised


def _widgets(app: Synthesised) -> list[Any]:
    ((_, dashboard),) = app.of_type("AWS::CloudWatch::Dashboard")
    parts = dashboard["DashboardBody"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else json.dumps(part).replace('"', "'") for part in parts)
    return list(json.loads(text)["widgets"])


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

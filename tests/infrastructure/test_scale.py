"""The settings that docs/operations/scale.md names for 10,000 jobs a second of one tenant."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from demo.figures.capacity import FAST, RATE
from stacks.stages import STAGES
from tests.infrastructure.conftest import Synthesise
from tidemill.cost.bounds import bounds
from tidemill.cost.stage_limits import StageLimits, limits_of

SCALE: Final = (Path(__file__).parents[2] / "docs/operations/scale.md").read_text()
((COMMAND, LANE),) = re.findall(r"^\$ npx cdk deploy (.+)$.+?\bmax_concurrency=(\d+)", SCALE, re.DOTALL | re.MULTILINE)
SETTINGS: Final = dict(re.findall(r"-c (\w+)=(\S+)", COMMAND))


@pytest.fixture
def templates_limits(synthesise: Synthesise, monkeypatch: pytest.MonkeyPatch) -> StageLimits:
    stage = STAGES["prod"]()
    lanes = tuple(replace(lane, max_concurrency=int(LANE)) if lane.name == "default" else lane for lane in stage.lanes)
    monkeypatch.setitem(STAGES, "prod", lambda: replace(stage, lanes=lanes))
    synthesised = synthesise(**SETTINGS)
    return limits_of([synthesised.pipeline, synthesised.shortener])


def test_the_settings_of_the_page_synthesise_and_are_those_of_the_model(templates_limits: StageLimits) -> None:
    assert templates_limits == FAST.limits


def test_nothing_binds_at_10_000_jobs_a_second_with_these_settings(templates_limits: StageLimits) -> None:
    assert [bound.name for bound in bounds(FAST.jobs, templates_limits) if bound.jobs_per_second < RATE] == []


def test_a_stage_can_name_the_warm_throughput_of_the_jobs_table_and_its_indexes(synthesise: Synthesise) -> None:
    warm = synthesise(stage="dev", warm_write_units="12000")

    (jobs,) = (table for _, table in warm.of_type("AWS::DynamoDB::Table") if "GlobalSecondaryIndexes" in table)
    for each in (jobs, *jobs["GlobalSecondaryIndexes"]):
        assert each["WarmThroughput"] == {"WriteUnitsPerSecond": 12_000}
    others = [table for _, table in warm.of_type("AWS::DynamoDB::Table") if table is not jobs]
    assert not any("WarmThroughput" in table for table in others)


def test_a_stage_names_no_warm_throughput_by_itself(synthesise: Synthesise) -> None:
    assert not any("WarmThroughput" in table for _, table in synthesise(stage="prod").of_type("AWS::DynamoDB::Table"))

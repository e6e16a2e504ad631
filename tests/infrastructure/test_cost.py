"""What `tidemill cost` reads from the templates of the stages."""

import runpy
from functools import partial
from pathlib import Path

import aws_cdk
import pytest

from stacks import composition
from stacks.composition import ROOT, compose
from tests.infrastructure.conftest import Synthesise, Synthesised
from tests.infrastructure.test_event_sources import Synthesis
from tests.support.stub_asset import stub_asset
from tidemill.cost import idle_month, worst_day
from tidemill.cost.bill import Usage, lines, total
from tidemill.cost.stage_limits import StageLimits, limits_of
from tidemill.cost.stage_parts import calls_per_month, parts_of
from tidemill.cost.worst_day import busy_stage

#: Types of resources that cost by the month, which `stage_parts` counts.
COUNTED = {
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::CompositeAlarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::Scheduler::Schedule",
    "AWS::SecretsManager::Secret",
    "AWS::Lambda::EventSourceMapping",
}
#: Types whose resources cost by the month or the hour and that no stage has. One that comes must be counted.
DEAR = {
    "AWS::EC2::NatGateway",
    "AWS::EC2::VPCEndpoint",
    "AWS::KMS::Key",
    "AWS::Kinesis::Stream",
    "AWS::Lambda::CapacityProvider",
    "AWS::Synthetics::Canary",
    "AWS::WAFv2::WebACL",
}


def test_the_defaults_are_the_settings_of_prod(prod: Synthesised) -> None:
    assert limits_of([prod.pipeline, prod.shortener]) == StageLimits()


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_every_part_that_costs_by_the_month_is_counted(request: pytest.FixtureRequest, stage: str) -> None:
    synthesised: Synthesised = request.getfixturevalue(stage)
    parts = parts_of([synthesised.pipeline, synthesised.shortener])
    types = {resource["Type"] for _, resource in synthesised.everything()}

    assert types >= COUNTED
    assert not types & DEAR
    alarms = [properties for _, properties in synthesised.of_type("AWS::CloudWatch::Alarm")]
    assert parts.alarm_metrics >= len(alarms)
    assert parts.polled_queues == len(synthesised.config.lanes)
    assert parts.wakes * synthesised.config.wake_parts == parts.wake_calls
    schedules = [properties["ScheduleExpression"] for _, properties in synthesised.of_type("AWS::Scheduler::Schedule")]
    assert parts.calls == pytest.approx(sum(map(calls_per_month, schedules)))
    assert min(parts.canary_calls, parts.wake_calls, parts.reconcile_calls, parts.other_calls) > 0


def test_the_idle_month_does_not_depend_on_the_id_of_the_pipeline(tmp_path: Path) -> None:
    default, other = (
        parts_of([{"Resources": Synthesis(tmp_path / id_, id_=id_).resources("Pipeline")}])
        for id_ in ("Default", "Jobs")
    )

    assert other == default
    assert min(other.wake_calls, other.wakes, other.canary_calls, other.reconcile_calls) > 0


def test_the_page_of_cost_has_the_idle_month_of_prod(prod: Synthesised) -> None:
    parts = parts_of([prod.pipeline, prod.shortener])
    dollars = {line.name: line.dollars for line in idle_month.bill(parts)}
    polls = Usage(fair_requests=idle_month.polls(parts))
    alarms = f"{parts.alarm_metrics} metrics of alarms, {parts.composite_alarms} composite alarms"
    page = (ROOT / "docs/operations/cost.md").read_text()

    assert f"| {alarms} | {dollars['alarms'] + dollars['composite alarms']:.2f} |" in page
    assert f"| dashboard | {parts.dashboards} | {dollars['dashboards']:.2f} |" in page
    assert f"| 7, of reconcile and the canaries | {dollars['custom metrics']:.2f} |" in page
    assert f"| 5 long polls of 20 s for each lane | {total(lines(polls)):.2f} |" in page
    assert f"| secrets | {parts.secrets} | {dollars['secrets']:.2f} |" in page
    assert f"`prod` costs about ${sum(dollars.values()):.0f} a month" in page


def test_snapshots_cost_by_the_memory_of_the_functions(synthesise: Synthesise, dev: Synthesised) -> None:
    snapped = synthesise(stage="dev", snap_start="on")
    memory = sum(function["MemorySize"] for _, function in snapped.of_type("AWS::Lambda::Function"))

    assert parts_of([snapped.pipeline, snapped.shortener]).snapshot_gigabytes == memory / 1024
    assert parts_of([dev.pipeline, dev.shortener]).snapshot_gigabytes == 0


def test_a_worst_day_has_every_lane_and_every_rate_of_the_stage(prod: Synthesised) -> None:
    stage = busy_stage([prod.pipeline, prod.shortener])

    assert [lane.max_concurrency for lane in stage.lanes] == [lane.max_concurrency for lane in prod.config.lanes]
    assert {(lane.batch, lane.memory_mb) for lane in stage.lanes} == {(10, 512)}
    # Two APIs, each with a public route.
    assert stage.requests_per_second == 2 * (prod.config.api_rate + prod.config.open_rate)
    # Only the one of the jobs takes batches, and none of a public route.
    assert stage.batches_per_second == prod.config.api_rate
    assert not stage.archive


def test_a_worst_day_has_the_archive_of_the_stage(synthesise: Synthesise) -> None:
    assert busy_stage([synthesise(stage="dev", archive="a-bucket-of-ours").pipeline]).archive


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_the_page_of_cost_has_the_worst_day_of_the_stage(request: pytest.FixtureRequest, stage: str) -> None:
    synthesised: Synthesised = request.getfixturevalue(stage)
    sentence = worst_day.sentence([synthesised.pipeline, synthesised.shortener])

    assert f"$ npx cdk synth -q -c stage={stage}\n{sentence}\n" in (ROOT / "docs/operations/cost.md").read_text()


def test_a_synth_prints_its_worst_day(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, dev: Synthesised
) -> None:
    asset = stub_asset(tmp_path / "asset")
    monkeypatch.setattr(composition, "compose", lambda app: compose(app, asset=asset))
    monkeypatch.setattr(aws_cdk, "App", partial(aws_cdk.App, outdir=str(tmp_path / "cdk.out")))

    runpy.run_path(str(ROOT / "app.py"))

    assert worst_day.sentence([dev.pipeline, dev.shortener]) in capsys.readouterr().err

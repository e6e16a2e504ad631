"""What `tidemill cost` reads from the templates of the stages."""

import pytest

from tests.infrastructure.conftest import Synthesise, Synthesised
from tidemill.cost.stage_limits import StageLimits, limits_of
from tidemill.cost.stage_parts import calls_per_month, parts_of

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


def test_snapshots_cost_by_the_memory_of_the_functions(synthesise: Synthesise, dev: Synthesised) -> None:
    snapped = synthesise(stage="dev", snap_start="on")
    memory = sum(function["MemorySize"] for _, function in snapped.of_type("AWS::Lambda::Function"))

    assert parts_of([snapped.pipeline, snapped.shortener]).snapshot_gigabytes == memory / 1024
    assert parts_of([dev.pipeline, dev.shortener]).snapshot_gigabytes == 0

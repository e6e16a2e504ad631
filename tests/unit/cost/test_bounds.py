"""Which bound binds, by the profile of the jobs and the settings of the stage."""

from dataclasses import replace

import pytest

from tidemill.cost.bounds import Change, bounds, publisher_share, ramp_minutes, workers
from tidemill.cost.profile import Profile
from tidemill.cost.stage_limits import StageLimits, limits_of
from tidemill.names import Env

SMALL = Profile()
PROD = StageLimits()


def found(profile: Profile = SMALL, limits: StageLimits = PROD) -> dict[str, float]:
    return {bound.name: bound.jobs_per_second for bound in bounds(profile, limits)}


def test_the_lowest_bound_comes_first() -> None:
    ceilings = [bound.jobs_per_second for bound in bounds(SMALL, PROD)]

    assert ceilings == sorted(ceilings)


def test_the_api_takes_as_many_jobs_as_its_requests_have() -> None:
    assert found()["API of the stage"] == 1_000
    assert found(replace(SMALL, per_request=100))["API of the stage"] == 100_000
    assert "API of the stage" not in found(replace(SMALL, per_request=0))


def test_a_slow_handler_needs_more_workers() -> None:
    slow = replace(SMALL, handler_ms=1_000)

    assert found(slow)["workers of a lane"] < found()["workers of a lane"]
    # Ten jobs of a second each, and their calls.
    assert workers(slow, 100) == pytest.approx(100 / 10 * 1.1, rel=0.02)
    assert found(slow)["workers of a lane"] * workers(slow, 1) == pytest.approx(PROD.max_concurrency)


def test_a_table_takes_its_quota_of_write_units() -> None:
    """The entry of the listing is written to an index, which has a quota of its own."""
    assert found()["table"] == pytest.approx(40_000 / 3)
    assert found(replace(SMALL, listing=False))["table"] == found()["table"]
    assert found(replace(SMALL, attempts=2))["table"] == pytest.approx(40_000 / 7)


def test_a_new_table_takes_its_warm_throughput() -> None:
    assert found()["new table"] == pytest.approx(4_000 / 3)
    assert found(limits=replace(PROD, warm_write_units=40_000))["new table"] == pytest.approx(40_000 / 3)


def test_each_shard_of_the_listing_takes_a_thousand_jobs() -> None:
    ours = [bound for bound in bounds(SMALL, replace(PROD, index_shards=4)) if bound.name == "listing of one tenant"]

    assert [(bound.jobs_per_second, bound.change) for bound in ours] == [
        (4_000, Change.SETTING),
        (16_000, Change.DESIGN),
    ]
    assert "listing of one tenant" not in found(replace(SMALL, listing=False))


def test_a_limit_key_is_one_item_with_two_writes_for_each_run() -> None:
    assert found(replace(SMALL, limit=True, attempts=2))["one limit key"] == 250


def test_a_group_is_as_fast_as_its_turns() -> None:
    """The documented range of a call from 5 to 10 ms is 15 to 30 jobs a second."""
    assert 15 <= found(replace(SMALL, group=True))["one group"] <= 30


def test_the_stream_binds_nothing() -> None:
    assert publisher_share(SMALL, PROD) < 0.05
    assert publisher_share(SMALL, replace(PROD, parallelization=1)) < 0.5


def test_a_mapping_begins_with_five_batches_and_adds_300_a_minute() -> None:
    assert ramp_minutes(5) == 0
    assert ramp_minutes(305) == 1


def test_the_settings_are_those_of_the_stack_with_the_lanes() -> None:
    def resource(type_: str, **properties: object) -> dict[str, object]:
        return {"Type": type_, "Properties": properties}

    def stack(*resources: dict[str, object]) -> dict[str, object]:
        return {"Resources": dict(enumerate(resources))}

    mapping = "AWS::Lambda::EventSourceMapping"
    api = resource("AWS::ApiGatewayV2::Stage", DefaultRouteSettings={"ThrottlingRateLimit": 7_000})
    app = stack(resource("AWS::ApiGatewayV2::Stage", DefaultRouteSettings={"ThrottlingRateLimit": 9_000}))
    lanes = stack(
        resource(mapping, ScalingConfig={"MaximumConcurrency": 20}),
        resource(mapping, ScalingConfig={"MaximumConcurrency": 80}),
        resource(mapping, ParallelizationFactor=4),
        resource("AWS::Lambda::Function", Environment={"Variables": {Env.INDEX_SHARDS: "8"}}),
        resource("AWS::Lambda::Function"),
        resource("AWS::DynamoDB::Table"),
        resource("AWS::DynamoDB::Table", WarmThroughput={"WriteUnitsPerSecond": 9_000}),
        api,
    )

    assert limits_of([app, lanes]) == StageLimits(
        api_rate=7_000, max_concurrency=80, index_shards=8, warm_write_units=9_000, parallelization=4
    )
    assert limits_of([]) == PROD

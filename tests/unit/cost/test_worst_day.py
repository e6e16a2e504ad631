"""The worst day of a stage."""

from typing import Any

import pytest

from tidemill.cost import list_prices
from tidemill.cost.aws_quotas import TABLE_WRITE_UNITS
from tidemill.cost.bill import lines, total
from tidemill.cost.job_usage import DAY_SECONDS, of_one_job
from tidemill.cost.measured import FUNCTION_MB
from tidemill.cost.profile import Profile
from tidemill.cost.stage_limits import StageLimits, limits_of
from tidemill.cost.stage_parts import parts_of
from tidemill.cost.worst_day import BusyLane, BusyStage, bill, busy_stage
from tidemill.names import LARGEST_BATCH

LANE = BusyLane(max_concurrency=2, batch=10, memory_mb=512)


def units(stage: BusyStage) -> dict[str, float]:
    return {line.name: line.units for line in bill(stage)}


def test_requests_alone_cost_a_small_job_each() -> None:
    stage = BusyStage(lanes=[], requests_per_second=10)

    assert units(stage)["API requests"] == 10 * DAY_SECONDS
    # The insert and the entry of the listing. No worker runs the jobs.
    assert units(stage)["table writes"] == 10 * DAY_SECONDS * 2
    # The publisher's invocation has a batch of ten.
    assert units(stage)["invocations"] == pytest.approx(10 * DAY_SECONDS * 1.1)


def test_a_request_that_may_submit_a_batch_makes_as_many_jobs_as_a_batch_has() -> None:
    stage = BusyStage(lanes=[], requests_per_second=10, batches_per_second=4)

    assert stage.jobs_per_second == 6 + 4 * LARGEST_BATCH
    assert units(stage)["API requests"] == 10 * DAY_SECONDS
    assert units(stage)["table writes"] == stage.jobs_per_second * DAY_SECONDS * 2


def test_the_table_and_its_index_have_a_quota_each() -> None:
    used = units(BusyStage(lanes=[LANE], requests_per_second=1_000, batches_per_second=1_000))

    assert used["table writes"] == pytest.approx(2 * TABLE_WRITE_UNITS * DAY_SECONDS)
    # Requests that the table refuses cost what others cost.
    assert used["API requests"] == 1_000 * DAY_SECONDS


def test_no_job_costs_more_than_the_worst_day_has_for_it() -> None:
    """With one run or several, alone in its request or not."""
    for attempts, per_request in ((1, 1), (3, 1), (1, LARGEST_BATCH)):
        job = of_one_job(Profile(attempts=attempts, per_request=per_request))
        stage = BusyStage(lanes=[LANE], requests_per_second=10, batches_per_second=10 if per_request > 1 else 0)
        jobs = min(stage.jobs_per_second, LANE.runs_per_second() / attempts)
        assert total(lines(job.times(jobs * DAY_SECONDS))) < total(bill(stage)), (attempts, per_request)


def test_each_run_ends_a_job_where_the_stage_has_an_archive() -> None:
    used = units(BusyStage(lanes=[LANE], requests_per_second=10, archive=True))

    assert used["file writes"] == pytest.approx(LANE.runs_per_second() * DAY_SECONDS)
    assert "file writes" not in units(BusyStage(lanes=[LANE], requests_per_second=10))


def test_workers_cost_their_own_memory() -> None:
    large = BusyLane(max_concurrency=2, batch=10, memory_mb=2_048)
    used = units(BusyStage(lanes=[large] * 2, requests_per_second=0))

    assert used["invocation time"] > 4 * 2 * DAY_SECONDS


def test_workers_fill_their_day_with_failing_runs() -> None:
    used = units(BusyStage(lanes=[LANE], requests_per_second=0))

    # Two invocations at a time, all day, and the ones of publish.
    worked = 2 * DAY_SECONDS * LANE.memory_mb / 1024
    assert worked < used["invocation time"] < 1.5 * worked
    assert used["table writes"] == pytest.approx(LANE.runs_per_second() * DAY_SECONDS * 4)
    assert "API requests" not in used


def test_a_lane_may_have_large_batches() -> None:
    large = BusyLane(max_concurrency=2, batch=100, memory_mb=512)

    # Each run needs its CPU time, and the calls of a batch overlap.
    assert LANE.runs_per_second() < large.runs_per_second() < 10 * LANE.runs_per_second()


def test_more_workers_or_requests_cost_more_until_the_quota_of_the_table() -> None:
    small = BusyStage(lanes=[LANE], requests_per_second=10)
    more = [BusyStage(lanes=[LANE, LANE], requests_per_second=10), BusyStage(lanes=[LANE], requests_per_second=200)]
    huge = BusyStage(lanes=[LANE] * 1_000, requests_per_second=10)

    assert all(total(bill(stage)) > total(bill(small)) for stage in more)
    assert units(huge)["table writes"] == pytest.approx((TABLE_WRITE_UNITS + 10) * DAY_SECONDS)
    # All workers are busy all day, also those whose writes the table refuses.
    assert units(huge)["invocation time"] > 1_000 * LANE.gigabytes * DAY_SECONDS


def test_the_bill_uses_the_prices_of_the_file() -> None:
    prices = list_prices.all_prices().values()
    assert all(line.price in prices for line in bill(BusyStage(lanes=[LANE], requests_per_second=1)))


#: An app may add these: without throttling, with a name and a limit of its own, without anything.
OF_AN_APP: list[dict[str, Any]] = [
    {"Resources": {"Stage": {"Type": "AWS::ApiGatewayV2::Stage", "Properties": {"StageName": "$default"}}}},
    {
        "Resources": {
            "Mapping": {
                "Type": "AWS::Lambda::EventSourceMapping",
                "Properties": {"FunctionName": {"Ref": "Own"}, "ScalingConfig": {"MaximumConcurrency": 5}},
            },
            "Own": {
                "Type": "AWS::Lambda::Function",
                "Properties": {"FunctionName": "own", "SnapStart": {"ApplyOn": "PublishedVersions"}},
            },
            "Limited": {
                "Type": "AWS::Lambda::EventSourceMapping",
                "Properties": {"FunctionName": "own", "ScalingConfig": {"MaximumConcurrency": {"Ref": "Most"}}},
            },
            "Queue": {"Type": "AWS::SQS::Queue"},
            "Once": {
                "Type": "AWS::Scheduler::Schedule",
                "Properties": {"ScheduleExpression": "at(2030-01-01T00:00:00)", "Target": {"Arn": "own"}},
            },
        }
    },
    {"Outputs": {}},
]


def test_what_an_app_adds_stops_no_synth_and_no_calculation() -> None:
    assert busy_stage(OF_AN_APP) == BusyStage(
        lanes=[BusyLane(max_concurrency=5, batch=10, memory_mb=FUNCTION_MB)], requests_per_second=0
    )
    assert limits_of(OF_AN_APP) == StageLimits()
    parts = parts_of(OF_AN_APP)
    assert (parts.other_calls, parts.polled_queues, parts.snapshot_gigabytes) == (1, 2, 0.125)

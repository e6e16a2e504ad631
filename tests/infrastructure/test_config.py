"""An invalid configuration raises a `SettingError` that names the setting."""

from dataclasses import replace
from typing import Any

import pytest

from stacks.applications.shortener import Shortener
from stacks.composition import read_settings
from stacks.stages import STAGES
from tidemill.cdk.config import LOG_RETENTIONS_DAYS, PYTHON_VERSIONS
from tidemill.cdk.functions.log_group import RETENTIONS
from tidemill.cdk.lanes.lane_config import DLQ_RETENTION_DAYS
from tidemill.cdk.synth_errors import SettingError
from tidemill.names import LARGEST_MAX_ATTEMPTS, Lane

CONFIG = STAGES["dev"]()
LANES = CONFIG.lanes
LANE = LANES[1]


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_is_valid(stage: str) -> None:
    config = STAGES[stage]()
    assert config.stage == stage
    for lane in config.lanes:
        assert lane.visibility_timeout_seconds >= 6 * lane.function_timeout_seconds + lane.batching_window_seconds
        assert lane.max_receive_count >= 2 * LARGEST_MAX_ATTEMPTS + 10
        assert lane.queue_retention_days < DLQ_RETENTION_DAYS


def test_every_stage_has_all_lanes() -> None:
    for config in (stage() for stage in STAGES.values()):
        assert [lane.name for lane in config.lanes] == list(Lane)


def test_a_batching_window_allows_a_larger_batch() -> None:
    assert replace(LANE, batch_size=100, batching_window_seconds=1, memory_mb=1024).batch_size == 100


def test_a_batching_window_lengthens_the_visibility_timeout() -> None:
    assert replace(LANE, batching_window_seconds=7).visibility_timeout_seconds == LANE.visibility_timeout_seconds + 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"job_timeout_seconds": 0}, "job_timeout_seconds 0 must be positive"),
        (
            {"job_timeout_seconds": 30},
            "function_timeout_seconds 30 must be above job_timeout_seconds 30 and the settle reserve",
        ),
        ({"function_timeout_seconds": 901}, "function_timeout_seconds 901 must be at most 900, the limit of Lambda"),
        ({"queue_retention_days": 0}, "from 1 to 13"),
        ({"queue_retention_days": 14}, "the dead-letter queue, which keeps 14 days, must keep messages longer"),
        ({"batch_size": 0}, "batch_size 0 must be from 1 to 100"),
        ({"batch_size": 101, "batching_window_seconds": 1}, "batch_size 101 must be from 1 to 100"),
        ({"batch_size": 100, "batching_window_seconds": 1}, "memory_mb 512 must be at least 950 for batch_size 100"),
        ({"memory_mb": 128}, "memory_mb 128 must be at least 230 for batch_size 10"),
        ({"batch_size": 11}, "batch_size 11 needs batching_window_seconds of at least 1"),
        ({"batching_window_seconds": -1}, "batching_window_seconds -1 must be from 0 to 300"),
        ({"batching_window_seconds": 301}, "batching_window_seconds 301 must be from 0 to 300"),
        ({"late_seconds": 0}, "lane default: late_seconds 0 must be positive"),
        ({"max_concurrency": 1}, "max_concurrency 1 must be at least 2"),
        ({"reserved_concurrency": 4}, "reserved_concurrency 4 must not be below max_concurrency 5"),
    ],
)
def test_an_invalid_lane_raises(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        replace(LANE, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stage": "Dev Stage"}, "stage 'Dev Stage' is not a lower-case word"),
        ({"installation": "team-a"}, "installation 'team-a'"),
        ({"qualifier": "much-too-long"}, "qualifier 'much-too-long' is not at most ten"),
        ({"alarm_email": "operator"}, "alarm_email 'operator' is not an e-mail address"),
        ({"permissions_boundary": "arn:aws:s3:::bucket"}, "the ARN or the name of a policy"),
        ({"runbook_url": "runbook.md#top"}, "an address without a fragment"),
        ({"python_version": "3.9"}, "python_version '3.9' is not supported: use one of 3.11, 3.12, 3.13, 3.14"),
        ({"python_version": "3.11", "snap_start": True}, "snap_start needs a python_version of 3.12, 3.13, 3.14"),
        ({"lanes": ()}, "lanes must be critical, default, bulk"),
        ({"lanes": (LANES[0], LANE, LANE)}, "lanes must be critical, default, bulk"),
        ({"lanes": LANES[::-1]}, "in this order"),
        ({"lanes": (*LANES[:2], replace(LANES[2], job_timeout_seconds=1))}, "of a less urgent lane must not be lower"),
        ({"gradual_deployment": True, "metric_math": False}, "gradual_deployment needs metric_math=on"),
        ({"export_retention_days": 0}, "export_retention_days must be positive"),
        ({"index_shards": 0}, "index_shards 0 must be from 1 to 16"),
        ({"index_shards": 17}, "index_shards 17 must be from 1 to 16"),
        ({"warm_write_units": 3999}, "warm_write_units 3999 must be 0 or at least 4000, which a new table has"),
        ({"wake_parts": 0}, "wake_parts 0 must be from 1 to index_shards 4"),
        ({"wake_parts": 5}, "wake_parts 5 must be from 1 to index_shards 4: each call of wake needs a partition"),
        ({"stream_parallelization": 0}, "stream_parallelization 0 must be from 1 to 10"),
        ({"stream_parallelization": 11}, "stream_parallelization 11 must be from 1 to 10"),
        ({"reconcile_limit_seconds": 360}, "above 360, after which the message of a crashed worker returns"),
        (
            {"reconcile_limit_seconds": 21601},
            "at most 21600, after which an unpublished change goes to the failure queue",
        ),
        ({"reconcile_read_units": 9}, "reconcile_read_units must be at least 10"),
        ({"expected_documents": 0}, "expected_documents must be positive"),
        ({"reconcile_timeout_seconds": 901}, "reconcile_timeout_seconds must be from 1 to 900"),
        ({"wake_timeout_seconds": 47}, "wake_timeout_seconds must be at least 48, so that owed work and parked jobs"),
        ({"wake_timeout_seconds": 61}, "after that the next call of wake begins"),
        ({"jwt_issuer": "https://issuer.example"}, "set both for tokens"),
        ({"jwt_audience": ("mill",)}, "or neither for SigV4"),
        ({"jwt_issuer": "http://issuer.example", "jwt_audience": ("mill",)}, "is not an https address"),
        ({"jwt_issuer": "https://issuer.example", "jwt_audience": ("mill", "")}, "must not contain an empty name"),
        ({"job_packages": ()}, "job_packages is empty: name the packages that hold job types"),
        ({"job_retention_days": 0}, "job_retention_days must be positive"),
        ({"audit_retention_days": 0}, "audit_retention_days must be positive"),
        ({"log_retention_days": 31}, "log_retention_days 31 is not supported: use one of 1, 3, 7,"),
        ({"log_sample_rate": 1.5}, "log_sample_rate 1.5 must be from 0 to 1"),
        ({"log_sample_rate": float("nan")}, "log_sample_rate nan must be from 0 to 1"),
        ({"payload_item_bytes": 1023}, "payload_item_bytes 1023 must be from 1024 to 65536"),
        ({"payload_item_bytes": 65537}, "payload_item_bytes 65537 must be from 1024 to 65536"),
        ({"metrics_by_type": -1}, "metrics_by_type -1 must be from 0 to 100"),
        ({"metrics_by_type": 101}, "metrics_by_type 101 must be from 0 to 100"),
        ({"api_timeout_seconds": 30}, "an HTTP API waits at most 30 s"),
        ({"api_rate": 0}, "api_rate 0 must be positive"),
        ({"api_burst": 0}, "api_burst 0 must be positive"),
        ({"open_rate": 0}, "open_rate 0 must be positive"),
        ({"open_burst": -1}, "open_burst -1 must be positive"),
        ({"open_concurrency": 0}, "0 would disable the public routes"),
        (
            {"jobs_stream": "arn:aws:dynamodb:eu-central-1:123456789012:table/jobs"},
            "is not the ARN of a table's stream",
        ),
        ({"epoch": 1}, "epoch needs jobs_stream: the table that the stack itself creates has epoch 0"),
        ({"epoch": -1}, "epoch -1 must not be negative"),
        ({"jwt_scopes": ("jobs/write",)}, "jwt_scopes needs a jwt_issuer"),
        ({"jwt_scopes": ("two words",)}, "jwt_scopes must be visible ASCII without quotes"),
        ({"publish_timeout_seconds": 0}, "publish_timeout_seconds must be from 1"),
    ],
)
def test_an_invalid_stage_raises(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        replace(CONFIG, **change)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"stage": "staging"}, "unknown stage 'staging': use one of local, dev, prod"),
        ({"stag": "prod"}, "unknown setting 'stag': use one of stage, installation"),
        ({"trusted_proxy_hops": "one"}, "trusted_proxy_hops: 'one' is not an integer: use a number"),
        ({"tags": "cost"}, "tags: 'cost' is invalid: use the form key=value"),
        ({"listing": "no"}, "listing: 'no' is invalid: use on or off"),
        ({"qualifier": "UPPER"}, "qualifier 'UPPER'"),
        ({"jobs_stream": "arn"}, "jobs_stream names the table of one stage: add -c stage=STAGE"),
    ],
)
def test_an_invalid_setting_raises_with_its_name(context: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        read_settings(context)


def test_an_invalid_setting_of_an_application_raises() -> None:
    with pytest.raises(SettingError, match="trusted_proxy_hops -1 must not be negative: set 0 without a proxy"):
        Shortener(CONFIG, {"trusted_proxy_hops": -1})


def test_settings_come_from_the_context_and_the_keys_of_cdk_are_ignored() -> None:
    settings = read_settings(
        {
            "@aws-cdk/aws-iam:minimizePolicies": True,
            "cli-telemetry": False,
            "installation": "blue",
            "trusted_proxy_hops": 1,
            "tags": "cost=42,team=clicks",
            "listing": "off",
            "jwt_issuer": "https://issuer.example/pool",
            "jwt_audience": "mill,other",
        }
    )
    config = settings.stage
    assert (config.stage, config.name) == ("dev", "Tidemill-dev-blue")
    assert settings.app == {"trusted_proxy_hops": 1}
    assert config.tags == (("cost", "42"), ("team", "clicks"))
    assert config.listing is False
    assert (config.jwt_issuer, config.jwt_audience) == ("https://issuer.example/pool", ("mill", "other"))


@pytest.mark.parametrize("version", PYTHON_VERSIONS)
def test_every_runtime_can_be_chosen(version: str) -> None:
    assert read_settings({"python_version": version}).stage.python_version == version


def test_cloudwatch_supports_every_log_retention() -> None:
    assert tuple(RETENTIONS) == LOG_RETENTIONS_DAYS

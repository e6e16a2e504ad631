"""A configuration that cannot work is refused in words."""

from dataclasses import replace
from typing import Any

import pytest

from stacks.applications.shortener import Shortener
from stacks.composition import read_settings
from stacks.stages import STAGES
from tidemill.cdk.config import LETTER_RETENTION_DAYS, LOG_RETENTIONS_DAYS, PYTHON_VERSIONS, SettingError
from tidemill.cdk.log_group import RETENTIONS
from tidemill.names import LARGEST_MAX_ATTEMPTS, Lane

CONFIG = STAGES["dev"]()
LANES = CONFIG.lanes
LANE = LANES[1]


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_holds(stage: str) -> None:
    config = STAGES[stage]()
    assert config.stage == stage
    for lane in config.lanes:
        assert lane.visibility_timeout_seconds >= 6 * lane.function_timeout_seconds + lane.batching_window_seconds
        assert lane.max_receive_count >= 2 * LARGEST_MAX_ATTEMPTS + 10
        assert lane.queue_retention_days < LETTER_RETENTION_DAYS


def test_a_type_finds_its_lane_in_every_stage() -> None:
    for config in (stage() for stage in STAGES.values()):
        assert [lane.name for lane in config.lanes] == list(Lane)


def test_a_batching_window_lengthens_the_visibility_timeout() -> None:
    assert replace(LANE, batching_window_seconds=7).visibility_timeout_seconds == LANE.visibility_timeout_seconds + 7


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"job_timeout_seconds": 0}, "job_timeout_seconds must be positive"),
        ({"job_timeout_seconds": 30}, "do not fit function_timeout_seconds 30"),
        ({"function_timeout_seconds": 901}, "above Lambda's 900"),
        ({"queue_retention_days": 0}, "from 1 to 13"),
        ({"queue_retention_days": 14}, "a letter outlives its message"),
        ({"batch_size": 0}, "batch_size must be from 1 to 10"),
        ({"batch_size": 11}, "batch_size must be from 1 to 10"),
        ({"batching_window_seconds": -1}, "batching_window_seconds must not be negative"),
        ({"late_seconds": 0}, "late_seconds must be positive"),
        ({"max_concurrency": 1}, "max_concurrency must be at least 2"),
        ({"reserved_concurrency": 4}, "below max_concurrency 5"),
    ],
)
def test_a_lane_that_cannot_work_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        replace(LANE, **change)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"stage": "Dev Stage"}, "stage 'Dev Stage' is not a lower-case word"),
        ({"installation": "team-a"}, "installation 'team-a'"),
        ({"qualifier": "much-too-long"}, "qualifier 'much-too-long' is not at most ten"),
        ({"alarm_email": "nobody"}, "alarm_email 'nobody' is not an e-mail address"),
        ({"permissions_boundary": "arn:aws:s3:::bucket"}, "the ARN or the name of a policy"),
        ({"runbook_url": "runbook.md#top"}, "an address without a fragment"),
        ({"python_version": "3.9"}, "python_version '3.9' is none of 3.11, 3.12, 3.13, 3.14"),
        ({"lanes": ()}, "lanes must be critical, default, bulk"),
        ({"lanes": (LANES[0], LANE, LANE)}, "lanes must be critical, default, bulk"),
        ({"lanes": LANES[::-1]}, "in this order"),
        ({"lanes": (*LANES[:2], replace(LANES[2], job_timeout_seconds=1))}, "must not be less on a less urgent lane"),
        ({"export_retention_days": 0}, "export_retention_days must be positive"),
        ({"reconcile_limit_seconds": 360}, "above 360, when the message of a dead worker is back"),
        ({"reconcile_limit_seconds": 21601}, "at most 21600, when a change that could not be published is set aside"),
        ({"reconcile_timeout_seconds": 901}, "reconcile_timeout_seconds must be from 1 to 900"),
        ({"wake_timeout_seconds": 61}, "then the next one begins"),
        ({"jwt_issuer": "https://issuer.example"}, "give both for tokens"),
        ({"jwt_audience": ("mill",)}, "or none for SigV4"),
        ({"jwt_issuer": "http://issuer.example", "jwt_audience": ("mill",)}, "is not an https address"),
        ({"jwt_issuer": "https://issuer.example", "jwt_audience": ("mill", "")}, "must not hold an empty name"),
        ({"job_packages": ()}, "must name the packages that hold job types"),
        ({"job_retention_days": 0}, "job_retention_days must be positive"),
        ({"log_retention_days": 31}, "log_retention_days 31 is none of"),
        ({"api_timeout_seconds": 30}, "an HTTP API waits no longer"),
        ({"api_rate": 0}, "api_rate must be positive"),
        ({"api_burst": 1}, "not above api_burst"),
        ({"publish_timeout_seconds": 0}, "publish_timeout_seconds must be from 1"),
    ],
)
def test_a_stage_that_cannot_work_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        replace(CONFIG, **change)


@pytest.mark.parametrize(
    ("context", "says"),
    [
        ({"stage": "staging"}, "unknown stage 'staging'; the stages are local, dev, prod"),
        ({"stag": "prod"}, "unknown setting 'stag'; the settings are stage, installation"),
        ({"trusted_proxy_hops": "one"}, "trusted_proxy_hops: 'one' is not a whole number"),
        ({"tags": "cost"}, "tags: 'cost' is not of the form"),
        ({"listing": "no"}, "listing: 'no' is neither on nor off"),
        ({"qualifier": "UPPER"}, "qualifier 'UPPER'"),
    ],
)
def test_a_setting_that_cannot_be_read_is_refused_by_name(context: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        read_settings(context)


def test_a_setting_of_an_application_that_cannot_work_is_refused() -> None:
    with pytest.raises(SettingError, match="trusted_proxy_hops must not be negative"):
        Shortener(CONFIG, {"trusted_proxy_hops": -1})


def test_settings_come_from_the_context_and_what_is_cdk_s_is_left_alone() -> None:
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


def test_every_log_retention_is_one_that_cloudwatch_knows() -> None:
    assert tuple(RETENTIONS) == LOG_RETENTIONS_DAYS

"""The three stages of this app. May not import CDK."""

import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from tidemill.cdk.config import HOST_PYTHON, NEWEST_TESTED_PYTHON, Architecture, StageConfig
from tidemill.cdk.lanes.lane_config import LaneConfig
from tidemill.names import Lane

#: The packages with the job types of every stage.
JOB_PACKAGES: Final = ("functions.jobs",)


def _local() -> StageConfig:
    """The embedded AWS on this host: its Python, its processor, and timeouts short enough to watch in the demo."""
    return StageConfig(
        stage="local",
        lanes=tuple(
            LaneConfig(
                name=lane,
                function_timeout_seconds=3,
                job_timeout_seconds=2,
                max_concurrency=max_concurrency,
                late_seconds=60,
                first_message_at_once=lane is Lane.CRITICAL,
            )
            for lane, max_concurrency in ((Lane.CRITICAL, 3), (Lane.DEFAULT, 5), (Lane.BULK, 2))
        ),
        python_version=HOST_PYTHON,
        architecture=Architecture.ARM64 if platform.machine() in {"arm64", "aarch64"} else Architecture.X86_64,
        wheels_of_host=True,
        callers_by_name=True,
        short_timeouts=True,
        metric_math=False,
        job_packages=(*JOB_PACKAGES, "functions.demo_jobs"),
        job_retention_days=1,
        export_retention_days=1,
        reconcile_limit_seconds=30,
        reconcile_timeout_seconds=60,
        log_retention_days=1,
        api_rate=1000,
        api_burst=1000,
        open_rate=1000,
        open_burst=1000,
    )


def _lanes(critical: LaneConfig, default: LaneConfig, bulk: LaneConfig) -> tuple[LaneConfig, ...]:
    return (
        # A caller may wait for the result.
        replace(critical, late_seconds=2 * 60, first_message_at_once=True),
        default,
        # No caller waits for a bulk job, so a backlog of hours is normal.
        replace(bulk, late_seconds=12 * 60 * 60),
    )


def _dev() -> StageConfig:
    return StageConfig(
        stage="dev",
        job_packages=JOB_PACKAGES,
        lanes=_lanes(
            critical=LaneConfig(
                name=Lane.CRITICAL, function_timeout_seconds=30, job_timeout_seconds=25, max_concurrency=5
            ),
            default=LaneConfig(
                name=Lane.DEFAULT, function_timeout_seconds=30, job_timeout_seconds=25, max_concurrency=5
            ),
            bulk=LaneConfig(name=Lane.BULK, function_timeout_seconds=60, job_timeout_seconds=55, max_concurrency=2),
        ),
        python_version=NEWEST_TESTED_PYTHON,
        architecture=Architecture.ARM64,
        log_retention_days=7,
    )


def _prod() -> StageConfig:
    return StageConfig(
        stage="prod",
        job_packages=JOB_PACKAGES,
        lanes=_lanes(
            critical=LaneConfig(
                name=Lane.CRITICAL, function_timeout_seconds=60, job_timeout_seconds=50, max_concurrency=50
            ),
            default=LaneConfig(
                name=Lane.DEFAULT, function_timeout_seconds=60, job_timeout_seconds=50, max_concurrency=50
            ),
            bulk=LaneConfig(name=Lane.BULK, function_timeout_seconds=300, job_timeout_seconds=280, max_concurrency=20),
        ),
        python_version=NEWEST_TESTED_PYTHON,
        architecture=Architecture.ARM64,
        protected=True,
        bytecode_required=True,
        log_retention_days=90,
        # Both APIs together stay below the quota of the smallest regions, 2,500 a second and a burst of 1,250:
        # https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
        api_rate=1000,
        api_burst=600,
        open_rate=500,
        open_burst=300,
        index_shards=16,
        wake_parts=8,
    )


#: Functions, not values: `_local` fails on a host whose Python is not a Lambda runtime, and the other stages must not.
STAGES: Final[Mapping[str, Callable[[], StageConfig]]] = {"local": _local, "dev": _dev, "prod": _prod}

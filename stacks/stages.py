"""The three stages, and the settings by which an installation departs from them. May not import CDK."""

import platform
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from tidemill.cdk.config import Architecture, LaneConfig, SettingError, StageConfig
from tidemill.names import Lane

HOST_PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
DEFAULT_STAGE: Final = "dev"
#: The newest Lambda runtime; what `dev` and `prod` run on unless `python_version` says otherwise.
NEWEST_PYTHON: Final = "3.14"


def _local() -> StageConfig:
    """The embedded AWS on this host: its Python, its processor, and timeouts that a person can watch run out."""
    return StageConfig(
        stage="local",
        lanes=tuple(
            LaneConfig(
                name=lane,
                function_timeout_seconds=3,
                job_timeout_seconds=2,
                max_concurrency=max_concurrency,
                late_seconds=60,
            )
            for lane, max_concurrency in ((Lane.CRITICAL, 3), (Lane.DEFAULT, 5), (Lane.BULK, 2))
        ),
        python_version=HOST_PYTHON,
        architecture=Architecture.ARM64 if platform.machine() in {"arm64", "aarch64"} else Architecture.X86_64,
        wheels_of_host=True,
        job_packages=("functions.jobs", "functions.demo_jobs"),
        # The emulator sees every client at 127.0.0.1, so whoever plays visitors says where each comes from.
        trusted_proxy_hops=1,
        job_retention_days=1,
        export_retention_days=1,
        reconcile_limit_seconds=30,
        reconcile_timeout_seconds=60,
        log_retention_days=1,
        api_rate=1000,
        api_burst=1000,
    )


def _critical(**figures: int) -> LaneConfig:
    return LaneConfig(name=Lane.CRITICAL, late_seconds=2 * 60, **figures)


def _bulk(**figures: int) -> LaneConfig:
    """Nobody waits for it: a backlog of hours is what it is for."""
    return LaneConfig(name=Lane.BULK, late_seconds=12 * 60 * 60, **figures)


def _dev() -> StageConfig:
    return StageConfig(
        stage="dev",
        lanes=(
            _critical(function_timeout_seconds=30, job_timeout_seconds=25, max_concurrency=5),
            LaneConfig(name=Lane.DEFAULT, function_timeout_seconds=30, job_timeout_seconds=25, max_concurrency=5),
            _bulk(function_timeout_seconds=60, job_timeout_seconds=55, max_concurrency=2),
        ),
        python_version=NEWEST_PYTHON,
        architecture=Architecture.ARM64,
        log_retention_days=7,
    )


def _prod() -> StageConfig:
    return StageConfig(
        stage="prod",
        lanes=(
            _critical(function_timeout_seconds=60, job_timeout_seconds=50, max_concurrency=50),
            LaneConfig(name=Lane.DEFAULT, function_timeout_seconds=60, job_timeout_seconds=50, max_concurrency=50),
            _bulk(function_timeout_seconds=300, job_timeout_seconds=280, max_concurrency=20),
        ),
        python_version=NEWEST_PYTHON,
        architecture=Architecture.ARM64,
        protected=True,
        bytecode_required=True,
        log_retention_days=90,
        api_rate=1000,
        api_burst=2000,
    )


#: Functions, not values: a host whose Python no Lambda runtime has may still synthesise for AWS.
STAGES: Final[Mapping[str, Callable[[], StageConfig]]] = {"local": _local, "dev": _dev, "prod": _prod}


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SettingError(f"{text!r} is not a whole number") from None


def _switch(text: str) -> bool:
    try:
        return {"on": True, "off": False}[text]
    except KeyError:
        raise SettingError(f"{text!r} is neither on nor off") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if not all(key and value for key, _, value in pairs):
        raise SettingError(f"{text!r} is not of the form key=value,key=value")
    return tuple((key, value) for key, _, value in pairs)


#: What `-c name=value` and the context in `cdk.json` may set beside `stage`, and how its text is read.
SETTINGS: Final[Mapping[str, Callable[[str], Any]]] = {
    "installation": str,
    "qualifier": str,
    "alarm_email": str,
    "permissions_boundary": str,
    "python_version": str,
    "runbook_url": str,
    "geoip_database": str,
    "trusted_proxy_hops": _integer,
    "listing": _switch,
    "jwt_issuer": str,
    "jwt_audience": _names,
    "tags": _pairs,
}


def from_context(context: Mapping[str, Any]) -> StageConfig:
    """The configuration that the context of a CDK app asks for. Raises SettingError, also for a misspelt setting."""
    for key in context:
        # CDK's own keys hold colons, slashes or dashes; a plain word can only be meant for us.
        if re.fullmatch(r"[a-z_]+", key) and key not in SETTINGS and key != "stage":
            raise SettingError(f"there is no setting {key!r}; there are stage, {', '.join(SETTINGS)}")
    stage = str(context.get("stage", DEFAULT_STAGE))
    if stage not in STAGES:
        raise SettingError(f"there is no stage {stage!r}; there are {', '.join(STAGES)}")
    return replace(STAGES[stage](), **{key: _read(key, context[key]) for key in SETTINGS if key in context})


def _read(key: str, value: Any) -> Any:
    try:
        return SETTINGS[key](str(value))
    except SettingError as error:
        raise SettingError(f"{key}: {error}") from None

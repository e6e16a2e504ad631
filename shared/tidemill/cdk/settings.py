"""Settings of an installation: `-c name=value`, or the context in `cdk.json`. May not import CDK."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from tidemill.cdk.config import StageConfig
from tidemill.cdk.synth_errors import SettingError

DEFAULT_STAGE: Final = "dev"
#: Turns the text of a setting into its value. Raises `SettingError`.
Reader = Callable[[str], Any]
NO_SETTINGS: Final[Mapping[str, Reader]] = MappingProxyType({})


def integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SettingError(f"{text!r} is not an integer: use a number such as 1") from None


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"{text!r} is not a number: use a number such as 0.5") from None


def switch(text: str) -> bool:
    try:
        return {"on": True, "off": False}[text]
    except KeyError:
        raise SettingError(f"{text!r} is invalid: use on or off") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if not all(key and value for key, _, value in pairs):
        raise SettingError(f"{text!r} is invalid: use the form key=value,key=value")
    return tuple((key, value) for key, _, value in pairs)


#: The settings of `-c name=value` and of the context in `cdk.json`, except `stage`, and how each text is read.
SETTINGS: Final[Mapping[str, Reader]] = {
    "installation": str,
    "qualifier": str,
    "alarm_email": str,
    "ticket_email": str,
    "contributor_insights": switch,
    "permissions_boundary": str,
    "python_version": str,
    "snap_start": switch,
    "runbook_url": str,
    "listing": switch,
    "canary": switch,
    "metric_math": switch,
    "gradual_deployment": switch,
    "audit_retention_days": integer,
    "archive": str,
    "configuration_source": str,
    "index_shards": integer,
    "warm_write_units": integer,
    "jobs_stream": str,
    "epoch": integer,
    "jwt_issuer": str,
    "jwt_audience": _names,
    "jwt_scopes": _names,
    "api_rate": integer,
    "api_burst": integer,
    "open_rate": integer,
    "open_burst": integer,
    "open_concurrency": integer,
    "foreground_target_seconds": number,
    "log_exception_text": switch,
    "log_sample_rate": number,
    "payload_item_bytes": integer,
    "compress_payloads": switch,
    "metrics_by_type": integer,
    "tracing": switch,
    "tracing_layer": str,
    "tags": _pairs,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration that the context of a CDK app selects."""

    stage: StageConfig
    #: The app's own settings that are set.
    app: Mapping[str, Any]


def from_context(
    context: Mapping[str, Any], stages: Mapping[str, Callable[[], StageConfig]], app: Mapping[str, Reader] = NO_SETTINGS
) -> Settings:
    """Read the settings for one of `stages`. `app` holds the app's own settings, and how each text is read.

    Raises `SettingError` for an invalid value and for an unknown setting.
    """
    known = {**SETTINGS, **app}
    for key in context:
        # CDK's own keys contain colons, slashes or dashes. A plain word is a setting of this app.
        if re.fullmatch(r"[a-z_]+", key) and key not in known and key != "stage":
            raise SettingError(f"unknown setting {key!r}: use one of stage, {', '.join(known)}")
    if "jobs_stream" in context and "stage" not in context:
        # Without a name, the stage is the default one, whichever one the table belongs to.
        raise SettingError(
            "jobs_stream names the table of one stage: add -c stage=STAGE, or set it in stacks/stages.py"
        )
    stage = str(context.get("stage", DEFAULT_STAGE))
    if stage not in stages:
        raise SettingError(f"unknown stage {stage!r}: use one of {', '.join(stages)}")
    read = {key: _read(known[key], key, context[key]) for key in known if key in context}
    return Settings(
        stage=replace(stages[stage](), **{key: value for key, value in read.items() if key in SETTINGS}),
        app={key: value for key, value in read.items() if key in app},
    )


def _read(reader: Reader, key: str, value: Any) -> Any:
    try:
        return reader(str(value))
    except SettingError as error:
        raise SettingError(f"{key}: {error}") from None

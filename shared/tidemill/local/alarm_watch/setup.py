"""Sets up the watch of a deployed instance."""

import json
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from tidemill.local import cdk_deploy
from tidemill.local.alarm_watch.failed_invocations import FailedInvocations
from tidemill.local.alarm_watch.installed_alarms import put_missing, read_installed
from tidemill.local.alarm_watch.log_lines import Source
from tidemill.local.alarm_watch.watch import Clients, Watch
from tidemill.local.alarms import MetricKey
from tidemill.names import Output
from tidemill.operator.status import alarm_states

#: The stage `local` with the alarms that the embedded AWS cannot create from a template.
_WITH_ALL_ALARMS: Final = ("metric_math=on",)
#: The functions that no API calls. Their lines about a table that does not respond answer no caller.
_BEHIND_NO_API: Final = frozenset({"publish", "work", "wake", "tick", "reconcile", "canary"})
Templates = Mapping[str, Mapping[str, Any]]


def templates_with_all_alarms(folder: Path, console: Console) -> Templates:
    """By stack. Synthesises them into the folder of the instance. Raises DeployError."""
    assembly = folder / "alarms.out"
    cdk_deploy.synth(cdk_deploy.STAGE, assembly, console, context=_WITH_ALL_ALARMS, log=folder / "alarms-synth.log")
    return {stack: json.loads((assembly / f"{stack}.template.json").read_text()) for stack in _outputs(folder)}


def watch_of(
    folder: Path, client: Clients, templates: Templates, *, minute_seconds: float, also: Collection[MetricKey] = ()
) -> Watch:
    """A watch of the alarms in `templates`, which it creates where they are missing."""
    outputs = _outputs(folder)
    alarms = read_installed(templates, client("cloudformation"))
    put_missing(client("cloudwatch"), alarms)
    (page_topic,) = (each[Output.ALARM_TOPIC] for each in outputs.values() if Output.ALARM_TOPIC in each)
    return Watch(
        alarms,
        client,
        sources=sources_of(outputs),
        failed=FailedInvocations(folder / "emulator.log"),
        described=alarm_states.read(client("cloudwatch"), outputs, page_topic=page_topic),
        minute_seconds=minute_seconds,
        started_at=time.time(),
        also=also,
    )


def sources_of(outputs_by_stack: Mapping[str, Mapping[str, str]]) -> list[Source]:
    """The functions of all stacks that have any, each with the API of its stack."""
    return [
        Source(
            log_group=json.loads(outputs[Output.LOG_GROUPS])[key],
            function=function,
            api_id="" if key.partition("-")[0] in _BEHIND_NO_API else _api_id(outputs),
        )
        for outputs in outputs_by_stack.values()
        for key, function in json.loads(outputs.get(Output.FUNCTIONS, "{}")).items()
    ]


def _api_id(outputs: Mapping[str, str]) -> str:
    return next((value for name, value in outputs.items() if name.endswith(Output.API_ID)), "")


def _outputs(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """The outputs of each stack."""
    found: Mapping[str, Mapping[str, str]] = json.loads((folder / "outputs-by-stack.json").read_text())
    return found

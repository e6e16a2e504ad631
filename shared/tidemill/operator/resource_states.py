"""The real state of each event source mapping and each schedule, beside the expected one."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidemill.aws.clients import translated
from tidemill.domain.errors import MissingResourceError
from tidemill.operator.expected_state import Expected, Kind

MISSING: Final = "missing"
#: https://docs.aws.amazon.com/lambda/latest/api/API_GetEventSourceMapping.html
_MAPPING_ON: Final = frozenset({"Creating", "Enabling", "Enabled", "Updating"})
#: Members of the response of `GetSchedule` that `UpdateSchedule` does not take:
#: https://docs.aws.amazon.com/scheduler/latest/APIReference/API_UpdateSchedule.html
_READ_ONLY: Final = frozenset({"Arn", "CreationDate", "LastModificationDate", "ResponseMetadata"})
#: CloudFormation does not notice the deletion, so a deployment of the same template changes nothing.
_RESTORE: Final = "It was deleted outside of CloudFormation: deploy the stack without it, and then with it again."


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceState:
    """One mapping or schedule."""

    expected: Expected
    #: As its AWS API names it, or `MISSING`.
    state: str
    enabled: bool
    #: Each setting that differs, as a sentence.
    differences: tuple[str, ...] = ()
    #: The command, or the steps, that bring the expected state back. Empty if it differs in nothing.
    remedy: str = ""

    @property
    def stopped(self) -> bool:
        """The function is not called, though the template says that it is."""
        return self.expected.enabled and not self.enabled

    @property
    def as_expected(self) -> bool:
        return self.enabled == self.expected.enabled and not self.differences


def read(expected: Expected, *, functions: Any, scheduler: Any) -> ResourceState:
    """`functions` and `scheduler` are the clients of Lambda and of EventBridge Scheduler."""
    if not expected.physical_id:
        return _missing(expected)
    try:
        with translated():
            if expected.kind is Kind.MAPPING:
                return _mapping(expected, functions.get_event_source_mapping(UUID=expected.physical_id))
            return _schedule(expected, scheduler.get_schedule(Name=expected.physical_id, GroupName=expected.group))
    except MissingResourceError:
        return _missing(expected)


def _missing(expected: Expected) -> ResourceState:
    return ResourceState(expected=expected, state=MISSING, enabled=False, remedy=_RESTORE)


def _mapping(expected: Expected, found: Mapping[str, Any]) -> ResourceState:
    enabled = found["State"] in _MAPPING_ON
    command = f"aws lambda update-event-source-mapping --uuid {expected.physical_id}"
    differences = _differences(expected, found.get("ScalingConfig") or {})
    arguments = [] if enabled == expected.enabled else ["--enabled" if expected.enabled else "--no-enabled"]
    if differences:
        arguments.append(f"--scaling-config MaximumConcurrency={expected.settings['MaximumConcurrency']}")
    return ResourceState(
        expected=expected,
        state=found["State"],
        enabled=enabled,
        differences=differences,
        remedy=" ".join([command, *arguments]) if arguments else "",
    )


def _schedule(expected: Expected, found: Mapping[str, Any]) -> ResourceState:
    state = "ENABLED" if expected.enabled else "DISABLED"
    differences = _differences(expected, found)
    # An update resets each member that it does not name to its default.
    whole = {name: value for name, value in found.items() if name not in _READ_ONLY}
    wanted = json.dumps(whole | {"State": state} | dict(expected.settings), default=str)
    return ResourceState(
        expected=expected,
        state=found["State"],
        enabled=found["State"] == "ENABLED",
        differences=differences,
        remedy=f"aws scheduler update-schedule --cli-input-json {shlex.quote(wanted)}"
        if differences or found["State"] != state
        else "",
    )


def _differences(expected: Expected, found: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{name} is {found.get(name)}, and the template says {value}"
        for name, value in expected.settings.items()
        if str(found.get(name)) != value
    )

"""Schedules: whether they are on, when they call, and what they call with which retries."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidemill.aws import clients
from tidemill.aws.clients import translated
from tidemill.operator.comparisons.comparison import Found, OwnSettings, picked
from tidemill.operator.drift.expected_resource import Expected, Kind

#: Members of the response of `GetSchedule` that `UpdateSchedule` does not take:
#: https://docs.aws.amazon.com/scheduler/latest/APIReference/API_UpdateSchedule.html
_READ_ONLY: Final = frozenset({"Arn", "CreationDate", "LastModificationDate", "ResponseMetadata"})
#: A member of the target has the target's name before its own.
TARGET: Final = "Target."
SETTINGS: Final = ("State", "ScheduleExpression", "FlexibleTimeWindow")
TARGET_SETTINGS: Final = ("Arn", "DeadLetterConfig", "Input", "RetryPolicy", "RoleArn")


class Schedules(OwnSettings):
    kind: Final = Kind.SCHEDULE
    template_types: Final = ("AWS::Scheduler::Schedule",)

    def settings(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        target = picked(properties["Target"], TARGET_SETTINGS)
        return {"State": "ENABLED", **picked(properties, SETTINGS), **_flat(target)}

    def read(self, expected: Expected) -> Found:
        with translated():
            found: Mapping[str, Any] = clients.scheduler().get_schedule(
                Name=expected.physical_id, GroupName=expected.group
            )
        return Found(
            settings={**found, **_flat(found["Target"])},
            state=found["State"],
            enabled=found["State"] == "ENABLED",
            description=found,
        )

    def calls(self, names: Sequence[str]) -> Sequence[Sequence[str]]:
        return [names]

    def restore(self, expected: Expected, found: Found, names: Sequence[str]) -> None:
        # An update resets each member that it does not name to its default.
        wanted = {name: value for name, value in found.description.items() if name not in _READ_ONLY}
        target = dict(wanted["Target"])
        for name in names:
            value = expected.settings[name]
            if name.startswith(TARGET):
                target[name.removeprefix(TARGET)] = value
            else:
                wanted[name] = value
        with translated():
            clients.scheduler().update_schedule(**{**wanted, "Target": target})


def _flat(target: Mapping[str, Any]) -> dict[str, Any]:
    return {TARGET + name: value for name, value in target.items()}

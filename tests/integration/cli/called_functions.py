"""Stands in for the clients of Lambda and EventBridge Scheduler: the mappings and schedules of a stack."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import ClientError

from tests.integration.cli.loopback import ACCOUNT, Stack
from tests.support.job_tables import REGION

WAKE_ARN: Final = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:f-wake"


@dataclass
class CalledFunctions:
    """Each mapping by its UUID, each schedule by its group and name, as the AWS APIs describe them."""

    mappings: dict[str, dict[str, Any]] = field(default_factory=dict)
    schedules: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def get_event_source_mapping(self, *, UUID: str) -> Mapping[str, Any]:  # noqa: N803 - the name in the API
        return _found(self.mappings, UUID)

    def list_event_source_mappings(self, *, FunctionName: str, EventSourceArn: str) -> Mapping[str, Any]:  # noqa: N803
        found = [
            mapping
            for mapping in self.mappings.values()
            if (mapping["FunctionArn"], mapping.get("EventSourceArn")) == (FunctionName, EventSourceArn)
        ]
        return {"EventSourceMappings": found}

    def update_event_source_mapping(self, *, UUID: str, **members: Any) -> None:  # noqa: N803 - the name in the API
        _found(self.mappings, UUID).update(_with_state(members))

    def create_event_source_mapping(self, *, FunctionName: str, **members: Any) -> None:  # noqa: N803 - the name in the API
        uuid = f"uuid-{len(self.mappings)}"
        self.mappings[uuid] = {"UUID": uuid, "FunctionArn": FunctionName, **_with_state(members)}

    def get_schedule(self, *, Name: str, GroupName: str) -> Mapping[str, Any]:  # noqa: N803 - the names in the API
        return _found(self.schedules, (GroupName, Name))

    def update_schedule(self, *, Name: str, GroupName: str, **members: Any) -> None:  # noqa: N803 - the names in the API
        """An update resets what it does not name, except for the ARN."""
        arn = _found(self.schedules, (GroupName, Name))["Arn"]
        self.schedules[GroupName, Name] = {"Arn": arn, "Name": Name, "GroupName": GroupName, **members}


def _with_state(members: Mapping[str, Any]) -> dict[str, Any]:
    """Lambda takes `Enabled` and answers with `State`."""
    state = {"State": "Enabled" if members["Enabled"] else "Disabled"} if "Enabled" in members else {}
    return {name: value for name, value in members.items() if name != "Enabled"} | state


def _found(resources: Mapping[Any, dict[str, Any]], name: Any) -> dict[str, Any]:
    if name in resources:
        return resources[name]
    raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": f"{name} does not exist"}}, "Get")


def deploy(stack: Stack, resources: CalledFunctions) -> Stack:
    """The stack with a publisher, one worker and one schedule of wake, all of them enabled."""
    template = {
        "Resources": {
            "PublishMapping": {
                "Type": "AWS::Lambda::EventSourceMapping",
                "Properties": {"FunctionName": {"Fn::GetAtt": ["Publish", "Arn"]}},
            },
            "WorkMapping": {
                "Type": "AWS::Lambda::EventSourceMapping",
                "Properties": {"FunctionName": {"Ref": "Work"}, "ScalingConfig": {"MaximumConcurrency": 5}},
            },
            "WakeSchedule": {
                "Type": "AWS::Scheduler::Schedule",
                "Properties": {
                    "ScheduleExpression": "rate(1 minute)",
                    "Target": {"Arn": {"Fn::GetAtt": ["Wake", "Arn"]}, "Input": '{"part":"0","parts":"1"}'},
                },
            },
            "Publish": {"Type": "AWS::Lambda::Function", "Properties": {}},
            "Wake": {"Type": "AWS::Lambda::Function", "Properties": {}},
        }
    }
    resources.mappings |= {
        "uuid-publish": {"UUID": "uuid-publish", "FunctionArn": "arn:publish", "State": "Enabled"},
        "uuid-work": {
            "UUID": "uuid-work",
            "FunctionArn": "arn:work",
            "State": "Enabled",
            "ScalingConfig": {"MaximumConcurrency": 5},
        },
    }
    resources.schedules["default", "wake-1"] = {
        "Arn": "arn",
        "Name": "wake-1",
        "GroupName": "default",
        "State": "ENABLED",
        "ScheduleExpression": "rate(1 minute)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": WAKE_ARN, "RoleArn": "arn:role", "Input": '{"part":"0","parts":"1"}'},
    }
    physical = {
        "Publish": "f-publish",
        "Work": "f-work",
        "Wake": "f-wake",
        "PublishMapping": "uuid-publish",
        "WorkMapping": "uuid-work",
        "WakeSchedule": "wake-1",
    }
    functions = '{"publish": "f-publish", "work": "f-work", "wake": "f-wake"}'
    return Stack(stack.name, {**stack.outputs, "Functions": functions}, stack.tags, template, physical)

"""The state in which a stack's template puts each event source mapping and each schedule.

`expected` is the only place that computes it. A comparison of the deployed system with its template, and a repair,
ask here.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from tidemill.aws.clients import translated
from tidemill.names import TICK_TYPE, WAKE_PART

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

#: The group of a schedule that names none:
#: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-scheduler-schedule.html
_DEFAULT_GROUP: Final = "default"


class Kind(StrEnum):
    """What calls a function."""

    MAPPING = "event source mapping"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One mapping or schedule as the template declares it."""

    kind: Kind
    logical_id: str
    #: The UUID of a mapping, the name of a schedule. None if the stack does not list the resource.
    physical_id: str | None
    #: The group of a schedule.
    group: str = ""
    #: The function that it calls, by its key in `names.Output.FUNCTIONS`: `publish`, `work-bulk`, `wake`.
    function: str
    #: What tells the schedules of one function apart: the periodic type, or the part of wake. May be empty.
    detail: str = ""
    enabled: bool
    #: Further properties whose values are compared, by the name that the AWS API gives them.
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"{self.function} {self.detail}".strip()


def read(client: "CloudFormationClient", stack: str, functions: Mapping[str, str]) -> list[Expected]:
    """The expected states of a deployed stack. `functions` is its output of that name."""
    with translated():
        template: Any = client.get_template(StackName=stack)["TemplateBody"]
        pages = client.get_paginator("list_stack_resources").paginate(StackName=stack)
        physical_ids = {
            resource["LogicalResourceId"]: resource.get("PhysicalResourceId", "")
            for page in pages
            for resource in page["StackResourceSummaries"]
        }
    # The SDK decodes a template that is a JSON object.
    decoded = json.loads(template) if isinstance(template, str) else template
    return list(expected(decoded, physical_ids=physical_ids, functions=functions))


def expected(
    template: Mapping[str, Any], *, physical_ids: Mapping[str, str], functions: Mapping[str, str]
) -> Iterator[Expected]:
    """Pure. `physical_ids` is by logical id."""
    keys = {name: key for key, name in functions.items()}
    resources = template.get("Resources", {})

    def function(reference: Any) -> str:
        logical_id = _logical_id(reference)
        if (alias := resources.get(logical_id, {})).get("Type") == "AWS::Lambda::Alias":
            logical_id = _logical_id(alias["Properties"]["FunctionName"])
        return keys.get(physical_ids.get(logical_id, ""), logical_id)

    for logical_id, resource in sorted(resources.items()):
        properties = resource.get("Properties", {})
        match resource["Type"]:
            case "AWS::Lambda::EventSourceMapping":
                yield Expected(
                    kind=Kind.MAPPING,
                    logical_id=logical_id,
                    physical_id=physical_ids.get(logical_id),
                    function=function(properties["FunctionName"]),
                    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-eventsourcemapping.html
                    enabled=properties.get("Enabled", True) is not False,
                    settings=_texts(properties.get("ScalingConfig", {}), "MaximumConcurrency"),
                )
            case "AWS::Scheduler::Schedule":
                yield Expected(
                    kind=Kind.SCHEDULE,
                    logical_id=logical_id,
                    physical_id=physical_ids.get(logical_id),
                    group=properties.get("GroupName", _DEFAULT_GROUP),
                    function=function(properties["Target"]["Arn"]),
                    detail=_event_detail(properties["Target"].get("Input")),
                    enabled=properties.get("State", "ENABLED") == "ENABLED",
                    settings=_texts(properties, "ScheduleExpression"),
                )


def _logical_id(reference: Any) -> str:
    """The resource that `Ref` or `Fn::GetAtt` names."""
    if not isinstance(reference, Mapping):
        return str(reference)
    named = reference.get("Ref") or reference.get("Fn::GetAtt", [""])
    return str(named if isinstance(named, str) else named[0])


def _texts(properties: Mapping[str, Any], *names: str) -> dict[str, str]:
    return {name: str(properties[name]) for name in names if name in properties}


def _event_detail(event: Any) -> str:
    decoded = json.loads(event) if isinstance(event, str) else {}
    if TICK_TYPE in decoded:
        return str(decoded[TICK_TYPE])
    return f"part {decoded[WAKE_PART]}" if WAKE_PART in decoded else ""

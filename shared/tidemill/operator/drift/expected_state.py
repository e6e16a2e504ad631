"""The state in which a stack's template puts its tables, queues, alarms, event source mappings and schedules.

`expected` is the only place that computes it. A comparison of the deployed system with its template, and a repair,
ask here.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tidemill.aws.clients import translated
from tidemill.names import ADOPTED_TABLE, TICK_TYPE, WAKE_PART
from tidemill.operator.comparisons.catalogue import comparisons
from tidemill.operator.deployments.deployed_template import deployed_template
from tidemill.operator.deployments.template_values import TemplateValues, UnknownValueError
from tidemill.operator.drift.expected_resource import Expected, Kind

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

#: The group of a schedule that names none:
#: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-scheduler-schedule.html
_DEFAULT_GROUP: Final = "default"


def read(client: "CloudFormationClient", stack: str, functions: Mapping[str, str]) -> list[Expected]:
    """The expected states of a deployed stack. `functions` is its output of that name."""
    template = deployed_template(client, stack)
    with translated():
        stack_id = client.describe_stacks(StackName=stack)["Stacks"][0]["StackId"]
        pages = client.get_paginator("list_stack_resources").paginate(StackName=stack)
        physical_ids = {
            resource["LogicalResourceId"]: resource.get("PhysicalResourceId", "")
            for page in pages
            for resource in page["StackResourceSummaries"]
        }
    return list(expected(template, physical_ids=physical_ids, functions=functions, stack_id=stack_id))


def expected(
    template: Mapping[str, Any], *, physical_ids: Mapping[str, str], functions: Mapping[str, str], stack_id: str
) -> Iterator[Expected]:
    """Pure. `physical_ids` is by logical id. Ordered as `Kind` is."""
    adopted = _adopted(template)
    resources = {**template.get("Resources", {}), **adopted}
    physical_ids = {**physical_ids, **{id_: each["Properties"]["TableName"] for id_, each in adopted.items()}}
    values = TemplateValues(resources=resources, physical_ids=physical_ids, stack_id=stack_id)
    keys = {name: key for key, name in functions.items()}
    for comparison in comparisons().values():
        for logical_id, resource in sorted(resources.items()):
            if resource["Type"] in comparison.template_types:
                properties = resource.get("Properties", {})
                made = Expected(
                    kind=comparison.kind,
                    logical_id=logical_id,
                    physical_id=physical_ids.get(logical_id),
                    **_call(comparison.kind, properties, values, keys),
                )
                try:
                    settings = values.of(dict(comparison.settings(properties)))
                    targets = values.of(list(comparison.targets(properties)))
                except UnknownValueError as error:
                    yield replace(made, unreadable=str(error))
                    continue
                for target in targets or [made.physical_id]:
                    yield replace(made, physical_id=target, settings=settings)


def _adopted(template: Mapping[str, Any]) -> Mapping[str, Any]:
    """An existing table that the stack uses as its own. A template has it among its metadata only."""
    found = template.get("Metadata", {}).get(ADOPTED_TABLE)
    return {ADOPTED_TABLE: found} if found else {}


def _call(
    kind: Kind, properties: Mapping[str, Any], values: TemplateValues, keys: Mapping[str, str]
) -> Mapping[str, Any]:
    """The members of `Expected` about the function that a mapping or schedule calls."""
    if kind is Kind.MAPPING:
        return {"function": _function(properties["FunctionName"], values, keys)}
    if kind is Kind.SCHEDULE:
        return {
            "group": properties.get("GroupName", _DEFAULT_GROUP),
            "function": _function(properties["Target"]["Arn"], values, keys),
            "detail": _event_detail(properties["Target"].get("Input")),
        }
    return {}


def _function(reference: Any, values: TemplateValues, keys: Mapping[str, str]) -> str:
    logical_id = _logical_id(reference)
    if (alias := values.resources.get(logical_id, {})).get("Type") == "AWS::Lambda::Alias":
        logical_id = _logical_id(alias["Properties"]["FunctionName"])
    return keys.get(values.physical_ids.get(logical_id, ""), logical_id)


def _logical_id(reference: Any) -> str:
    """The resource that `Ref` or `Fn::GetAtt` names."""
    if not isinstance(reference, Mapping):
        return str(reference)
    named = reference.get("Ref") or reference.get("Fn::GetAtt", [""])
    return str(named if isinstance(named, str) else named[0])


def _event_detail(event: Any) -> str:
    decoded = json.loads(event) if isinstance(event, str) else {}
    if TICK_TYPE in decoded:
        return str(decoded[TICK_TYPE])
    return f"part {decoded[WAKE_PART]}" if WAKE_PART in decoded else ""

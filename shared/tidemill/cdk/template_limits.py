"""The documented limits of AWS that grow with an app, measured in synthesised templates before anything is deployed.

CloudFormation would find them in the middle of a deployment. `LimitValidation` refuses a synthesis that exceeds one,
and `make synth` prints the table. The length of a value that only a deployment knows is estimated from above. May not
import CDK.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Resources = Mapping[str, Mapping[str, Any]]

#: The longest parts of an ARN before the name: partition, service, region, account and their colons.
_ARN_PREFIX: Final = len("arn:aws:secretsmanager:ap-southeast-1:123456789012:")
#: CloudFormation names a resource `STACK-LOGICALID-SUFFIX`, and cuts the name to what its service takes.
_SUFFIX: Final = len("-ABCDEFGHIJKL")
_LONGEST_NAMES: Final = {"AWS::Lambda::Function": 64, "AWS::IAM::Role": 64, "AWS::SQS::Queue": 80}
_PSEUDO: Final = {
    "AWS::AccountId": "123456789012",
    "AWS::Region": "ap-southeast-1",
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackId": "x" * (_ARN_PREFIX + 6 + 128 + 37),
}
#: Stands for a value of another stack, and of any other function of CloudFormation.
_UNKNOWN: Final = "x" * 100


@dataclass(frozen=True, slots=True)
class Limit:
    text: str
    most: int
    page: str


@dataclass(frozen=True, slots=True)
class Measured:
    """The figure of one resource, by its logical id. `resource` is empty for a figure of the whole stack."""

    limit: Limit
    value: int
    resource: str = ""

    @property
    def exceeded(self) -> bool:
        return self.value > self.limit.most

    def __str__(self) -> str:
        of = f" of {self.resource}" if self.resource else ""
        return f"{self.limit.text}{of}: {self.value:,} of at most {self.limit.most:,} ({self.limit.page})"


_DOCS: Final = "https://docs.aws.amazon.com"
_CLOUDFORMATION: Final = f"{_DOCS}/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"
_CLOUDWATCH: Final = f"{_DOCS}/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html"
_DASHBOARD: Final = f"{_DOCS}/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html"
_COMPOSITE: Final = f"{_DOCS}/AmazonCloudWatch/latest/APIReference/API_PutCompositeAlarm.html"
RESOURCES: Final = Limit("resources of the stack", 500, _CLOUDFORMATION)
OUTPUTS: Final = Limit("outputs of the stack", 200, _CLOUDFORMATION)
TEMPLATE: Final = Limit("bytes of the template", 1_000_000, _CLOUDFORMATION)
POLICIES: Final = Limit(
    "characters of the inline policies", 10_240, f"{_DOCS}/IAM/latest/UserGuide/reference_iam-quotas.html"
)
VARIABLES: Final = Limit("bytes of the environment", 4_096, f"{_DOCS}/lambda/latest/dg/gettingstarted-limits.html")
FILTERS: Final = Limit("filter patterns", 5, f"{_DOCS}/lambda/latest/dg/invocation-eventfiltering.html")
ROUTES: Final = Limit("routes of the API", 300, f"{_DOCS}/apigateway/latest/developerguide/limits.html")
ALARM_METRICS: Final = Limit("metrics of the alarm", 10, _CLOUDWATCH)
ALARM_RULE: Final = Limit("characters of the alarm rule", 10_240, _COMPOSITE)
ALARM_CHILDREN: Final = Limit("alarms of the alarm rule", 100, _COMPOSITE)
WIDGETS: Final = Limit("widgets of the dashboard", 500, _DASHBOARD)
WIDGET_ALARMS: Final = Limit("alarms of a widget", 100, _DASHBOARD)
WIDGET_METRICS: Final = Limit("metrics of a widget", 500, _CLOUDWATCH)
DASHBOARD_METRICS: Final = Limit("metrics of the dashboard", 2_500, _CLOUDWATCH)


def measured(template: Mapping[str, Any], *, stack: str) -> Iterator[Measured]:
    """Each figure of one template. `stack` is the name of the stack."""
    resources: Resources = template.get("Resources", {})
    values = _Values(resources, stack)
    yield Measured(RESOURCES, len(resources))
    yield Measured(OUTPUTS, len(template.get("Outputs", {})))
    yield Measured(TEMPLATE, len(json.dumps(template)))
    for role, policies in _inline_policies(resources).items():
        yield Measured(POLICIES, sum(len(_compact(values.of(each))) for each in policies), role)
    for api, routes in _by_reference(resources, "AWS::ApiGatewayV2::Route", "ApiId").items():
        yield Measured(ROUTES, len(routes), api)
    for id_, resource in resources.items():
        if of_type := _FIGURES.get(resource["Type"]):
            for limit, value in of_type(values.of(resource.get("Properties", {}))):
                yield Measured(limit, value, id_)


def largest(templates: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Measured]]:
    """By limit, the stack and the resource that comes nearest. `templates` is by stack."""
    found: dict[Limit, tuple[str, Measured]] = {}
    for stack, template in templates.items():
        for each in measured(template, stack=stack):
            if each.limit not in found or each.value > found[each.limit][1].value:
                found[each.limit] = (stack, each)
    return list(found.values())


class _Values:
    """Values of a template, with a text of the longest length in the place of each that a deployment computes."""

    def __init__(self, resources: Resources, stack: str) -> None:
        self._resources = resources
        self._stack = stack

    def of(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.of(each) for each in value]
        if not isinstance(value, Mapping):
            return value
        if len(value) == 1:
            ((function, argument),) = value.items()
            if function == "Ref" or function.startswith("Fn::"):
                return self._computed(function, argument)
        return {key: self.of(member) for key, member in value.items()}

    def _computed(self, function: str, argument: Any) -> str:
        match function, argument:
            case "Ref", name:
                return _PSEUDO.get(name) or self._name(name)
            case "Fn::GetAtt", [name, *_]:
                return "x" * _ARN_PREFIX + self._name(name)
            case "Fn::Join", [separator, parts]:
                return str(separator).join(str(self.of(part)) for part in parts)
        return _UNKNOWN

    def _name(self, id_: str) -> str:
        """Return the name, or for a queue its URL, which is longer."""
        type_ = self._resources.get(id_, {}).get("Type", "")
        name = "x" * min(len(self._stack) + 1 + len(id_) + _SUFFIX, _LONGEST_NAMES.get(type_, 255))
        return "https://sqs.ap-southeast-1.amazonaws.com/123456789012/" + name if type_ == "AWS::SQS::Queue" else name


def _compact(value: Any) -> str:
    """IAM does not count white space."""
    return json.dumps(value, separators=(",", ":"))


def _inline_policies(resources: Resources) -> Mapping[str, list[Any]]:
    """The documents of each role, by its logical id."""
    found: dict[str, list[Any]] = {}
    for id_, resource in resources.items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::IAM::Role":
            found.setdefault(id_, []).extend(each["PolicyDocument"] for each in properties.get("Policies", ()))
        if resource["Type"] == "AWS::IAM::Policy":
            for role in properties.get("Roles", ()):
                found.setdefault(role["Ref"], []).append(properties["PolicyDocument"])
    return found


def _by_reference(resources: Resources, type_: str, name: str) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for id_, resource in resources.items():
        if resource["Type"] == type_:
            found.setdefault(str(resource["Properties"][name].get("Ref")), []).append(id_)
    return found


def _of_function(properties: Mapping[str, Any]) -> Iterator[tuple[Limit, int]]:
    variables = properties.get("Environment", {}).get("Variables", {})
    yield VARIABLES, sum(len(name) + len(str(value)) for name, value in variables.items())


def _of_mapping(properties: Mapping[str, Any]) -> Iterator[tuple[Limit, int]]:
    yield FILTERS, len(properties.get("FilterCriteria", {}).get("Filters", ()))


def _of_alarm(properties: Mapping[str, Any]) -> Iterator[tuple[Limit, int]]:
    yield ALARM_METRICS, sum("MetricStat" in each for each in properties.get("Metrics", ())) or 1


def _of_composite(properties: Mapping[str, Any]) -> Iterator[tuple[Limit, int]]:
    rule = str(properties["AlarmRule"])
    yield ALARM_RULE, len(rule)
    yield ALARM_CHILDREN, sum(rule.count(f"{state}(") for state in ("ALARM", "OK", "INSUFFICIENT_DATA"))


def _of_dashboard(properties: Mapping[str, Any]) -> Iterator[tuple[Limit, int]]:
    widgets = [each.get("properties", {}) for each in json.loads(str(properties["DashboardBody"]))["widgets"]]
    metrics = [_metrics(each) for each in widgets]
    yield WIDGETS, len(widgets)
    yield WIDGET_ALARMS, max((len(each.get("alarms", ())) for each in widgets), default=0)
    yield WIDGET_METRICS, max(metrics, default=0)
    yield DASHBOARD_METRICS, sum(metrics)


def _metrics(widget: Mapping[str, Any]) -> int:
    """A metric is a list of texts, and an expression an object in a list."""
    return sum(isinstance(each[0], str) for each in widget.get("metrics", ()))


_Figures = Callable[[Mapping[str, Any]], Iterable[tuple[Limit, int]]]
_FIGURES: Final[Mapping[str, _Figures]] = {
    "AWS::Lambda::Function": _of_function,
    "AWS::Lambda::EventSourceMapping": _of_mapping,
    "AWS::CloudWatch::Alarm": _of_alarm,
    "AWS::CloudWatch::CompositeAlarm": _of_composite,
    "AWS::CloudWatch::Dashboard": _of_dashboard,
}

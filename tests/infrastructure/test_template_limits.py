"""No template exceeds a documented limit of AWS, and one that does is refused with the number."""

import json
from typing import Any

import pytest
from aws_cdk import App, CfnResource, Stack, Validations

from tidemill.cdk import template_limits as limits
from tidemill.cdk.limit_validation import LimitValidation
from tidemill.cdk.template_limits import Limit, measured


def _dashboard(*widgets: dict[str, Any]) -> dict[str, Any]:
    return {"DashboardBody": json.dumps({"widgets": [{"properties": each} for each in widgets]})}


#: By limit: a resource that is one above it.
EXCEEDED: dict[Limit, tuple[str, dict[str, Any]]] = {
    limits.POLICIES: (
        "AWS::IAM::Policy",
        {"Roles": [{"Ref": "Role"}], "PolicyDocument": {"x": "y" * (10_241 - len('{"x":""}'))}},
    ),
    limits.VARIABLES: ("AWS::Lambda::Function", {"Environment": {"Variables": {"NAME": "x" * 4_093}}}),
    limits.FILTERS: ("AWS::Lambda::EventSourceMapping", {"FilterCriteria": {"Filters": [{}] * 6}}),
    limits.ALARM_METRICS: ("AWS::CloudWatch::Alarm", {"Metrics": [{"MetricStat": {}}] * 11}),
    limits.ALARM_RULE: ("AWS::CloudWatch::CompositeAlarm", {"AlarmRule": "x" * 10_241}),
    limits.ALARM_CHILDREN: ("AWS::CloudWatch::CompositeAlarm", {"AlarmRule": 'ALARM("a") OR ' * 101}),
    limits.WIDGETS: ("AWS::CloudWatch::Dashboard", _dashboard(*[{}] * 501)),
    limits.WIDGET_ALARMS: ("AWS::CloudWatch::Dashboard", _dashboard({"alarms": ["a"] * 101})),
    limits.WIDGET_METRICS: ("AWS::CloudWatch::Dashboard", _dashboard({"metrics": [["A", "b"]] * 501})),
    limits.DASHBOARD_METRICS: ("AWS::CloudWatch::Dashboard", _dashboard(*[{"metrics": [["A", "b"]] * 417}] * 6)),
}


@pytest.mark.parametrize("limit", EXCEEDED, ids=lambda limit: limit.text)
def test_a_resource_above_a_limit_is_found(limit: Limit) -> None:
    type_, properties = EXCEEDED[limit]
    template = {"Resources": {"Above": {"Type": type_, "Properties": properties}}}
    texts = {each.limit: str(each) for each in measured(template, stack="Stack") if each.exceeded}
    assert f"of at most {limit.most:,}" in texts[limit]


def test_the_figures_of_a_stack_count_its_resources_routes_outputs_and_bytes() -> None:
    route = {"Type": "AWS::ApiGatewayV2::Route", "Properties": {"ApiId": {"Ref": "Api"}}}
    template = {
        "Resources": {f"Route{number}": route for number in range(501)},
        "Outputs": {f"Output{number}": {"Value": "x" * 5_000} for number in range(201)},
    }
    exceeded = {each.limit for each in measured(template, stack="Stack") if each.exceeded}
    assert exceeded == {limits.RESOURCES, limits.OUTPUTS, limits.TEMPLATE, limits.ROUTES}


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ({"Ref": "AWS::AccountId"}, 12),
        ({"Fn::Join": ["", ["arn:", {"Ref": "AWS::Region"}, ":x"]]}, len("arn:ap-southeast-1:x")),
        # `STACK-LOGICALID-SUFFIX`, and what each service cuts it to.
        ({"Ref": "Topic"}, len("Stack-Topic-ABCDEFGHIJKL")),
        ({"Ref": "F" * 100}, 64),
        ({"Fn::GetAtt": ["F" * 100, "Arn"]}, 64 + len("arn:aws:secretsmanager:ap-southeast-1:123456789012:")),
        ({"Fn::ImportValue": "Other"}, 100),
    ],
)
def test_a_value_that_a_deployment_computes_is_estimated_from_above(value: Any, length: int) -> None:
    template = {
        "Resources": {
            "F" * 100: {"Type": "AWS::Lambda::Function", "Properties": {}},
            "Own": {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": {"NAME": value}}}},
        }
    }
    (found,) = (each for each in measured(template, stack="Stack") if each.resource == "Own")
    assert found.value == len("NAME") + length


def test_a_synthesis_above_a_limit_fails_with_the_number() -> None:
    app = App(analytics_reporting=False)
    stack = Stack(app, "Stack")
    type_, properties = EXCEEDED[limits.VARIABLES]
    CfnResource(stack, "Above", type=type_, properties=properties)
    Validations.of(app).add_plugins(LimitValidation())
    with pytest.raises(RuntimeError, match="bytes of the environment of Above: 4,097 of at most 4,096"):
        app.synth()

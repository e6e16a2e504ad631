"""What `tidemill status` expects of the deployed app, from the template of the real one."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from aws_cdk import Stack
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns

from tests.infrastructure.conftest import Synthesised
from tests.infrastructure.test_event_sources import Synthesis
from tests.integration.cli.compared_stack import DRIFTS
from tidemill.cdk.events.sns_source import SnsSource
from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.names import Env
from tidemill.operator.drift.expected_resource import Expected, Kind, LatestStream
from tidemill.operator.drift.expected_state import expected, read

STACK_ID: Final = "arn:aws:cloudformation:eu-west-1:123456789012:stack/Tidemill-dev-Pipeline/guid"


@pytest.fixture(scope="module")
def states(dev: Synthesised) -> list[Expected]:
    ids = {logical_id: f"physical-{logical_id}" for logical_id in dev.pipeline["Resources"]}
    handlers = {
        f"physical-{logical_id}": properties["Handler"].split(".")[-2]
        for logical_id, properties in dev.of_type("AWS::Lambda::Function")
    }
    functions = {f"{verb}-{name}" if verb == "work" else verb: name for name, verb in handlers.items()}
    # The name of a queue is the end of its URL, and the name of an alarm is its id.
    return list(expected(dev.pipeline, physical_ids=ids, functions=functions, stack_id=STACK_ID))


def test_each_mapping_is_enabled_and_named_after_its_function(states: list[Expected]) -> None:
    mappings = [state for state in states if state.kind is Kind.MAPPING]
    assert Counter(state.function.partition("-")[0] for state in mappings) == {"publish": 1, "work": 3}
    assert all(state.enabled and state.physical_id for state in mappings)
    assert {state.settings.get("ScalingConfig", {}).get("MaximumConcurrency") for state in mappings} == {5, 2, None}


def test_each_schedule_is_enabled_and_distinct(states: list[Expected]) -> None:
    schedules = [state for state in states if state.kind is Kind.SCHEDULE]
    labels = {state.label for state in schedules}
    assert len(labels) == len(schedules)
    assert {"tick clicks.rollup", "reconcile"} <= labels
    assert {state.function for state in schedules} == {"wake", "tick", "reconcile", "canary"}
    assert all(state.enabled and state.settings["ScheduleExpression"] for state in schedules)


def test_reconcile_may_read_each_of_them_and_knows_its_stack(dev: Synthesised, states: list[Expected]) -> None:
    functions = [each for _, each in dev.of_type("AWS::Lambda::Function")]
    (reconcile,) = (each for each in functions if Env.STACK in each["Environment"]["Variables"])
    assert reconcile["Handler"] == "tidemill.entrypoints.reconcile.handle"
    assert reconcile["Environment"]["Variables"][Env.STACK] == {"Ref": "AWS::StackId"}
    policies = json.dumps([policy for _, policy in dev.of_type("AWS::IAM::Policy")])
    for state in states:
        if state.kind not in {Kind.MAPPING, Kind.SCHEDULE}:
            continue
        action = "lambda:GetEventSourceMapping" if state.kind is Kind.MAPPING else "scheduler:GetSchedule"
        assert action in policies
        assert (":event-source-mapping:*" if state.kind is Kind.MAPPING else ":schedule/default/*") in policies


class _CloudFormation:
    """Notes the resource with which AWS authorises each call: the id of a stack, or `stack/NAME/*` if it is named."""

    def __init__(self) -> None:
        self.authorised: dict[str, str] = {}

    def _note(self, action: str, stack: str) -> None:
        named = stack if stack.startswith("arn:") else STACK_ID.replace(STACK_ID.split("/", 1)[1], f"{stack}/*")
        self.authorised[f"cloudformation:{action}"] = named

    def get_template(self, *, StackName: str) -> Any:  # noqa: N803 - the name of AWS
        self._note("GetTemplate", StackName)
        return {"TemplateBody": {}}

    def describe_stacks(self, *, StackName: str) -> Any:  # noqa: N803 - the name of AWS
        self._note("DescribeStacks", StackName)
        return {"Stacks": [{"StackId": STACK_ID}]}

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self, *, StackName: str) -> Any:  # noqa: N803 - the name of AWS
        self._note("ListStackResources", StackName)
        return []


def test_reconcile_may_make_each_call_about_its_own_stack(dev: Synthesised) -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/control-access-with-iam.html."""
    client: Any = _CloudFormation()
    (variable,) = {
        json.dumps(each["Environment"]["Variables"][Env.STACK])
        for _, each in dev.of_type("AWS::Lambda::Function")
        if Env.STACK in each["Environment"]["Variables"]
    }
    ids = {'{"Ref": "AWS::StackId"}': STACK_ID}
    read(client, ids.get(variable, "Tidemill-dev-Pipeline"), {})

    statements = [
        statement
        for _, policy in dev.of_type("AWS::IAM::Policy")
        for statement in policy["PolicyDocument"]["Statement"]
        if "cloudformation:" in json.dumps(statement["Action"])
    ]
    allowed = {action: ids[json.dumps(each["Resource"])] for each in statements for action in each["Action"]}
    assert client.authorised == allowed


def test_reconcile_may_compare_what_an_app_adds_to_the_stack_of_the_pipeline(tmp_path: Path) -> None:
    """Without the rights it reports a drift that no repair can end."""
    synthesis = Synthesis(tmp_path)
    stack = Stack.of(synthesis.pipeline)
    config = synthesis.functions.config
    functions = FunctionFactory(stack, config=config, asset=synthesis.functions.code.path)
    topic = sns.Topic(stack, "Topic")
    SnsSource(functions, "topic", topic=topic, pipeline=synthesis.pipeline, tenant="shop")
    target = scheduler.CfnSchedule.TargetProperty(arn=topic.topic_arn, role_arn=topic.topic_arn)
    window = scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF")
    scheduler.CfnSchedule(
        stack, "Own", schedule_expression="rate(1 day)", flexible_time_window=window, target=target, group_name="mine"
    )

    resources = synthesis.resources("Pipeline")
    (policy,) = (each for id_, each in resources.items() if id_.startswith("ReconcileComparison"))
    allowed = json.dumps(policy)
    expected_names = (":event-source-mapping:*", ":schedule/default/*", ":schedule/mine/", '{"Ref": "Own"}')
    assert [name for name in expected_names if name not in allowed] == []


def test_many_sources_in_the_stack_of_the_pipeline_stay_within_the_limits_of_aws(tmp_path: Path) -> None:
    """`LimitValidation` fails the synthesis otherwise."""
    declared = '@event_source("topic-{0}", publishes="fact.happened")\ndef topic_{0}(record: SnsRecord) -> dict: ...\n'
    imports = (
        "from pydantic import BaseModel\nfrom tidemill import SnsRecord, event_source, event_type\n"
        "class Fact(BaseModel): ...\nfact = event_type('fact.happened', data=Fact)\n"
    )
    synthesis = Synthesis(tmp_path, imports + "".join(declared.format(number) for number in range(13)))
    stack = Stack.of(synthesis.pipeline)
    functions = FunctionFactory(stack, config=synthesis.functions.config, asset=synthesis.functions.code.path)
    for number in range(13):
        topic = sns.Topic(stack, f"Topic{number}")
        SnsSource(functions, f"topic-{number}", topic=topic, pipeline=synthesis.pipeline, tenant="shop")
    assert synthesis.resources("Pipeline")


def test_many_periodic_types_need_no_more_room_in_a_policy(tmp_path: Path) -> None:
    """Measured, they are also more than the alarms of a widget: `LimitValidation` fails the synthesis otherwise."""
    declared = '@job_type("report.number-{0}", payload=P, schedule="rate(1 hour)")\ndef report_{0}(payload, run): ...\n'

    def policy(types: int) -> str:
        (folder := tmp_path / str(types)).mkdir()
        code = "from pydantic import BaseModel\nfrom tidemill import job_type\nclass P(BaseModel): ...\n" + "".join(
            declared.format(number) for number in range(types)
        )
        resources = Synthesis(folder, code, metrics_by_type=100).resources("Pipeline")
        assert sum(each["Type"] == "AWS::Scheduler::Schedule" for each in resources.values()) >= types
        (found,) = (each for id_, each in resources.items() if id_.startswith("ReconcileComparison"))
        return json.dumps(found)

    assert policy(1) == policy(70)


def test_every_value_of_the_template_is_understood(states: list[Expected]) -> None:
    assert [state for state in states if state.unreadable or not state.physical_id] == []
    (publish,) = (state for state in states if state.kind is Kind.MAPPING and state.function == "publish")
    assert isinstance(publish.settings["EventSourceArn"], LatestStream)
    text = json.dumps([dict(state.settings) for state in states], default=str)
    assert "Fn::" not in text
    assert '"Ref"' not in text


def test_every_setting_that_is_compared_is_drifted_and_restored_in_a_test(states: list[Expected]) -> None:
    """So a new setting needs a test of its repair."""
    compared = {(state.kind, name) for state in states for name in state.settings}
    # Only `prod` protects its tables.
    assert set(DRIFTS) == compared | {(Kind.TABLE, "DeletionProtection")}


def test_every_queue_table_and_alarm_is_compared(dev: Synthesised, states: list[Expected]) -> None:
    compared = Counter(state.kind for state in states)
    types = Counter(resource["Type"] for resource in dev.pipeline["Resources"].values())
    assert compared[Kind.QUEUE] == compared[Kind.POLICY] == types["AWS::SQS::Queue"]
    assert compared[Kind.TABLE] == types["AWS::DynamoDB::Table"]
    assert compared[Kind.ALARM] == types["AWS::CloudWatch::Alarm"] + types["AWS::CloudWatch::CompositeAlarm"]


def test_a_template_may_declare_a_resource_as_disabled() -> None:
    resources = {
        "Mapping": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {"FunctionName": {"Ref": "Work"}, "Enabled": False},
        },
        "Schedule": {
            "Type": "AWS::Scheduler::Schedule",
            "Properties": {"State": "DISABLED", "Target": {"Arn": {"Fn::GetAtt": ["Wake", "Arn"]}}},
        },
    }
    resources["Wake"] = {"Type": "AWS::Lambda::Function"}
    found = list(expected({"Resources": resources}, physical_ids={"Wake": "f"}, functions={}, stack_id=STACK_ID))
    assert [(state.function, state.enabled, state.physical_id) for state in found] == [
        ("Work", False, None),
        ("Wake", False, None),
    ]


def test_a_value_that_is_not_understood_is_named_and_the_rest_is_compared() -> None:
    """An app may have resources of its own in the stack."""
    resources = {
        "Mine": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": {"Fn::ImportValue": "x"}}},
        "Yours": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 5}},
    }
    ids = {name: name for name in resources}
    mine, yours = expected({"Resources": resources}, physical_ids=ids, functions={}, stack_id=STACK_ID)
    assert mine.unreadable == "the template has a value of Fn::ImportValue"
    assert yours.settings == {"VisibilityTimeout": 5}

"""What `tidemill status` expects of the deployed app, from the template of the real one."""

import json
from collections import Counter

import pytest

from tests.infrastructure.conftest import Synthesised
from tidemill.names import Env
from tidemill.operator.expected_state import Expected, Kind, expected


@pytest.fixture(scope="module")
def states(dev: Synthesised) -> list[Expected]:
    ids = {logical_id: f"physical-{logical_id}" for logical_id, _ in dev.everything()}
    handlers = {
        f"physical-{logical_id}": properties["Handler"].split(".")[-2]
        for logical_id, properties in dev.of_type("AWS::Lambda::Function")
    }
    functions = {f"{verb}-{name}" if verb == "work" else verb: name for name, verb in handlers.items()}
    template = {
        "Resources": {
            logical_id: {"Type": type_, "Properties": properties}
            for type_ in ("AWS::Lambda::EventSourceMapping", "AWS::Scheduler::Schedule", "AWS::Lambda::Alias")
            for logical_id, properties in dev.of_type(type_)
        }
    }
    return list(expected(template, physical_ids=ids, functions=functions))


def test_each_mapping_is_enabled_and_named_after_its_function(states: list[Expected]) -> None:
    mappings = [state for state in states if state.kind is Kind.MAPPING]
    assert Counter(state.function.partition("-")[0] for state in mappings) == {"publish": 1, "work": 3}
    assert all(state.enabled and state.physical_id for state in mappings)
    assert {state.settings.get("MaximumConcurrency") for state in mappings} == {"5", "2", None}


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
    assert reconcile["Environment"]["Variables"][Env.STACK] == f"{dev.config.name}-Pipeline"
    policies = json.dumps([policy for _, policy in dev.of_type("AWS::IAM::Policy")])
    for state in states:
        action = "lambda:GetEventSourceMapping" if state.kind is Kind.MAPPING else "scheduler:GetSchedule"
        assert action in policies
        assert f'{{"Ref": "{state.logical_id}"}}' in policies


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
    found = list(expected({"Resources": resources}, physical_ids={}, functions={}))
    assert [(state.function, state.enabled, state.physical_id) for state in found] == [
        ("Work", False, None),
        ("Wake", False, None),
    ]

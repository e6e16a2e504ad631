"""`gradual_deployment`: CodeDeploy shifts the calls of functions step by step, and back on an alarm."""

import json
from typing import Any

import pytest
from cdk_nag import AwsSolutionsChecks

from stacks.stages import STAGES
from tests.infrastructure.conftest import Synthesise, Synthesised, verb_of
from tidemill import names

#: Functions with enough calls for a tenth of them to show a fault.
SHIFTED = {"submit", "query", "control", "work", "publish", "shorten", "redirect", "stats"}


@pytest.fixture(scope="module")
def gradual(synthesise: Synthesise) -> Synthesised:
    return synthesise(stage="dev", gradual_deployment="on")


def _groups(app: Synthesised) -> dict[str, Any]:
    return dict(app.of_type("AWS::CodeDeploy::DeploymentGroup"))


def _shifted(app: Synthesised) -> dict[str, list[Any]]:
    """By the verb of the function: the groups that shift its aliases."""
    functions = dict(app.of_type("AWS::Lambda::Function"))
    found: dict[str, list[Any]] = {}
    for _, alias in app.everything():
        if alias["Type"] == "AWS::Lambda::Alias" and "UpdatePolicy" in alias:
            verb = verb_of(functions[alias["Properties"]["FunctionName"]["Ref"]])
            policy = alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
            group = _groups(app)[policy["DeploymentGroupName"]["Ref"]]
            assert group["ApplicationName"] == policy["ApplicationName"]
            found.setdefault(verb, []).append(group)
    return found


def test_by_default_a_deployment_moves_every_alias_at_once(dev: Synthesised) -> None:
    assert (_groups(dev), _shifted(dev)) == ({}, {})


def test_the_functions_with_many_calls_are_shifted(gradual: Synthesised) -> None:
    shifted = _shifted(gradual)
    assert shifted.keys() == SHIFTED
    assert len(shifted["work"]) == len(names.Lane)
    assert sum(map(len, shifted.values())) == len(_groups(gradual))


def test_a_shift_takes_ten_minutes_and_ends_with_an_alarm(gradual: Synthesised) -> None:
    alarms = dict(gradual.of_type("AWS::CloudWatch::Alarm"))
    for groups in _shifted(gradual).values():
        for group in groups:
            assert group["DeploymentConfigName"] == "CodeDeployDefault.LambdaCanary10Percent10Minutes"
            assert group["DeploymentStyle"] == {
                "DeploymentType": "BLUE_GREEN",
                "DeploymentOption": "WITH_TRAFFIC_CONTROL",
            }
            assert group["AlarmConfiguration"]["Enabled"]
            assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
            read = [json.dumps(alarm["Name"]) for alarm in group["AlarmConfiguration"]["Alarms"]]
            # CodeDeploy takes at most ten.
            assert len(read) == 9
            for name in read:
                assert any(id_ in name for id_ in alarms), name
            # It is on in a healthy system, so no deployment would succeed.
            assert not any("Established" in name for name in read)


def test_a_type_of_any_lane_whose_jobs_die_ends_the_shift(dev: Synthesised, gradual: Synthesised) -> None:
    """An alarm of critical alone would let a broken type of another lane through."""
    alarms = {
        id_: {
            dimension["Value"]
            for metric in properties.get("Metrics", [])
            for dimension in metric.get("MetricStat", {}).get("Metric", {}).get("Dimensions", [])
            if dimension["Name"] == "lane"
        }
        for id_, properties in gradual.of_type("AWS::CloudWatch::Alarm")
        if "FailedJobs" in id_
    }
    assert sorted(lane for lanes in alarms.values() for lane in lanes) == sorted(names.Lane)
    for group in _groups(gradual).values():
        read = json.dumps(group["AlarmConfiguration"]["Alarms"])
        assert all(id_ in read for id_ in alarms)
    assert sum("FailedJobs" in id_ for id_, _ in dev.of_type("AWS::CloudWatch::Alarm")) == 1


def test_codedeploy_may_change_these_aliases_and_no_others(gradual: Synthesised) -> None:
    functions = dict(gradual.of_type("AWS::Lambda::Function"))
    roles = {group["ServiceRoleArn"]["Fn::GetAtt"][0] for group in _groups(gradual).values()}
    assert len(roles) == 2
    allowed = set()
    for _, policy in gradual.of_type("AWS::IAM::Policy"):
        if policy["Roles"][0]["Ref"] in roles:
            change, read = policy["PolicyDocument"]["Statement"]
            assert set(change["Action"]) == {
                "lambda:GetAlias",
                "lambda:GetProvisionedConcurrencyConfig",
                "lambda:UpdateAlias",
            }
            assert (read["Action"], read["Resource"]) == ("cloudwatch:DescribeAlarms", "*")
            assert "*" not in json.dumps(change)
            allowed |= {
                verb_of(functions[each["Fn::GetAtt"][0]]) for each in change["Resource"] if "Fn::GetAtt" in each
            }
    assert allowed == SHIFTED


def test_its_resources_have_the_tags_and_pass_the_rule_pack(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", gradual_deployment="on", plugins=AwsSolutionsChecks)
    for type_ in ("AWS::CodeDeploy::Application", "AWS::CodeDeploy::DeploymentGroup"):
        found = list(app.of_type(type_))
        assert found
        for _, properties in found:
            assert {tag["Key"] for tag in properties["Tags"]} == {names.Tag.APP, names.Tag.STAGE}


def test_without_canaries_their_alarms_are_left_out(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", gradual_deployment="on", canary="off")
    assert {len(group["AlarmConfiguration"]["Alarms"]) for group in _groups(app).values()} == {6}


def test_the_local_stage_has_none() -> None:
    """The embedded AWS has no CodeDeploy, and would refuse the whole template."""
    assert not STAGES["local"]().gradual_deployment

"""Every function has versions that outlive a deployment and an alias, and everything that calls it calls the alias."""

import json
from typing import Any

from tests.infrastructure.conftest import Resource, Synthesise, Synthesised, verb_of
from tidemill.names import LIVE_ALIAS


def _all(app: Synthesised, type_: str) -> dict[str, dict[str, Any]]:
    return {id_: resource for id_, resource in app.everything() if resource["Type"] == type_}


def _versions(app: Synthesised) -> dict[str, str]:
    """The logical id of the version of each function, by the function's."""
    return {version["FunctionName"]["Ref"]: logical_id for logical_id, version in app.of_type("AWS::Lambda::Version")}


def test_the_alias_of_every_function_points_to_its_version(dev: Synthesised) -> None:
    aliases = [alias for _, alias in dev.of_type("AWS::Lambda::Alias")]
    assert {alias["Name"] for alias in aliases} == {LIVE_ALIAS}
    pointed = {alias["FunctionName"]["Ref"]: alias["FunctionVersion"]["Fn::GetAtt"] for alias in aliases}
    assert pointed.keys() == dict(dev.of_type("AWS::Lambda::Function")).keys()
    assert pointed == {function: [version, "Version"] for function, version in _versions(dev).items()}


def test_a_version_outlives_its_deployment_unless_that_fails(dev: Synthesised) -> None:
    for version in _all(dev, "AWS::Lambda::Version").values():
        assert version["UpdateReplacePolicy"] == "Retain"
        assert version["DeletionPolicy"] == "RetainExceptOnCreate"


def test_everything_that_calls_a_function_calls_its_alias(dev: Synthesised) -> None:
    called = {
        *(dev.behind(mapping["FunctionName"]) for _, mapping in dev.of_type("AWS::Lambda::EventSourceMapping")),
        *(dev.behind(schedule["Target"]["Arn"]) for _, schedule in dev.of_type("AWS::Scheduler::Schedule")),
        *(dev.behind(each["IntegrationUri"]) for _, each in dev.of_type("AWS::ApiGatewayV2::Integration")),
        *(dev.behind(each["Endpoint"]) for _, each in dev.of_type("AWS::SNS::Subscription")),
    }
    assert called == dict(dev.of_type("AWS::Lambda::Function")).keys()


def test_only_aliases_may_be_called(dev: Synthesised) -> None:
    permissions = [permission["FunctionName"] for _, permission in dev.of_type("AWS::Lambda::Permission")]
    assert {verb_of(_function(dev, dev.behind(alias))) for alias in permissions} >= {"submit", "reconcile", "redirect"}
    for _, policy in dev.of_type("AWS::IAM::Policy"):
        for statement in policy["PolicyDocument"]["Statement"]:
            if statement["Action"] == "lambda:InvokeFunction":
                assert dev.behind(statement["Resource"])


def test_asynchronous_calls_of_the_alias_keep_their_retries(dev: Synthesised) -> None:
    aliases = _all(dev, "AWS::Lambda::Alias")
    for config in _all(dev, "AWS::Lambda::EventInvokeConfig").values():
        assert config["Properties"]["Qualifier"] == LIVE_ALIAS
        # Lambda refuses the settings of an alias that does not exist yet.
        assert [aliases[id_]["Properties"]["FunctionName"] for id_ in config["DependsOn"] if id_ in aliases] == [
            config["Properties"]["FunctionName"]
        ]


def test_a_function_whose_settings_change_has_a_new_version(synthesise: Synthesise, dev: Synthesised) -> None:
    changed = synthesise(stage="dev", log_exception_text="off")
    assert set(_versions(changed).values()).isdisjoint(_versions(dev).values())


def test_a_change_that_lambda_does_not_publish_makes_no_version(synthesise: Synthesise, dev: Synthesised) -> None:
    """A change of tags, or of the reserved concurrency. CloudFormation would fail if Lambda publishes no version."""
    changed = synthesise(stage="dev", tags="team=mill", open_concurrency="7")
    assert json.dumps(dict(changed.of_type("AWS::Lambda::Function"))) != json.dumps(
        dict(dev.of_type("AWS::Lambda::Function"))
    )
    assert _versions(changed) == _versions(dev)


def test_with_snap_start_each_function_starts_from_a_snapshot_of_its_version(
    synthesise: Synthesise, dev: Synthesised
) -> None:
    snapped = synthesise(stage="dev", snap_start="on")

    for _, function in snapped.of_type("AWS::Lambda::Function"):
        assert function["SnapStart"] == {"ApplyOn": "PublishedVersions"}
        # It excludes these: https://docs.aws.amazon.com/lambda/latest/dg/snapstart.html
        assert not {"FileSystemConfigs", "ImageUri"} & function.keys()
        assert function.get("EphemeralStorage", {"Size": 512})["Size"] <= 512
    for _, alias in snapped.of_type("AWS::Lambda::Alias"):
        assert "ProvisionedConcurrencyConfig" not in alias
    for _, function in dev.of_type("AWS::Lambda::Function"):
        assert "SnapStart" not in function


def test_with_snap_start_everything_that_calls_a_function_still_calls_its_alias(synthesise: Synthesise) -> None:
    """`$LATEST` has no snapshot."""
    test_the_alias_of_every_function_points_to_its_version(snapped := synthesise(stage="dev", snap_start="on"))
    test_everything_that_calls_a_function_calls_its_alias(snapped)


def _function(app: Synthesised, logical_id: str) -> Resource:
    return dict(app.of_type("AWS::Lambda::Function"))[logical_id]

"""AppConfig as the source of the runtime configuration, only where the stage asks for it."""

import json

import pytest

from tests.infrastructure.conftest import Synthesise, Synthesised, verb_of
from tidemill.cdk.synth_errors import SettingError
from tidemill.names import Env, Output


@pytest.fixture
def asked(synthesise: Synthesise) -> Synthesised:
    return synthesise(stage="dev", configuration_source="appconfig")


def test_without_the_setting_nothing_names_appconfig(dev: Synthesised) -> None:
    assert "appconfig" not in json.dumps(dev.pipeline).lower()


def test_no_deployment_of_the_stack_writes_a_document_and_none_deletes_one(asked: Synthesised) -> None:
    mine = {
        each["Type"].rpartition(":")[2]: each
        for _, each in asked.everything()
        if each["Type"].startswith("AWS::AppConfig::")
    }
    assert mine.keys() == {"Application", "Environment", "ConfigurationProfile", "DeploymentStrategy"}
    assert {each["DeletionPolicy"] for each in mine.values()} == {"Retain"}
    strategy = mine["DeploymentStrategy"]["Properties"]
    assert (strategy["DeploymentDurationInMinutes"], strategy["FinalBakeTimeInMinutes"]) == (0, 0)
    (validator,) = mine["ConfigurationProfile"]["Properties"]["Validators"]
    assert json.loads(validator["Content"])["required"] == ["table", "version", "document"]


def test_the_functions_that_read_the_configuration_may_read_the_copy(asked: Synthesised) -> None:
    readers = set()
    for _, function in asked.of_type("AWS::Lambda::Function"):
        role = function.get("Role", {}).get("Fn::GetAtt", [""])[0]
        policies = [each for _, each in asked.of_type("AWS::IAM::Policy") if {"Ref": role} in each["Roles"]]
        if "appconfig:GetLatestConfiguration" in json.dumps(policies):
            assert Env.APP_CONFIG in function["Environment"]["Variables"]
            readers.add(verb_of(function))
    assert readers == {"submit", "control", "publish", "work", "wake", "tick"}
    assert Output.APP_CONFIG in asked.pipeline["Outputs"]


def test_no_stack_of_an_application_keeps_the_stage_from_its_table_as_the_source(asked: Synthesised) -> None:
    """CloudFormation removes no export that another stack imports."""
    assert "Configuration" not in json.dumps(asked.shortener)
    assert Env.APP_CONFIG not in json.dumps(asked.shortener)


def test_another_source_is_refused(synthesise: Synthesise) -> None:
    with pytest.raises(SettingError, match="configuration_source"):
        synthesise(stage="dev", configuration_source="ssm")

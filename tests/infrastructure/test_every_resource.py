"""What holds for every resource: tagged, unnamed, recoverable, and clean by a public rule pack."""

import json
from typing import Any

import pytest
from cdk_nag import AwsSolutionsChecks

from tests.infrastructure.conftest import Resource, Synthesise, Synthesised
from tidemill import names

#: CloudFormation gives these no tags; each belongs to something that has them.
UNTAGGABLE = {
    "AWS::ApiGatewayV2::Integration",
    "AWS::ApiGatewayV2::Route",
    "AWS::IAM::Policy",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::Permission",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::Schedule",
}
#: These refer to a function by its name.
REFERRING = {"AWS::Lambda::EventInvokeConfig", "AWS::Lambda::EventSourceMapping", "AWS::Lambda::Permission"}
#: What holds something that cannot be made again.
KEPT = {"AWS::DynamoDB::Table", "AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::SecretsManager::Secret"}
#: Properties that make a name which an account can have only once.
NAMES = {
    "AlarmName",
    "BucketName",
    "DashboardName",
    "FunctionName",
    "LogGroupName",
    "QueueName",
    "RoleName",
    "TableName",
    "TopicName",
}


def _tags(resource: Resource) -> dict[str, str]:
    tags: Any = resource["Properties"].get("Tags", {})
    return tags if isinstance(tags, dict) else {tag["Key"]: tag["Value"] for tag in tags}


def test_everything_that_can_have_tags_has_ours(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", installation="blue", alarm_email="ops@example.com", tags="cost=42")
    expected = {names.Tag.APP: names.APP, names.Tag.STAGE: "dev-blue", "cost": "42"}
    for id_, resource in app.everything():
        if resource["Type"] not in UNTAGGABLE:
            assert _tags(resource) == expected, id_


def test_nothing_has_a_name_that_a_second_installation_would_want(dev: Synthesised) -> None:
    for id_, resource in dev.everything():
        if resource["Type"] in REFERRING:
            continue
        for name in NAMES & resource["Properties"].keys():
            # The one exception is a name made of the stack's own GUID.
            assert "AWS::StackId" in json.dumps(resource["Properties"][name]), f"{id_}.{name}"


def test_two_installations_have_stacks_and_metrics_of_their_own(synthesise: Synthesise) -> None:
    blue, green = (synthesise(stage="dev", installation=colour) for colour in ("blue", "green"))
    assert (blue.config.name, green.config.name) == ("Tidemill-dev-blue", "Tidemill-dev-green")
    (stage,) = {
        function["Environment"]["Variables"][names.Env.STAGE] for _, function in blue.of_type("AWS::Lambda::Function")
    }
    assert stage == "dev-blue"


def test_the_jobs_table_is_as_the_protocol_needs_it(dev: Synthesised) -> None:
    (table,) = (table for _, table in dev.of_type("AWS::DynamoDB::Table") if "StreamSpecification" in table)
    assert table["KeySchema"] == [{"AttributeName": names.JOB_KEY, "KeyType": "HASH"}]
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert table["TimeToLiveSpecification"] == {"AttributeName": names.TTL_ATTRIBUTE, "Enabled": True}
    assert {index["IndexName"]: _keys(index) for index in table["GlobalSecondaryIndexes"]} == {
        names.ATTENTION_INDEX: [names.ATTENTION_KEY, names.ATTENTION_SORT_KEY],
        names.LISTING_INDEX: [names.LISTING_KEY, names.LISTING_SORT_KEY],
    }
    assert all(index["Projection"] == {"ProjectionType": "KEYS_ONLY"} for index in table["GlobalSecondaryIndexes"])


def _keys(index: Resource) -> list[str]:
    return [key["AttributeName"] for key in index["KeySchema"]]


def test_without_a_listing_there_is_no_index_for_it_and_no_key(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", listing="off")
    (table,) = (table for _, table in app.of_type("AWS::DynamoDB::Table") if "StreamSpecification" in table)
    assert [index["IndexName"] for index in table["GlobalSecondaryIndexes"]] == [names.ATTENTION_INDEX]
    assert names.LISTING_KEY not in {attribute["AttributeName"] for attribute in table["AttributeDefinitions"]}
    assert len(list(app.of_type("AWS::SecretsManager::Secret"))) == 1


def test_every_table_can_be_brought_back_and_costs_nothing_idle(dev: Synthesised) -> None:
    tables = list(dev.of_type("AWS::DynamoDB::Table"))
    assert len(tables) == 3
    for _, table in tables:
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_production_data_outlives_a_mistake(prod: Synthesised) -> None:
    for id_, resource in prod.everything():
        if resource["Type"] == "AWS::DynamoDB::Table":
            assert resource["Properties"]["DeletionProtectionEnabled"] is True, id_
        if resource["Type"] in KEPT:
            assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain", id_


@pytest.mark.parametrize(
    ("policy", "ends"), [("Bound", ":policy/Bound"), ("arn:aws:iam::123456789012:policy/Bound", ":policy/Bound")]
)
def test_a_permissions_boundary_bounds_every_role(synthesise: Synthesise, policy: str, ends: str) -> None:
    roles = list(synthesise(stage="dev", permissions_boundary=policy).of_type("AWS::IAM::Role"))
    assert roles
    for _, role in roles:
        assert json.dumps(role["PermissionsBoundary"]).rstrip('"]}').endswith(ends)


def test_the_bootstrap_qualifier_is_a_setting(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", qualifier="mill01")
    for template in (app.pipeline, app.shortener):
        assert template["Parameters"]["BootstrapVersion"]["Default"] == "/cdk-bootstrap/mill01/version"


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_the_rule_pack_finds_nothing_that_is_not_argued(synthesise: Synthesise, stage: str) -> None:
    synthesise(stage=stage, plugins=AwsSolutionsChecks)


def test_the_rule_pack_would_find_something(synthesise: Synthesise) -> None:
    with pytest.raises(RuntimeError, match="AwsSolutions-L1"):
        synthesise(stage="dev", python_version="3.11", plugins=AwsSolutionsChecks)

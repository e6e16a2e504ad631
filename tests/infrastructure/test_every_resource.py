"""Every resource is tagged, recoverable, without a fixed name, and accepted by a public rule pack."""

import json
from typing import Any

import pytest
from cdk_nag import AwsSolutionsChecks

from tests.infrastructure.conftest import Resource, Synthesise, Synthesised
from tidemill import names

TOKENS = {"jwt_issuer": "https://issuer.example", "jwt_audience": "jobs"}
#: Each stage, and each setting that adds resources, rights or variables.
SYNTHESES: list[dict[str, str]] = [
    {"stage": "dev"},
    {"stage": "prod"},
    {"stage": "prod", "tracing": "on"},
    {"stage": "prod", "archive": "parquet"},
    {"stage": "prod", "configuration_source": "appconfig"},
    {"stage": "prod", "gradual_deployment": "on"},
    {"stage": "prod", **TOKENS},
    {"stage": "prod", "permissions_boundary": "Bound"},
    {"stage": "prod", "qualifier": "mill01"},
    {"stage": "prod", "metrics_by_type": "100"},
]
#: CloudFormation cannot tag these types. Each belongs to a tagged resource.
UNTAGGABLE = {
    "AWS::ApiGatewayV2::Integration",
    "AWS::ApiGatewayV2::Route",
    "AWS::IAM::Policy",
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::Permission",
    "AWS::Lambda::Version",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::Schedule",
}
#: These types refer to a function by its name.
REFERRING = {
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::EventSourceMapping",
    "AWS::Lambda::Permission",
    "AWS::Lambda::Version",
}
#: These types hold data that cannot be created again.
KEPT = {"AWS::DynamoDB::Table", "AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::SecretsManager::Secret"}
#: Properties that set a name which must be unique in an account.
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


def test_every_taggable_resource_has_the_tags(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", installation="blue", alarm_email="ops@example.com", tags="cost=42")
    expected = {names.Tag.APP: names.APP, names.Tag.STAGE: "dev-blue", "cost": "42"}
    for id_, resource in app.everything():
        if resource["Type"] not in UNTAGGABLE:
            assert _tags(resource) == expected, id_


def test_a_second_installation_never_collides_with_a_name(dev: Synthesised) -> None:
    for id_, resource in dev.everything():
        if resource["Type"] in REFERRING:
            continue
        for name in NAMES & resource["Properties"].keys():
            # A name that contains the stack's own GUID is unique.
            assert "AWS::StackId" in json.dumps(resource["Properties"][name]), f"{id_}.{name}"


def test_two_installations_have_separate_stacks_and_metrics(synthesise: Synthesise) -> None:
    blue, green = (synthesise(stage="dev", installation=colour) for colour in ("blue", "green"))
    assert (blue.config.name, green.config.name) == ("Tidemill-dev-blue", "Tidemill-dev-green")
    (stage,) = {
        function["Environment"]["Variables"][names.Env.STAGE] for _, function in blue.of_type("AWS::Lambda::Function")
    }
    assert stage == "dev-blue"


def test_the_jobs_table_has_the_schema_of_the_engine(dev: Synthesised) -> None:
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


def test_without_listing_its_index_and_its_secret_are_absent(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", listing="off")
    (table,) = (table for _, table in app.of_type("AWS::DynamoDB::Table") if "StreamSpecification" in table)
    assert [index["IndexName"] for index in table["GlobalSecondaryIndexes"]] == [names.ATTENTION_INDEX]
    assert names.LISTING_KEY not in {attribute["AttributeName"] for attribute in table["AttributeDefinitions"]}
    assert len(list(app.of_type("AWS::SecretsManager::Secret"))) == 1


def test_every_table_is_backed_up_and_costs_nothing_when_idle(dev: Synthesised) -> None:
    tables = list(dev.of_type("AWS::DynamoDB::Table"))
    assert len(tables) == 3
    for _, table in tables:
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_prod_data_is_retained_and_protected_from_deletion(prod: Synthesised) -> None:
    for id_, resource in prod.everything():
        if resource["Type"] == "AWS::DynamoDB::Table":
            assert resource["Properties"]["DeletionProtectionEnabled"] is True, id_
        if resource["Type"] in KEPT:
            assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain", id_


@pytest.mark.parametrize(
    ("policy", "ends"), [("Bound", ":policy/Bound"), ("arn:aws:iam::123456789012:policy/Bound", ":policy/Bound")]
)
def test_every_role_has_the_permissions_boundary(synthesise: Synthesise, policy: str, ends: str) -> None:
    roles = list(synthesise(stage="dev", permissions_boundary=policy).of_type("AWS::IAM::Role"))
    assert roles
    for _, role in roles:
        assert json.dumps(role["PermissionsBoundary"]).rstrip('"]}').endswith(ends)


def test_the_bootstrap_qualifier_is_a_setting(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", qualifier="mill01")
    for template in (app.pipeline, app.shortener):
        assert template["Parameters"]["BootstrapVersion"]["Default"] == "/cdk-bootstrap/mill01/version"


@pytest.mark.parametrize("settings", SYNTHESES, ids=lambda each: " ".join(f"{k}={v}" for k, v in each.items()))
def test_every_template_passes_the_rule_packs_and_the_limits_of_aws(
    synthesise: Synthesise, settings: dict[str, str]
) -> None:
    """CDK's own rules, those of cfn-lint among them, and `LimitValidation` fail each synthesis of this module."""
    synthesise(**settings, plugins=AwsSolutionsChecks)


def test_the_rule_pack_reports_findings(synthesise: Synthesise) -> None:
    with pytest.raises(RuntimeError, match="AwsSolutions-L1"):
        synthesise(stage="dev", python_version="3.11", plugins=AwsSolutionsChecks)

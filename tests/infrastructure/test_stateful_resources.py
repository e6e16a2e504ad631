"""The logical ids, names and schemas of all resources that hold data, frozen.

CloudFormation identifies a resource by its logical id. If the id, the physical name or the key schema of a stateful
resource changes, CloudFormation replaces the resource, and its data is lost: `dev` deletes the old resource with its
data, and `prod` keeps it, but the app then uses a new and empty one. A new stack name replaces all resources at once.
An index with another name is built again, and items with another TTL attribute never expire.

So a change here needs a migration of the data and an entry in CHANGELOG.md. Both stages have the same resources.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.infrastructure.conftest import Resource, Synthesise, Synthesised

#: The types that hold data, and the property of each that sets its physical name.
NAME_PROPERTIES: Final = {
    "AWS::DynamoDB::Table": "TableName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::SecretsManager::Secret": "Name",
}
#: In CloudFormation, the GUID at the end of the stack's ARN.
STACK_GUID: Final = {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}
STACK_NAME_PREFIXES: Final = {"dev": "Tidemill-dev", "prod": "Tidemill-prod"}

BUCKET: Final = {"type": "AWS::S3::Bucket"}
LOG_GROUP: Final = {"type": "AWS::Logs::LogGroup"}
QUEUE: Final = {"type": "AWS::SQS::Queue"}
SECRET: Final = {"type": "AWS::SecretsManager::Secret"}
TABLE: Final = {"type": "AWS::DynamoDB::Table"}
TOPIC: Final = {"type": "AWS::SNS::Topic"}

#: By stack and logical id. A key is its name and its type: S is a string, N a number.
FROZEN: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "Pipeline": {
        "JobsTable10C8EDF6": {
            **TABLE,
            "keys": ["pk S"],
            "ttl": "expires_at",
            "indexes": {"attention": ["attention S", "attention_at N"], "listing": ["listing S", "created_at N"]},
        },
        "ShortenerLinksTable11023BFD": {**TABLE, "keys": ["code S"], "ttl": None, "indexes": {}},
        "ShortenerClicksTable99B8D8BE": {**TABLE, "keys": ["pk S", "sk S"], "ttl": "expires_at", "indexes": {}},
        "FilesBucket7C17EE2E": BUCKET,
        "LanecriticalQueue5F5702D3": {**QUEUE, "name": "tidemill-critical-<stack GUID>"},
        "LanedefaultQueue7D900EA6": {**QUEUE, "name": "tidemill-default-<stack GUID>"},
        "LanebulkQueueD5D5A07B": {**QUEUE, "name": "tidemill-bulk-<stack GUID>"},
        "LanecriticalLetters7E4D92FD": QUEUE,
        "LanedefaultLetters0E6DD41A": QUEUE,
        "LanebulkLetters31C271FD": QUEUE,
        "PublisherFailures439487BC": QUEUE,
        "Missed3BACDA05": QUEUE,
        "CursorKey255E8F8A": SECRET,
        "ShortenerAddressKeyCE7CB079": SECRET,
        "AlarmsTopic3A2DFEBA": TOPIC,
        "TicketsTopicC7E9F99F": TOPIC,
        "ApiAccessLogs50B185DB": {**LOG_GROUP, "name": "/aws/vendedlogs/tidemill/api-<stack GUID>"},
        "ControlLogs7AC46C76": LOG_GROUP,
        "LanebulkWorkerLogs0C2D8ACF": LOG_GROUP,
        "LanecriticalWorkerLogs1E2960CE": LOG_GROUP,
        "LanedefaultWorkerLogs0327304D": LOG_GROUP,
        "PublisherFunctionLogs518B4CFF": LOG_GROUP,
        "QueryLogsDCC6CC3B": LOG_GROUP,
        "ReconcileLogsDE13217A": LOG_GROUP,
        "SubmitLogsCC177F41": LOG_GROUP,
        "TickLogs2B6DFB4C": LOG_GROUP,
        "WakeLogsF9E94C25": LOG_GROUP,
        "CanaryLogs35071DCA": LOG_GROUP,
    },
    "Shortener": {
        "ApiAccessLogs50B185DB": {**LOG_GROUP, "name": "/aws/vendedlogs/tidemill/api-<stack GUID>"},
        "RedirectLogs949E9C05": LOG_GROUP,
        "ShortenLogsEA4AB52A": LOG_GROUP,
        "StatsLogsD60AC7D6": LOG_GROUP,
    },
}


def _stateful(template: Resource) -> dict[str, dict[str, Any]]:
    """The stateful resources of a template by logical id, in the form of `FROZEN`."""
    return {
        id_: _described(resource["Type"], resource["Properties"])
        for id_, resource in template["Resources"].items()
        if resource["Type"] in NAME_PROPERTIES
    }


def _described(type_: str, properties: Resource) -> dict[str, Any]:
    described: dict[str, Any] = {"type": type_}
    if name := properties.get(NAME_PROPERTIES[type_]):
        described["name"] = _text(name)
    if type_ == "AWS::DynamoDB::Table":
        types = {each["AttributeName"]: each["AttributeType"] for each in properties["AttributeDefinitions"]}
        described["keys"] = _keys(properties, types)
        described["ttl"] = properties.get("TimeToLiveSpecification", {}).get("AttributeName")
        indexes = properties.get("GlobalSecondaryIndexes", []) + properties.get("LocalSecondaryIndexes", [])
        described["indexes"] = {index["IndexName"]: _keys(index, types) for index in indexes}
    return described


def _keys(table_or_index: Resource, types: Mapping[str, str]) -> list[str]:
    """The partition key, then the sort key."""
    names = [key["AttributeName"] for key in sorted(table_or_index["KeySchema"], key=lambda key: key["KeyType"])]
    return [f"{name} {types[name]}" for name in names]


def _text(name: Any) -> str:
    if isinstance(name, str):
        return name
    separator, parts = name["Fn::Join"]
    return str(separator.join("<stack GUID>" if part == STACK_GUID else part for part in parts))


def _differences(frozen: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    return [
        f"{id_}: frozen {json.dumps(frozen.get(id_))}, found {json.dumps(found.get(id_))}"
        for id_ in sorted(frozen.keys() | found.keys())
        if frozen.get(id_) != found.get(id_)
    ]


@pytest.mark.parametrize("stage", STACK_NAME_PREFIXES)
def test_stateful_resources_keep_their_ids_names_and_schemas(synthesise: Synthesise, stage: str) -> None:
    app: Synthesised = synthesise(stage=stage)
    differences = _differences(
        {"stack name prefix": STACK_NAME_PREFIXES[stage]}, {"stack name prefix": app.config.name}
    )
    for stack, template in (("Pipeline", app.pipeline), ("Shortener", app.shortener)):
        differences += [f"{stack}.{each}" for each in _differences(FROZEN[stack], _stateful(template))]
    assert not differences, (
        f"Stateful resources of stage {stage} changed:\n"
        + "\n".join(differences)
        + "\nChanging or removing one replaces the resource and loses its data. Undo the change, or write a migration, "
        "add an entry to CHANGELOG.md and update FROZEN. If you only added a resource, add it to FROZEN."
    )


def test_a_changed_key_of_a_table_is_a_difference(dev: Synthesised) -> None:
    template = json.loads(json.dumps(dev.pipeline).replace('"attention_at"', '"due_at"'))
    (difference,) = _differences(FROZEN["Pipeline"], _stateful(template))
    assert difference.startswith("JobsTable10C8EDF6: frozen")

"""Tables: TTL, stream, point-in-time recovery and deletion protection."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tidemill.aws import clients
from tidemill.aws.clients import translated
from tidemill.operator.comparisons.comparison import Found, OwnSettings
from tidemill.operator.drift.expected_resource import Expected, Kind

#: The attribute with the time of expiry.
TTL: Final = "TimeToLive"
#: What each record of the stream has.
STREAM: Final = "Stream"
RECOVERY: Final = "PointInTimeRecovery"
PROTECTION: Final = "DeletionProtection"
_TTL_ON: Final = frozenset({"ENABLING", "ENABLED"})


class Tables(OwnSettings):
    kind: Final = Kind.TABLE
    template_types: Final = ("AWS::DynamoDB::Table",)

    def settings(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        if properties.get("TimeToLiveSpecification", {}).get("Enabled"):
            found[TTL] = properties["TimeToLiveSpecification"]["AttributeName"]
        if "StreamSpecification" in properties:
            found[STREAM] = properties["StreamSpecification"]["StreamViewType"]
        # Only what protects the data: a stage may have less in its template, and an operator may add it.
        if properties.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled"):
            found[RECOVERY] = True
        if properties.get("DeletionProtectionEnabled"):
            found[PROTECTION] = True
        return found

    def read(self, expected: Expected) -> Found:
        name, wanted = str(expected.physical_id), expected.settings
        client = clients.dynamodb()
        with translated():
            table: Mapping[str, Any] = client.describe_table(TableName=name)["Table"]
            stream = table.get("StreamSpecification", {})
            found: dict[str, Any] = {
                STREAM: stream.get("StreamViewType") if stream.get("StreamEnabled") else None,
                PROTECTION: table.get("DeletionProtectionEnabled", False),
            }
            if TTL in wanted:
                ttl = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
                found[TTL] = ttl.get("AttributeName") if ttl["TimeToLiveStatus"] in _TTL_ON else None
            if RECOVERY in wanted:
                backups = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
                recovery = backups.get("PointInTimeRecoveryDescription", {})
                found[RECOVERY] = recovery.get("PointInTimeRecoveryStatus") == "ENABLED"
        return Found(settings=found, description=table)

    def calls(self, names: Sequence[str]) -> Iterator[Sequence[str]]:
        return ([name] for name in names)

    def restore(self, expected: Expected, found: Found, names: Sequence[str]) -> None:  # noqa: ARG002 - the protocol's
        (name,) = names
        value = expected.settings[name]
        operation, request = {
            TTL: ("update_time_to_live", {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": value}}),
            STREAM: ("update_table", {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": value}}),
            RECOVERY: (
                "update_continuous_backups",
                {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": value}},
            ),
            PROTECTION: ("update_table", {"DeletionProtectionEnabled": value}),
        }[name]
        with translated():
            getattr(clients.dynamodb(), operation)(TableName=expected.physical_id, **request)

"""What a restored table lacks, and how to turn it on.

A restore brings no stream, TTL or deletion protection, and turns continuous backups off. It brings the indexes, unless
the operator left them out. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/PointInTimeRecovery_Howitworks.html
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tidemill.aws.clients import translated
from tidemill.domain.errors import MissingResourceError
from tidemill.names import JOB_KEY, TTL_ATTRIBUTE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_IMAGES: Final = "NEW_AND_OLD_IMAGES"
_ON: Final = frozenset({"ENABLED", "ENABLING"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What AWS says of one table."""

    name: str
    active: bool
    #: The names of the key attributes.
    keys: tuple[str, ...]
    #: Those that can be queried.
    indexes: frozenset[str]
    #: None without a stream.
    stream_arn: str | None
    images: str
    expires: bool
    backed_up: bool
    protected: bool
    #: The restore point. None for a table that was not restored.
    restored_to: datetime | None

    def missing(self, *, protected: bool) -> list[str]:
        """What `complete` would turn on."""
        wanted = {
            "stream": self.stream_arn is not None,
            "TTL": self.expires,
            "point-in-time recovery": self.backed_up,
            "deletion protection": self.protected or not protected,
        }
        return [name for name, there in wanted.items() if not there]

    def faults(self, indexes: Collection[str]) -> list[str]:
        """What `complete` cannot repair."""
        found = [] if self.active else ["it is not active yet"]
        if self.keys != (JOB_KEY,):
            found.append(f"its key is {', '.join(self.keys)} and not {JOB_KEY}")
        found += [f"it lacks the index {index}" for index in sorted(set(indexes) - self.indexes)]
        if self.stream_arn and self.images != _IMAGES:
            found.append(f"its stream has {self.images} and not {_IMAGES}")
        return found


def read(client: "DynamoDBClient", name: str) -> TableFacts | None:
    """None if the table does not exist."""
    try:
        with translated():
            table: Any = client.describe_table(TableName=name)["Table"]
            ttl = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
            backups: Any = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    except MissingResourceError:
        return None
    stream = table.get("StreamSpecification", {})
    return TableFacts(
        name=name,
        active=table["TableStatus"] == "ACTIVE" and not table.get("RestoreSummary", {}).get("RestoreInProgress"),
        keys=tuple(key["AttributeName"] for key in table["KeySchema"]),
        indexes=frozenset(
            index["IndexName"]
            for index in table.get("GlobalSecondaryIndexes") or ()
            if index.get("IndexStatus", "ACTIVE") == "ACTIVE"
        ),
        stream_arn=table.get("LatestStreamArn") if stream.get("StreamEnabled") else None,
        images=stream.get("StreamViewType", ""),
        expires=ttl.get("TimeToLiveStatus") in _ON and ttl.get("AttributeName") == TTL_ATTRIBUTE,
        backed_up=backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus") in _ON,
        protected=bool(table.get("DeletionProtectionEnabled")),
        restored_to=table.get("RestoreSummary", {}).get("RestoreDateTime"),
    )


def complete(client: "DynamoDBClient", facts: TableFacts, *, protected: bool) -> TableFacts:
    """Turn on what is missing, the stream first, and return the table as it then is. Safe to repeat."""
    missing = facts.missing(protected=protected)
    with translated():
        if "stream" in missing:
            client.update_table(
                TableName=facts.name, StreamSpecification={"StreamEnabled": True, "StreamViewType": _IMAGES}
            )
            client.get_waiter("table_exists").wait(TableName=facts.name)
        if "TTL" in missing:
            client.update_time_to_live(
                TableName=facts.name, TimeToLiveSpecification={"Enabled": True, "AttributeName": TTL_ATTRIBUTE}
            )
        if "point-in-time recovery" in missing:
            client.update_continuous_backups(
                TableName=facts.name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
            )
        if "deletion protection" in missing:
            client.update_table(TableName=facts.name, DeletionProtectionEnabled=True)
            client.get_waiter("table_exists").wait(TableName=facts.name)
    completed = read(client, facts.name)
    if completed is None or completed.stream_arn is None:
        raise RuntimeError(f"{facts.name} has no stream after it was turned on")
    return completed

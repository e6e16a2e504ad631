"""What a restored table lacks, and how to turn it on.

A restore brings no stream, TTL or deletion protection, and turns continuous backups off. It brings the indexes, unless
the operator left them out. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/PointInTimeRecovery_Howitworks.html
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tidemill.domain.errors import MissingResourceError
from tidemill.names import JOB_KEY, TTL_ATTRIBUTE
from tidemill.operator.comparisons.comparison import Found
from tidemill.operator.comparisons.tables import PROTECTION, RECOVERY, STREAM, TTL, Tables
from tidemill.operator.drift.expected_resource import Expected, Kind

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_IMAGES: Final = "NEW_AND_OLD_IMAGES"
#: The settings that a recovery turns on, and what an operator calls them. A stream is enabled in some milliseconds,
#: the others change nothing of it.
_NAMES: Final = {STREAM: "stream", TTL: "TTL", RECOVERY: "point-in-time recovery", PROTECTION: "deletion protection"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What AWS says of one table."""

    name: str
    found: Found

    @property
    def description(self) -> Mapping[str, Any]:
        return self.found.description

    @property
    def stream_arn(self) -> str | None:
        """None without a stream."""
        return self.description.get("LatestStreamArn") if self.found.settings[STREAM] else None

    @property
    def protected(self) -> bool:
        return bool(self.found.settings[PROTECTION])

    @property
    def restored_to(self) -> datetime | None:
        """The restore point. None for a table that was not restored."""
        point: datetime | None = self.description.get("RestoreSummary", {}).get("RestoreDateTime")
        return point

    @property
    def indexes(self) -> frozenset[str]:
        """Those that can be queried."""
        return frozenset(
            index["IndexName"]
            for index in self.description.get("GlobalSecondaryIndexes") or ()
            if index.get("IndexStatus", "ACTIVE") == "ACTIVE"
        )

    def missing(self, *, protected: bool) -> list[str]:
        """What `complete` would turn on."""
        return [_NAMES[name] for name in self._to_turn_on(protected=protected)]

    def faults(self, indexes: Collection[str]) -> list[str]:
        """What `complete` cannot repair."""
        restoring = self.description.get("RestoreSummary", {}).get("RestoreInProgress")
        found = [] if self.description["TableStatus"] == "ACTIVE" and not restoring else ["it is not active yet"]
        keys = [key["AttributeName"] for key in self.description["KeySchema"]]
        if keys != [JOB_KEY]:
            found.append(f"its key is {', '.join(keys)} and not {JOB_KEY}")
        found += [f"it lacks the index {index}" for index in sorted(set(indexes) - self.indexes)]
        if (images := self.found.settings[STREAM]) not in {None, _IMAGES}:
            found.append(f"its stream has {images} and not {_IMAGES}")
        return found

    def complete(self, client: "DynamoDBClient", *, protected: bool) -> "TableFacts":
        """Turn on what is missing, the stream first, and return the table as it then is. Safe to repeat."""
        for name in self._to_turn_on(protected=protected):
            Tables().restore(_expected(self.name), self.found, [name])
            # A table takes no further change while it is being changed.
            client.get_waiter("table_exists").wait(TableName=self.name)
        completed = read(self.name)
        if completed is None or completed.stream_arn is None:
            raise MissingResourceError(f"{self.name} has no stream after it was turned on")
        return completed

    def _to_turn_on(self, *, protected: bool) -> list[str]:
        wanted = _expected(self.name).settings
        left = {PROTECTION} if not protected else set()
        return [name for name in _NAMES if name not in left and self.found.settings[name] != wanted[name]]


def read(name: str) -> TableFacts | None:
    """None if the table does not exist."""
    try:
        return TableFacts(name=name, found=Tables().read(_expected(name)))
    except MissingResourceError:
        return None


def _expected(name: str) -> Expected:
    """Return the settings that the stack gives its own table, where the stage is protected."""
    settings = {STREAM: _IMAGES, TTL: TTL_ATTRIBUTE, RECOVERY: True, PROTECTION: True}
    return Expected(kind=Kind.TABLE, logical_id=name, physical_id=name, settings=settings)

"""The runtime configuration in the jobs table: one item holds it, and one item more for each change."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import ConfigurationConflictError, TransactionConflictError
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, Change, RuntimeConfiguration
from tidemill.domain.waiting.pauses import Drain
from tidemill.dynamodb.document import from_milliseconds
from tidemill.dynamodb.limits import limit_item
from tidemill.dynamodb.transactions import RefusedError, own, transact
from tidemill.names import CONFIGURATION_KEY, JOB_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_CHANGE_PREFIX: Final = f"{CONFIGURATION_KEY}#"
#: The most keys of one BatchGetItem:
#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
_BATCH: Final = 100
_VERSION: Final = "version"
_DOCUMENT: Final = "document"


class DynamoConfiguration:
    """`ConfigurationStore` over one table of jobs. The item has no state, so no stream record reaches publish."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, *, consistent: bool = False) -> RuntimeConfiguration:
        with translated():
            answer = self._client.get_item(
                TableName=self._table, Key={JOB_KEY: text(CONFIGURATION_KEY)}, ConsistentRead=consistent
            )
        item: Any = answer.get("Item")
        if item is None:
            return NOTHING_SET
        return RuntimeConfiguration(version=int(item[_VERSION]["N"]), document=json.loads(item[_DOCUMENT]["S"]))

    def acting(self) -> RuntimeConfiguration:
        return self.read(consistent=True)

    def write(self, configuration: RuntimeConfiguration, change: Change, drain: Drain | None = None) -> None:
        entries = [
            own("Put", _put_configuration(configuration), table=self._table),
            own("Put", _put_change(change), table=self._table),
        ]
        if drain:
            entries.append(own("Update", limit_item.mark_drain(drain), table=self._table))
        try:
            transact(self._client, entries)
        except RefusedError as refused:
            raise ConfigurationConflictError(
                "another operator has changed the runtime configuration since it was read: nothing was changed"
            ) from refused
        except TransactionConflictError as conflict:
            raise ConfigurationConflictError(
                "another operator changes the runtime configuration at this moment, or the table throttles: nothing "
                "was changed"
            ) from conflict

    def deploy(self) -> None:
        """Nothing to do: the functions read the item."""

    def history(self) -> Iterator[Change]:
        newest = self.read(consistent=True).version
        for last in range(newest, 0, -_BATCH):
            yield from self._changes(range(last, max(last - _BATCH, 0), -1))

    def _changes(self, versions: Sequence[int]) -> Sequence[Change]:
        found: dict[int, Change] = {}
        keys: Any = [_change_key(version) for version in versions]
        while keys:
            with translated():
                answer: Any = self._client.batch_get_item(
                    RequestItems={self._table: {"Keys": keys, "ConsistentRead": True}}
                )
            changes = map(_decoded_change, answer["Responses"].get(self._table, []))
            found |= {change.version: change for change in changes}
            keys = answer["UnprocessedKeys"].get(self._table, {}).get("Keys", [])
        return [found[version] for version in versions if version in found]


def _put_configuration(configuration: RuntimeConfiguration) -> dict[str, Any]:
    item = {
        JOB_KEY: text(CONFIGURATION_KEY),
        _VERSION: number(configuration.version),
        _DOCUMENT: text(json.dumps(configuration.document)),
    }
    names = {"#version": _VERSION}
    if configuration.version == 1:
        # Another operator has made the first change since this one found it absent.
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(#version)"}
    else:
        # Another operator has changed the configuration since it was read, and this write would undo that.
        condition = {
            "ConditionExpression": "#version = :read",
            "ExpressionAttributeValues": {":read": number(configuration.version - 1)},
        }
    return {"Item": item, "ExpressionAttributeNames": names, **condition}


def _put_change(change: Change) -> dict[str, Any]:
    item = _change_key(change.version) | {
        "name": text(change.name),
        "at": milliseconds(change.at),
        "by": text(change.by),
        "reason": text(change.reason),
    }
    if not change.removed:
        item["value"] = text(json.dumps(change.value))
    if change.until is not None:
        item["until"] = milliseconds(change.until)
    # The condition on the configuration decides about both writes of the transaction.
    return {"Item": item}


def _change_key(version: int) -> Item:
    return {JOB_KEY: text(f"{_CHANGE_PREFIX}{version}")}


def _decoded_change(item: Item) -> Change:
    return Change(
        version=int(item[JOB_KEY]["S"].removeprefix(_CHANGE_PREFIX)),
        name=item["name"]["S"],
        at=from_milliseconds(item["at"]),
        by=item["by"]["S"],
        reason=item["reason"]["S"],
        value=json.loads(item["value"]["S"]) if "value" in item else None,
        removed="value" not in item,
        until=from_milliseconds(item["until"]) if "until" in item else None,
    )

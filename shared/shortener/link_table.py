"""The links in DynamoDB: one item for each link, written by one conditional call. Only disabling it changes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from shortener.names import LINK_KEY
from tidemill.aws.attribute_values import milliseconds, text
from tidemill.aws.clients import Item, translated
from tidemill.aws.refused_write import refusing_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_CREATED_AT: Final = "created_at"
_DISABLED_AT: Final = "disabled_at"
_KEY: Final = "key"
_TEXTS: Final = ("url", "owner", "trace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A short link."""

    code: str
    url: str
    #: The tenant that created it. No other tenant may see its statistics.
    owner: str
    #: Id of the request that created it, so that a retry of the SDK recognizes its own earlier write.
    trace: str
    created_at: datetime
    #: The idempotency key of that request; None without one.
    key: str | None = None
    #: When its owner disabled it; None while it works. Its code stays taken, so that no other target gets its visitors.
    disabled_at: datetime | None = None


class Links:
    """Reads and writes the links table."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def insert_if_absent(self, link: Link) -> Link:
        """Write a link unless its code is taken. Return the link that now has the code."""
        try:
            with translated():
                self._client.put_item(
                    TableName=self._table,
                    Item=_encode(link),
                    # If two requests want one code at once, the second receives the link of the first.
                    ConditionExpression="attribute_not_exists(#code)",
                    ExpressionAttributeNames={"#code": LINK_KEY},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            return _decode(refusing_item(error) or {})
        return link

    def disable(self, code: str, *, owner: str, now: datetime) -> Link | None:
        """Disable a link of `owner` for good, and return it. None if the owner has no such link."""
        try:
            with translated():
                answer = self._client.update_item(
                    TableName=self._table,
                    Key={LINK_KEY: text(code)},
                    UpdateExpression="SET #disabled_at = :now",
                    # Another caller may own the code, or no link has it.
                    # A repeat, also one by the SDK, keeps the first time.
                    ConditionExpression="#owner = :owner AND attribute_not_exists(#disabled_at)",
                    ExpressionAttributeNames={"#owner": "owner", "#disabled_at": _DISABLED_AT},
                    ExpressionAttributeValues={":owner": text(owner), ":now": milliseconds(now)},
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            item = refusing_item(error)
            link = _decode(item) if item else None
            return link if link and link.owner == owner else None
        return _decode(answer["Attributes"])

    def get(self, code: str) -> Link | None:
        """A consistent read: a link works as soon as its creator has the response."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key={LINK_KEY: text(code)}, ConsistentRead=True)
        return _decode(answer["Item"]) if "Item" in answer else None


def _encode(link: Link) -> Item:
    texts = {name: text(getattr(link, name)) for name in _TEXTS}
    key = {} if link.key is None else {_KEY: text(link.key)}
    return {LINK_KEY: text(link.code), _CREATED_AT: milliseconds(link.created_at), **texts, **key}


def _decode(item: Mapping[str, Any]) -> Link:
    return Link(
        code=item[LINK_KEY]["S"],
        created_at=_moment(item[_CREATED_AT]),
        disabled_at=_moment(item[_DISABLED_AT]) if _DISABLED_AT in item else None,
        key=item[_KEY]["S"] if _KEY in item else None,
        **{name: item[name]["S"] for name in _TEXTS},
    )


def _moment(value: Mapping[str, str]) -> datetime:
    return datetime.fromtimestamp(int(value["N"]) / 1000, tz=UTC)

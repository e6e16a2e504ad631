"""The clicks table: a record for each click, and for each link counters that are spread over shards.

A shard is one item with a number for everything that was counted (`clicks`, `country:DE`, `browser:Firefox`), all at
the top of it, so that ADD makes what is missing and no map must be there first.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from zlib import crc32

from shared.adapters.clients import Item, translated
from shared.adapters.document import milliseconds, number, seconds, text
from shared.adapters.shortener.addresses import fingerprint
from shared.adapters.shortener.click import Click
from shared.adapters.shortener.tally import Tally, Trait, counters, summed
from shared.adapters.shortener.visitor import Visitor
from shared.domain.outcomes import TransactWrite
from shared.names import CLICK_KEY, CLICK_SORT_KEY, TTL_ATTRIBUTE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: Two transactions on one item conflict, and a worker settles a batch at once, so a popular link needs several.
SHARDS: Final = 16
#: How long a click's own record is kept. Counters stay.
RECORDS_KEPT: Final = timedelta(days=90)
#: The longest name that DNS allows.
LONGEST_HOST_CHARACTERS: Final = 253

_COUNTERS: Final = "count#"


class Clicks:
    """The table of clicks."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def writes(self, click: Click, visitor: Visitor, *, job_id: str, at: datetime) -> Sequence[TransactWrite]:
        """What records and counts a click, for one transaction. Reads the shard, to see which names it has."""
        key = _counters_key(click.code, crc32(job_id.encode()) % SHARDS)
        raised = counters(visitor, self._read(key))
        return [
            {"Put": {"TableName": self._table, "Item": _record(click, visitor, job_id=job_id, at=at)}},
            {"Update": {"TableName": self._table, "Key": key, **_add_one(raised)}},
        ]

    def tally(self, code: str) -> Tally:
        """The sum over all shards of a link; read consistently, so that what a job has counted is seen."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="#link = :link AND begins_with(#sort, :counters)",
            ExpressionAttributeNames={"#link": CLICK_KEY, "#sort": CLICK_SORT_KEY},
            ExpressionAttributeValues={":link": text(code), ":counters": text(_COUNTERS)},
            ConsistentRead=True,
        )
        with translated():
            return summed(_numbers(item) for page in pages for item in page["Items"])

    def _read(self, key: Item) -> Tally:
        """Not consistently: a name too many does no harm."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=key)
        return summed([_numbers(answer.get("Item", {}))])


def _counters_key(code: str, shard: int) -> Item:
    return {CLICK_KEY: text(code), CLICK_SORT_KEY: text(f"{_COUNTERS}{shard:02d}")}


def _numbers(item: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(value["N"]) for name, value in item.items() if "N" in value}


def _add_one(raised: Sequence[str]) -> dict[str, Any]:
    # Through aliases: names hold spaces, dots and whatever else a browser may be called.
    aliases = {f"#counter{index}": counter for index, counter in enumerate(raised)}
    return {
        "UpdateExpression": "ADD " + ", ".join(f"{alias} :one" for alias in aliases),
        "ExpressionAttributeNames": aliases,
        "ExpressionAttributeValues": {":one": number(1)},
    }


def _record(click: Click, visitor: Visitor, *, job_id: str, at: datetime) -> Item:
    """Neither the address nor the user agent is in it."""
    host = _host(click.referrer)
    return {
        CLICK_KEY: text(click.code),
        # By time, and one for each job however often it runs.
        CLICK_SORT_KEY: text(f"click#{at.isoformat(timespec='milliseconds')}#{job_id}"),
        "at": milliseconds(at),
        "bot": {"BOOL": visitor.bot},
        TTL_ATTRIBUTE: seconds(at + RECORDS_KEPT),
        **{trait.value: text(getattr(visitor, trait)) for trait in Trait},
        **({"visitor": text(fingerprint(click.address))} if click.address else {}),
        **({"referrer": text(host)} if host else {}),
    }


def _host(referrer: str) -> str:
    """The site that the visitor came from; the rest of that address may say more than the visitor would."""
    try:
        return (urlsplit(referrer).hostname or "")[:LONGEST_HOST_CHARACTERS]
    except ValueError:
        return ""

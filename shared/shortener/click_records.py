"""Reads the records of a link's clicks page by page, and formats them as lines of a file. Visitors stay anonymous."""

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from shortener.click_table import LAST, RECORD
from shortener.names import CLICK_KEY, CLICK_SORT_KEY, TTL_ATTRIBUTE
from tidemill.aws.attribute_values import text
from tidemill.aws.clients import translated

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

COLUMNS: Final = ("at", "country", "browser", "system", "device", "bot", "referrer", "visitor")
#: A spreadsheet reads these as the start of a formula, and visitors choose the names of their browsers:
#: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class Format(StrEnum):
    """The format of a file. The value is also the suffix of its name."""

    CSV = "csv"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True)
class Page:
    """Some clicks in order of time. The next page starts after the sort key `last`."""

    clicks: Sequence[Mapping[str, Any]]
    last: str


class Records:
    """The records in the clicks table. Expired records are left out: DynamoDB may delete them at any time."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def pages(self, code: str, *, until: datetime, after: str | None, size: int, now: datetime) -> Iterator[Page]:
        """Yield pages of `size` clicks, earliest first, after the sort key `after` and up to the time `until`."""
        after = after or RECORD
        last = f"{RECORD}{until.isoformat(timespec='milliseconds')}#{LAST}"
        while True:
            with translated():
                answer = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="#link = :link AND #sort BETWEEN :first AND :last",
                    ExpressionAttributeNames={"#link": CLICK_KEY, "#sort": CLICK_SORT_KEY},
                    # A key condition cannot combine > with <=, so BETWEEN starts at the successor of `after`.
                    ExpressionAttributeValues={":link": text(code), ":first": text(after + " "), ":last": text(last)},
                    Limit=size,
                    ConsistentRead=True,
                )
            if not answer["Items"]:
                return
            after = answer["Items"][-1][CLICK_SORT_KEY]["S"]
            yield Page([_click(code, item) for item in answer["Items"] if _alive(item, now)], after)
            if "LastEvaluatedKey" not in answer:
                return


def header(format_: Format) -> bytes:
    """The first line of a CSV file; empty for JSON lines."""
    return _csv([dict(zip(COLUMNS, COLUMNS, strict=True))]) if format_ is Format.CSV else b""


def lines(clicks: Sequence[Mapping[str, Any]], format_: Format) -> bytes:
    """One line for each click, in UTF-8."""
    if format_ is Format.CSV:
        return _csv([{name: _cell(value) for name, value in click.items()} for click in clicks])
    return b"".join(json.dumps(click, separators=(",", ":")).encode() + b"\n" for click in clicks)


def _csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    written = io.StringIO()
    csv.DictWriter(written, COLUMNS, lineterminator="\r\n").writerows(rows)
    return written.getvalue().encode()


def _cell(value: str | bool | None) -> str:  # noqa: FBT001
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if value and value.startswith(_FORMULA) else value or ""


def _alive(item: Mapping[str, Any], now: datetime) -> bool:
    return int(item[TTL_ATTRIBUTE]["N"]) > now.timestamp()


def _click(code: str, item: Mapping[str, Any]) -> dict[str, Any]:
    at = datetime.fromtimestamp(int(item["at"]["N"]) / 1000, tz=UTC)
    return {
        "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **{name: item[name]["S"] for name in ("country", "browser", "system", "device")},
        "bot": item["bot"]["BOOL"],
        "referrer": item["referrer"]["S"] if "referrer" in item else None,
        "visitor": _alias(code, item["visitor"]["S"]) if "visitor" in item else None,
    }


def _alias(code: str, fingerprint: str) -> str:
    """Identifies a visitor within one link. The same visitor has another alias for another link."""
    return hashlib.sha256(f"{code} {fingerprint}".encode()).hexdigest()[:16]

"""The level that the governor has set, and the late starts of the present window: one item of the jobs table."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.aws.clients import Item, translated
from tidemill.aws.refused_write import refusing_item
from tidemill.domain.admission.governor import WINDOW, Governed, Starts, changed, window_is_over
from tidemill.domain.errors import StoreUnavailableError
from tidemill.dynamodb.document import from_milliseconds
from tidemill.names import JOB_KEY, STRAIN_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_KEY: Final[Item] = {JOB_KEY: text(STRAIN_KEY)}
_TIMES: Final = ("since", "window_from", "minute_from")
_NUMBERS: Final = ("level", "version", "usual")
#: How often starts are added. Each try uses the item that refused the one before.
_TRIES: Final = 4


class DynamoGovernor:
    """`GovernorStore` over one table of jobs. The item has no state, so no stream record reaches publish."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def read(self) -> Governed:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_KEY)
        return _decoded(answer.get("Item", {}))

    def add(self, starts: Starts, *, now: datetime) -> Governed:
        seen = Governed(window_from=now)
        for _ in range(_TRIES):
            over = window_is_over(seen, now=now)
            written, seen = self._update(_first(starts, now) if over else _further(starts, now))
            if written:
                return seen
        raise StoreUnavailableError("other workers write the item of the strain")

    def move(self, seen: Governed, level: int, *, now: datetime) -> Governed | None:
        _, present = self._update(_change(seen, level, now))
        # Also if the write was refused: the SDK sends an applied one again, which its own success refuses.
        own = (present.version, present.level, present.since) == (seen.version + 1, level, _stored(now))
        return present if own else None

    def begin_minute(self, seen: Governed, *, now: datetime) -> None:
        # If it is refused, another process has begun one.
        self._update(_minute(seen, now))

    def _update(self, request: dict[str, Any]) -> tuple[bool, Governed]:
        """Whether it was written, and the item after it, or the one that refused it."""
        try:
            with translated():
                answer: Any = self._client.update_item(
                    TableName=self._table,
                    Key=_KEY,
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **request,
                )
        except ClientError as error:
            return False, _decoded(refusing_item(error) or {})
        return True, _decoded(answer["Attributes"])


def _further(starts: Starts, now: datetime) -> dict[str, Any]:
    # A report that the SDK sends twice counts twice. It makes one window look worse than it is, and no level wrong.
    return _counting(
        "ADD #late :late, #total :total, #minute_late :late, #minute_total :total",
        # The window is over, and the starts of an earlier one do not count.
        "#window_from > :begin",
        starts,
        now,
    )


def _first(starts: Starts, now: datetime) -> dict[str, Any]:
    return _counting(
        "SET #late = :late, #total = :total, #window_from = :now ADD #minute_late :late, #minute_total :total",
        # Another worker has begun a window since, and its starts count.
        "(attribute_not_exists(#window_from) OR #window_from <= :begin)",
        starts,
        now,
    )


def _counting(expression: str, condition: str, starts: Starts, now: datetime) -> dict[str, Any]:
    names = ("late", "total", "window_from", "minute_late", "minute_total")
    values = {":late": number(starts.late), ":total": number(starts.total), ":begin": milliseconds(now - WINDOW)}
    return {
        "UpdateExpression": expression,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {f"#{name}": name for name in names},
        "ExpressionAttributeValues": values | ({":now": milliseconds(now)} if ":now" in expression else {}),
    }


def _change(seen: Governed, level: int, now: datetime) -> dict[str, Any]:
    after = changed(seen, level, now=now)
    values = {
        "level": number(after.level),
        "since": milliseconds(after.since),
        "version": number(after.version),
        "late": number(0),
        "total": number(0),
        "window_from": milliseconds(after.window_from),
        "raised_late": number(after.raised_by.late),
        "raised_total": number(after.raised_by.total),
        "usual": number(after.usual),
        **_new_minute(now),
    }
    placeholders = {f":{name}": value for name, value in values.items()}
    if seen.version:
        # Another process has changed the level since it was read.
        condition = "#version = :seen"
        placeholders[":seen"] = number(seen.version)
    else:
        # Another process has made the first change since.
        condition = "attribute_not_exists(#version)"
    return _setting(values, condition, placeholders)


def _minute(seen: Governed, now: datetime) -> dict[str, Any]:
    values = _new_minute(now)
    placeholders = {f":{name}": value for name, value in values.items()}
    placeholders |= {":seen": number(seen.version), ":begun": milliseconds(seen.minute_from)}
    # Another process has changed the level since it was read, or begun a minute whose starts count.
    condition = "#version = :seen AND #minute_from = :begun"
    request = _setting(values, condition, placeholders)
    request["ExpressionAttributeNames"]["#version"] = "version"
    return request


def _new_minute(now: datetime) -> Item:
    return {"minute_late": number(0), "minute_total": number(0), "minute_from": milliseconds(now)}


def _setting(values: Item, condition: str, placeholders: Item) -> dict[str, Any]:
    return {
        "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in values),
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {f"#{name}": name for name in values},
        "ExpressionAttributeValues": placeholders,
    }


def _decoded(item: Item) -> Governed:
    found: dict[str, Any] = {name: from_milliseconds(item[name]) for name in _TIMES if name in item}
    found |= {name: int(item[name]["N"]) for name in _NUMBERS if name in item}
    return Governed(
        starts=_starts(item, "late", "total"),
        raised_by=_starts(item, "raised_late", "raised_total"),
        minute=_starts(item, "minute_late", "minute_total"),
        **found,
    )


def _starts(item: Item, late: str, total: str) -> Starts:
    return Starts(late=int(item[late]["N"]), total=int(item[total]["N"])) if late in item else Starts()


def _stored(at: datetime) -> datetime:
    return from_milliseconds(milliseconds(at))

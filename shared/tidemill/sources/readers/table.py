"""A record of a user's DynamoDB stream, as Lambda gets it."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tidemill.domain.events.source_records import IMAGES_LEFT_OUT, ChangeKind, TableRecord


def read(body: Mapping[str, Any]) -> Iterator[TableRecord]:
    if IMAGES_LEFT_OUT in body:
        # The function would take an item without an image for one that does not exist.
        raise ValueError("its images were left out, since no message can hold them: publish its event yourself")
    change = body["dynamodb"]
    if _changes_nothing(change):
        return
    yield TableRecord(
        id=body["eventID"],
        # arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/LABEL
        table=body["eventSourceARN"].split("/")[1],
        change=ChangeKind(body["eventName"]),
        at=datetime.fromtimestamp(change["ApproximateCreationDateTime"], UTC),
        sequence=change["SequenceNumber"],
        keys=_item(change["Keys"]),
        old=_item(change["OldImage"]) if "OldImage" in change else None,
        new=_item(change["NewImage"]) if "NewImage" in change else None,
        # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html
        expired=body.get("userIdentity", {}).get("principalId") == "dynamodb.amazonaws.com",
    )


def _changes_nothing(change: Mapping[str, Any]) -> bool:
    """A write that leaves the item as it is. DynamoDB itself emits no record for one, but some emulators do.

    It compares what DynamoDB sent: as plain Python, 1 equals True, and numbers of many digits equal the nearest float.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
    """
    return "OldImage" in change and change["OldImage"] == change.get("NewImage")


def _item(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in attributes.items()}


def _plain(value: Mapping[str, Any]) -> Any:
    """Text, and what is plain already: `BOOL`, and `B`, which is Base64 in the event."""
    ((kind, held),) = value.items()
    return _READ.get(kind, _as_it_is)(held)


def _as_it_is(held: Any) -> Any:
    return held


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "N": _number,
    "NS": lambda held: sorted(map(_number, held)),
    "SS": sorted,
    "BS": sorted,
    "L": lambda held: [_plain(each) for each in held],
    "M": _item,
    "NULL": lambda _: None,
}

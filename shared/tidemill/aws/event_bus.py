"""Sends one event to an EventBridge bus."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import boto3

from tidemill.aws.clients import CONFIG, translated
from tidemill.domain.errors import TidemillError

#: The largest source, detail type and detail together, in bytes of UTF-8:
#: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevent-size.html
LARGEST_ENTRY_BYTES: Final = 256 * 1024


#: An entry with one of these is refused at each try. Rights may be given yet, so `AccessDeniedException` is not here.
#: https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html
_FOR_EVER: Final = ("MalformedDetail", "InvalidArgument")


class UnsendableEntryError(TidemillError):
    """EventBridge would refuse the event at each try."""


class EntryRefusedError(TidemillError):
    """The call succeeded, and EventBridge has not taken the entry: it is throttled, fails inside or denies it."""


@cache
def _client() -> Any:
    return boto3.client("events", config=CONFIG)


def put(bus: str, *, source: str, detail_type: str, detail: Mapping[str, Any]) -> str:
    """Returns the id that EventBridge has given the event.

    One entry for each call: a call answers 200 even if entries of it have failed, so each entry is judged by itself.
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html

    Raises `UnsendableEntryError`, `EntryRefusedError` and `StoreUnavailableError`.
    """
    text = json.dumps(detail, separators=(",", ":"), ensure_ascii=False)
    try:
        size = sum(len(part.encode()) for part in (source, detail_type, text))
    except UnicodeEncodeError as error:
        raise UnsendableEntryError("the event has half a surrogate pair, which has no form in UTF-8") from error
    if size >= LARGEST_ENTRY_BYTES:
        raise UnsendableEntryError(f"the event has {size} bytes, and a bus takes less than {LARGEST_ENTRY_BYTES}")
    entry = {"EventBusName": bus, "Source": source, "DetailType": detail_type, "Detail": text}
    with translated():
        answer = _client().put_events(Entries=[entry])
    (result,) = answer["Entries"]
    if answer["FailedEntryCount"] or "EventId" not in result:
        refused = UnsendableEntryError if result.get("ErrorCode") in _FOR_EVER else EntryRefusedError
        raise refused(f"{result.get('ErrorCode')}: {result.get('ErrorMessage')}")
    return str(result["EventId"])

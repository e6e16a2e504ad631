"""Sends one event to an EventBridge bus."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import boto3

from tidemill.aws.clients import CONFIG, translated
from tidemill.domain.errors import TidemillError

#: Of source, detail type and detail together, in bytes of UTF-8:
#: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevent-size.html
LARGEST_ENTRY_BYTES: Final = 256 * 1024


class EntryTooLargeError(TidemillError):
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

    Raises `EntryTooLargeError`, `EntryRefusedError` and `StoreUnavailableError`.
    """
    text = json.dumps(detail, separators=(",", ":"), ensure_ascii=False)
    size = sum(len(part.encode()) for part in (source, detail_type, text))
    if size >= LARGEST_ENTRY_BYTES:
        raise EntryTooLargeError(f"the event has {size} bytes, and a bus takes less than {LARGEST_ENTRY_BYTES}")
    entry = {"EventBusName": bus, "Source": source, "DetailType": detail_type, "Detail": text}
    with translated():
        answer = _client().put_events(Entries=[entry])
    (result,) = answer["Entries"]
    if answer["FailedEntryCount"] or "EventId" not in result:
        raise EntryRefusedError(f"{result.get('ErrorCode')}: {result.get('ErrorMessage')}")
    return str(result["EventId"])

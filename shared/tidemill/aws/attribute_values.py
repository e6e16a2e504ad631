"""Values of DynamoDB attributes in the wire form of the low-level client."""

import math
from datetime import UTC, datetime, timedelta
from typing import Final

from tidemill.aws.clients import Item

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def text(value: str) -> Item:
    return {"S": value}


def number(value: int) -> Item:
    return {"N": str(value)}


def milliseconds(value: datetime) -> Item:
    """Rounded up, so that nothing starts before its time."""
    return number(-((_EPOCH - value) // _MILLISECOND))


def seconds(value: datetime) -> Item:
    """As DynamoDB's TTL wants it. Rounded up, so that nothing is forgotten before its time."""
    return number(math.ceil((value - _EPOCH).total_seconds()))

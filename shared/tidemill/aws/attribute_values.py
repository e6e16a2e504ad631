"""Values of DynamoDB attributes in the wire form of the low-level client."""

import math
from datetime import datetime

from tidemill.aws.clients import Item
from tidemill.domain.time_constants import EPOCH, epoch_milliseconds


def text(value: str) -> Item:
    return {"S": value}


def number(value: int) -> Item:
    return {"N": str(value)}


def milliseconds(value: datetime) -> Item:
    """Rounded up, so that nothing starts before its time."""
    return number(epoch_milliseconds(value))


def seconds(value: datetime) -> Item:
    """Return the time as DynamoDB's TTL needs it, rounded up so that nothing is forgotten before its time."""
    return number(math.ceil((value - EPOCH).total_seconds()))


def whole_seconds(now: datetime) -> Item:
    """The present, to compare with the TTL. An item that expires in this second has expired."""
    return number(int(now.timestamp()))

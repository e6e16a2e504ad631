"""The item of one limit key, and its writes as DynamoDB requests. Pure; a comment above each clause names its race.

A slot is an attribute that holds the token of its run and the time when that run has ended at the latest. From that
time on the slot is free, so a killed worker holds back other jobs no longer than its lease. The rate is one number, the
theoretical arrival time of the generic cell rate algorithm: each run that starts moves it on by the interval of the
rate, and it may lie ahead of the present by at most the burst.
https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm
"""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from zlib import crc32

from tidemill.application.ports import LimitSlot
from tidemill.aws.attribute_values import number, seconds, text
from tidemill.aws.clients import Item
from tidemill.domain.limits import Rate
from tidemill.domain.time_constants import EPOCH
from tidemill.dynamodb.update_requests import Request, update
from tidemill.names import JOB_KEY, TTL_ATTRIBUTE

#: No tenant begins with it, so no item key of a job does.
LIMIT_PREFIX: Final = "!limit#"
#: A partition key holds 2,048 bytes. A longer limit key is replaced by its SHA-256.
_LONGEST_NAME: Final = 1_024
#: Longer than any lease and any period of a rate, so an item expires only when it limits nothing any more.
KEPT: Final = timedelta(days=2)

# Attributes of the item. All its times are epoch microseconds: an interval may be shorter than a millisecond.
_SLOT: Final = "slot_"
ARRIVAL: Final = "arrival"
#: The end of the line of jobs that wait for a rate.
LINE: Final = "line"
#: The token of the run that acquired last, for a limit key without slots.
LAST: Final = "last"

_MICROSECOND: Final = timedelta(microseconds=1)


def acquire_request(slot: LimitSlot, found: Item, *, now: datetime) -> Request | None:
    """The write that gives `slot` to its run if the item still is as `found`; None when `found` leaves no room."""
    sets = {TTL_ATTRIBUTE: seconds(now + KEPT)}
    values = {":now": _microseconds(now)}
    names, conditions, expressions = [], [], []
    if attributes := slot_attributes(slot):
        if not (free := [attribute for attribute in attributes if _is_free(found, attribute, now)]):
            return None
        chosen = chosen_attribute(free, slot)
        sets[chosen] = {"M": {"token": text(slot.token), "until": _microseconds(slot.until)}}
        names.append("until")
        # Another run has taken it since, and may still be at work.
        conditions.append(f"(attribute_not_exists(#{chosen}) OR #{chosen}.#until <= :now)")
    else:
        sets[LAST] = text(slot.token)
        # The SDK sends an applied write again: it must count once.
        conditions.append(f"(attribute_not_exists(#{LAST}) OR #{LAST} <> :new_{LAST})")
    if rate := slot.limit.rate:
        if earliest_entry(rate, found) > now:
            return None
        names.append(ARRIVAL)
        if time_of(found, ARRIVAL) > now:
            # Other runs have used up the burst since. The table adds, so of two concurrent runs both count.
            conditions += [f"#{ARRIVAL} > :now", f"#{ARRIVAL} <= :latest"]
            expressions.append(f"#{ARRIVAL} = #{ARRIVAL} + :interval")
            values |= {
                ":latest": _microseconds(now + _burst(rate)),
                ":interval": number(interval(rate) // _MICROSECOND),
            }
        else:
            # Another run has started since, so the limit key is no longer idle.
            conditions.append(f"(attribute_not_exists(#{ARRIVAL}) OR #{ARRIVAL} <= :now)")
            sets[ARRIVAL] = _microseconds(now + interval(rate))
    return update(
        _item_key(slot), sets=sets, conditions=conditions, names=names, values=values, expressions=expressions
    )


def release_request(slot: LimitSlot, attribute: str) -> Request:
    return {
        "Key": _item_key(slot),
        "UpdateExpression": "REMOVE #slot",
        # Its time was up, and another run has the slot now.
        "ConditionExpression": "#slot.#token = :token",
        "ExpressionAttributeNames": {"#slot": attribute, "#token": "token"},
        "ExpressionAttributeValues": {":token": text(slot.token)},
    }


def line_request(slot: LimitSlot, rate: Rate, found: Item, earliest: datetime, *, now: datetime) -> Request:
    """Move the end of the line on by one interval. The end before the write is the time that the job gets."""
    sets = {TTL_ATTRIBUTE: seconds(now + KEPT)}
    values = {":earliest": _microseconds(earliest)}
    if time_of(found, LINE) >= earliest:
        values[":interval"] = number(interval(rate) // _MICROSECOND)
        return update(
            _item_key(slot),
            sets=sets,
            # The item expired since.
            conditions=[f"#{LINE} >= :earliest"],
            expressions=[f"#{LINE} = #{LINE} + :interval"],
            names=[LINE],
            values=values,
        )
    return update(
        _item_key(slot),
        sets=sets | {LINE: _microseconds(earliest + interval(rate))},
        # Another job has begun a line since.
        conditions=[f"(attribute_not_exists(#{LINE}) OR #{LINE} < :earliest)"],
        names=[LINE],
        values=values,
    )


def slot_attributes(slot: LimitSlot) -> list[str]:
    """The names of the attributes that hold the slots of a limit; empty for a limit without `concurrency`."""
    return [f"{_SLOT}{index}" for index in range(slot.limit.concurrency or 0)]


def chosen_attribute(attributes: Sequence[str], slot: LimitSlot) -> str:
    """Spreads runs over the attributes. Acquire and release of one run choose the same."""
    return attributes[crc32(slot.token.encode()) % len(attributes)]


def tokens(item: Item) -> dict[str, str]:
    """The token in each slot attribute."""
    return {name: value["M"]["token"]["S"] for name, value in item.items() if name.startswith(_SLOT)}


def interval(rate: Rate) -> timedelta:
    """Rounded up to a whole microsecond, so that rounding never adds up to one run more."""
    return -(-rate.period // (rate.count * _MICROSECOND)) * _MICROSECOND


def earliest_entry(rate: Rate, item: Item) -> datetime:
    """When the rate lets the next run start; the epoch for a rate that no run has used."""
    return time_of(item, ARRIVAL) - _burst(rate) if ARRIVAL in item else EPOCH


def time_of(item: Item, name: str) -> datetime:
    """The epoch if the item has no such attribute."""
    return EPOCH + int(item[name]["N"]) * _MICROSECOND if name in item else EPOCH


def _item_key(slot: LimitSlot) -> Item:
    name = json.dumps([slot.limit_key])
    if len(name) > _LONGEST_NAME:
        name = hashlib.sha256(name.encode("ascii")).hexdigest()
    return {JOB_KEY: text(LIMIT_PREFIX + name)}


def _is_free(item: Item, attribute: str, now: datetime) -> bool:
    return attribute not in item or time_of(item[attribute]["M"], "until") <= now


def _burst(rate: Rate) -> timedelta:
    """How far ahead of the present the arrival time may lie when one more run starts."""
    return (rate.count - 1) * interval(rate)


def _microseconds(value: datetime) -> Item:
    return number((value - EPOCH) // _MICROSECOND)

"""The item of one key's limits, and its writes as DynamoDB requests. Pure; above each clause stands its race.

A slot is an attribute that names the run that has it and when that run has ended in any case. From then on it is free,
so a worker that was killed holds nobody up for longer than its lease. The rate is one number, the theoretical arrival
time of the generic cell rate algorithm: each run that begins moves it on by the rate's interval, and it may lie no
further ahead than the burst. https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm
"""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Final
from zlib import crc32

from tidemill.application.ports import Place
from tidemill.aws.attribute_values import number, seconds, text
from tidemill.aws.clients import Item
from tidemill.domain.limits import Rate
from tidemill.dynamodb.update_requests import Request, update
from tidemill.names import JOB_KEY, TTL_ATTRIBUTE

#: No tenant begins with it, so no key of a job does.
LIMIT_PREFIX: Final = "!limit#"
#: A partition key holds 2,048 bytes. What is longer than this goes by its hash.
_LONGEST_NAME: Final = 1_024
#: Longer than any lease and any rate's period, so no item goes that still says anything.
KEPT: Final = timedelta(days=2)

# Attributes of the item. All times in it are epoch microseconds: an interval may be shorter than a millisecond.
_SLOT: Final = "slot_"
ARRIVAL: Final = "arrival"
#: The end of the line of those who wait for a rate.
LINE: Final = "line"
#: The run that entered last, of a key without slots.
LAST: Final = "last"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def taking(place: Place, found: Item, *, now: datetime) -> Request | None:
    """What would give `place` to its run if the item still is as `found`; None when that leaves no room."""
    sets = {TTL_ATTRIBUTE: seconds(now + KEPT)}
    values = {":now": _microseconds(now)}
    names, conditions, expressions = [], [], []
    if slots := slots_of(place):
        if not (free := [slot for slot in slots if _is_free(found, slot, now)]):
            return None
        slot = choice(free, place)
        sets[slot] = {"M": {"token": text(place.token), "until": _microseconds(place.until)}}
        names.append("until")
        # Another run has taken it since, and may still be at work.
        conditions.append(f"(attribute_not_exists(#{slot}) OR #{slot}.#until <= :now)")
    else:
        sets[LAST] = text(place.token)
        # The SDK sends again what was applied: it must count once.
        conditions.append(f"(attribute_not_exists(#{LAST}) OR #{LAST} <> :new_{LAST})")
    if rate := place.limit.rate:
        if earliest_entry(rate, found) > now:
            return None
        names.append(ARRIVAL)
        if time_of(found, ARRIVAL) > now:
            # Others have used up the burst since. Added up by the table, so that of two who enter neither is lost.
            conditions += [f"#{ARRIVAL} > :now", f"#{ARRIVAL} <= :latest"]
            expressions.append(f"#{ARRIVAL} = #{ARRIVAL} + :interval")
            values |= {
                ":latest": _microseconds(now + _burst(rate)),
                ":interval": number(interval(rate) // _MICROSECOND),
            }
        else:
            # Somebody has entered since, so the key is idle no longer.
            conditions.append(f"(attribute_not_exists(#{ARRIVAL}) OR #{ARRIVAL} <= :now)")
            sets[ARRIVAL] = _microseconds(now + interval(rate))
    return update(_key(place), sets=sets, conditions=conditions, names=names, values=values, expressions=expressions)


def leaving(place: Place, slot: str) -> Request:
    return {
        "Key": _key(place),
        "UpdateExpression": "REMOVE #slot",
        # Its time was up, and another run has the slot now.
        "ConditionExpression": "#slot.#token = :token",
        "ExpressionAttributeNames": {"#slot": slot, "#token": "token"},
        "ExpressionAttributeValues": {":token": text(place.token)},
    }


def lining_up(place: Place, rate: Rate, found: Item, earliest: datetime, *, now: datetime) -> Request:
    """Moves the end of the line on by one interval; it then says when the place before it is."""
    sets = {TTL_ATTRIBUTE: seconds(now + KEPT)}
    values = {":earliest": _microseconds(earliest)}
    if time_of(found, LINE) >= earliest:
        values[":interval"] = number(interval(rate) // _MICROSECOND)
        return update(
            _key(place),
            sets=sets,
            # The item went with its time.
            conditions=[f"#{LINE} >= :earliest"],
            expressions=[f"#{LINE} = #{LINE} + :interval"],
            names=[LINE],
            values=values,
        )
    return update(
        _key(place),
        sets=sets | {LINE: _microseconds(earliest + interval(rate))},
        # Somebody else has begun a line since.
        conditions=[f"(attribute_not_exists(#{LINE}) OR #{LINE} < :earliest)"],
        names=[LINE],
        values=values,
    )


def _key(place: Place) -> Item:
    name = json.dumps([place.key])
    if len(name) > _LONGEST_NAME:
        name = hashlib.sha256(name.encode("ascii")).hexdigest()
    return {JOB_KEY: text(LIMIT_PREFIX + name)}


def slots_of(place: Place) -> list[str]:
    return [f"{_SLOT}{slot}" for slot in range(place.limit.concurrency or 0)]


def choice(slots: list[str], place: Place) -> str:
    """Spread over the slots, and the same when the place is taken and when it is given back."""
    return slots[crc32(place.token.encode()) % len(slots)]


def tokens(item: Item) -> dict[str, str]:
    return {name: value["M"]["token"]["S"] for name, value in item.items() if name.startswith(_SLOT)}


def _is_free(item: Item, slot: str, now: datetime) -> bool:
    return slot not in item or time_of(item[slot]["M"], "until") <= now


def interval(rate: Rate) -> timedelta:
    """To the next microsecond, so that what is rounded never adds up to one run more."""
    return -(-rate.period // (rate.count * _MICROSECOND)) * _MICROSECOND


def _burst(rate: Rate) -> timedelta:
    """How far ahead of now the arrival time may lie for one more to enter."""
    return (rate.count - 1) * interval(rate)


def earliest_entry(rate: Rate, item: Item) -> datetime:
    return time_of(item, ARRIVAL) - _burst(rate) if ARRIVAL in item else _EPOCH


def time_of(item: Item, name: str) -> datetime:
    """The beginning of time where there is none."""
    return _EPOCH + int(item[name]["N"]) * _MICROSECOND if name in item else _EPOCH


def _microseconds(value: datetime) -> Item:
    return number((value - _EPOCH) // _MICROSECOND)

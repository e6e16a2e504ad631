"""The item of one limit key, and its writes as DynamoDB requests. Pure; a comment above each clause names its race.

The slots are one map, from a short name to the time at which the slot is free in any case. So the size of the map is
the number of slots in use, one condition bounds it, and a hundred slots take less than two kilobytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from zlib import crc32

from tidemill.application.ports import LimitSlot
from tidemill.aws.attribute_values import milliseconds, number, seconds, text
from tidemill.aws.clients import Item
from tidemill.domain.limit_state import RESERVED, LimitState, Turn, burst, interval, run_name
from tidemill.domain.limits import Limit, Rate
from tidemill.domain.pauses import Drain
from tidemill.domain.time_constants import EPOCH
from tidemill.domain.waiting import Cause, Line
from tidemill.dynamodb.document import from_milliseconds
from tidemill.dynamodb.update_requests import Request
from tidemill.names import ATTENTION_KEY, ATTENTION_SORT_KEY, JOB_KEY, TTL_ATTRIBUTE

#: The limit items with a line are spread over this many partitions of the attention index. An item enters and leaves
#: the index once for each time its key is crowded, so few are enough.
LINE_SHARDS: Final = 4
#: No tenant begins with it, so no item key of a job does.
LIMIT_PREFIX: Final = "!limit#"
#: The same for the lines of a pause and of a job type, whose items have a rate, and no slots.
PAUSE_PREFIX: Final = "!pause#"
TYPE_PREFIX: Final = "!type#"
#: The same for a breaker, whose item has its state too: see `breaker_item`.
BREAKER_PREFIX: Final = "!breaker#"
_PREFIXES: Final[Mapping[Cause, str]] = {
    Cause.LIMIT: LIMIT_PREFIX,
    Cause.PAUSE: PAUSE_PREFIX,
    Cause.TYPE: TYPE_PREFIX,
    Cause.BREAKER: BREAKER_PREFIX,
}
#: Longer than any lease and any period of a rate, so an item expires only when it limits nothing any more. While jobs
#: are parked, wake writes the item at least once in each period.
KEPT: Final = timedelta(days=2)

HELD: Final = "held"
#: Epoch microseconds, as `promised`: an interval may be shorter than a millisecond.
ARRIVAL: Final = "arrival"
PROMISED: Final = "promised"
#: In microseconds.
SPACING: Final = "spacing"
#: The token of the run that entered last, for a limit key without slots.
LAST_RUN: Final = "last_run"
#: The job that was the last to find no room, and when.
LAST: Final = "last"
LAST_AT: Final = "last_at"
#: The limit without overrides, for wake, which knows no job types.
_SLOTS: Final = "slots"
_COUNT: Final = "count"
_PERIOD: Final = "period"

_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(slots=True)
class _Write:
    """One UpdateItem under construction. Every name uses an alias, since `last` and others are reserved words."""

    line: Line
    sets: dict[str, str] = field(default_factory=dict)
    removes: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Item] = field(default_factory=dict)
    slots: dict[str, str] = field(default_factory=dict)

    def name(self, name: str) -> str:
        self.names[f"#{name}"] = name
        return f"#{name}"

    def slot(self, name: str) -> str:
        """Short, since one write may name a hundred: see `MOST_AT_ONCE`."""
        alias = self.slots.setdefault(name, f"#s{len(self.slots)}")
        self.names[alias] = name
        return f"{self.name(HELD)}.{alias}"

    def value(self, name: str, value: Item) -> str:
        self.values[f":{name}"] = value
        return f":{name}"

    def set(self, name: str, value: Item) -> None:
        self.sets[self.name(name)] = self.value(f"new_{name}", value)

    def request(self) -> Request:
        expression = ""
        if self.sets:
            expression = "SET " + ", ".join(f"{path} = {value}" for path, value in self.sets.items())
        if self.removes:
            expression += " REMOVE " + ", ".join(self.removes)
        request: Request = {
            "Key": item_key(self.line),
            "UpdateExpression": expression.strip(),
            "ExpressionAttributeNames": self.names,
        }
        if self.conditions:
            request["ConditionExpression"] = " AND ".join(self.conditions)
        return request | ({"ExpressionAttributeValues": self.values} if self.values else {})


def enter(slot: LimitSlot, state: LimitState, *, now: datetime) -> Request:
    """The write that lets the run in, if the item leaves room as `state` says."""
    write = _Write(slot.line)
    write.set(TTL_ATTRIBUTE, seconds(now + KEPT))
    concurrency = slot.limit.concurrency
    if concurrency is None:
        write.set(LAST_RUN, text(slot.token))
        # The SDK sends an applied write again: it must count once.
        write.conditions.append(f"(attribute_not_exists(#{LAST_RUN}) OR #{LAST_RUN} <> :new_{LAST_RUN})")
    else:
        used = state.reservation_for_use(slot.reservation) if slot.released else None
        _change_slots(
            write,
            state,
            concurrency,
            adds={run_name(slot.token): slot.until},
            gives=[used] if used else [],
            over=[name for name in state.over(now) if name != used],
            now=now,
        )
    if slot.limit.rate:
        _start(write, slot.limit.rate, state, now)
        if state.under(slot.limit.rate, now).promised != state.promised:
            # Another job has got a time since, at the present rate.
            write.conditions.append(_unchanged(write, PROMISED, state.promised))
            write.set(PROMISED, _microseconds(now))
        elif not slot.released:
            # The times until then are promised to jobs that came before.
            write.conditions.append(f"(attribute_not_exists({write.name(PROMISED)}) OR #{PROMISED} <= :now_exactly)")
            write.value("now_exactly", _microseconds(now))
    return write.request()


def leave(slot: LimitSlot) -> Request:
    """Give the slot back, unless a job may wait for it."""
    write = _vacate(slot.line, run_name(slot.token))
    # A job was parked since this run entered: it gets the slot.
    write.conditions.append(f"attribute_not_exists({write.name(ATTENTION_KEY)})")
    return write.request()


def vacate(line: Line, name: str) -> Request:
    """Give the slot back, though jobs may wait for it."""
    return _vacate(line, name).request()


def _vacate(line: Line, name: str) -> _Write:
    write = _Write(line)
    path = write.slot(name)
    write.removes.append(path)
    write.conditions += [
        # The item has expired since.
        f"attribute_exists({write.name(HELD)})",
        # Its time was up, or the SDK sends an applied write again.
        f"attribute_exists({path})",
    ]
    return write


def mark(slot: LimitSlot, state: LimitState, *, now: datetime) -> Request:
    """List the item for wake before the job is parked, so that the job is found even if this worker dies."""
    write = _Write(slot.line)
    if slot.line.cause is Cause.LIMIT:
        write.set(TTL_ATTRIBUTE, seconds(now + KEPT))
    else:
        # Nothing writes the item while its jobs wait. `clear` lets it expire.
        write.removes.append(write.name(TTL_ATTRIBUTE))
    write.set(LAST, text("#".join(slot.job)))
    write.set(LAST_AT, milliseconds(now))
    if not state.marked:
        shard = crc32(slot.line.key.encode()) % LINE_SHARDS
        write.set(ATTENTION_KEY, text(lines_partition(shard)))
        write.set(ATTENTION_SORT_KEY, milliseconds(now))
    for name, value in _limit_fields(slot.lasting).items():
        if value is None:
            write.removes.append(write.name(name))
        else:
            write.set(name, value)
    # A later job marked it since. The mark must stay until that one is parked.
    write.conditions.append(f"(attribute_not_exists(#{LAST_AT}) OR #{LAST_AT} <= :new_{LAST_AT})")
    if state.marked:
        # Wake has taken the mark away since it was read.
        write.conditions.append(f"attribute_exists({write.name(ATTENTION_KEY)})")
    return write.request()


def mark_drain(drain: Drain) -> Request:
    """List the line of a pause for wake, for the transaction that changes the pause."""
    write = _Write(drain.line)
    shard = crc32(drain.line.key.encode()) % LINE_SHARDS
    write.set(ATTENTION_KEY, text(lines_partition(shard)))
    write.set(ATTENTION_SORT_KEY, milliseconds(drain.ends_at))
    write.set(LAST_AT, milliseconds(drain.ends_at))
    write.set(_COUNT, number(drain.rate.count))
    write.set(_PERIOD, number(drain.rate.period // _MICROSECOND))
    # An earlier pause of the same name has ended, and its line was cleared.
    write.removes.append(write.name(TTL_ATTRIBUTE))
    return write.request()


def reserve(
    line: Line, state: LimitState, turns: Sequence[Turn], *, leaving: str | None, now: datetime
) -> Request | None:
    """Give these turns, and the slot `leaving` back with them. None if there is nothing to write."""
    limit = state.limit
    write = _Write(line)
    fresh = [turn for turn in turns if not turn.reserved]
    if limit is None or not fresh:
        return None
    if line.cause is Cause.LIMIT:
        write.set(TTL_ATTRIBUTE, seconds(now + KEPT))
    if limit.concurrency is not None:
        adds = {turn.reservation: turn.due + RESERVED for turn in fresh}
        gives = [leaving] if leaving else []
        over = [name for name in state.over(now) if name not in {leaving, *adds}]
        _change_slots(write, state, limit.concurrency, adds=adds, gives=gives, over=over, now=now)
    if limit.rate:
        write.set(PROMISED, _microseconds(max(turn.due for turn in fresh) + interval(limit.rate)))
        # Another release has promised these times since.
        write.conditions.append(_unchanged(write, PROMISED, state.promised))
    return write.request()


def promise(slot: LimitSlot, rate: Rate, state: LimitState, at: datetime, *, now: datetime) -> Request:
    """Give the job the time `at`, which no other job has."""
    write = _Write(slot.line)
    write.set(TTL_ATTRIBUTE, seconds(now + KEPT))
    write.set(PROMISED, _microseconds(at + interval(rate)))
    # Another job has got that time since.
    write.conditions.append(_unchanged(write, PROMISED, state.promised))
    return write.request()


def clear(line: Line, state: LimitState) -> Request:
    """No job waits: wake need not look any more."""
    write = _Write(line)
    write.removes += [write.name(name) for name in (ATTENTION_KEY, ATTENTION_SORT_KEY, LAST, LAST_AT)]
    if line.cause is not Cause.LIMIT:
        # The item has no other use. While its jobs wait, nothing writes it, so it does not expire before.
        write.set(TTL_ATTRIBUTE, seconds(state.last_at + KEPT))
    # A job has found no room since, and is about to be parked. Or the line is that of a pause, which has begun anew.
    write.conditions.append(f"#{LAST_AT} = {write.value('seen', milliseconds(state.last_at))}")
    return write.request()


def decoded(item: Item) -> LimitState:
    tenant, _, job_id = item[LAST]["S"].rpartition("#") if LAST in item else ("", "", "")
    held = item[HELD]["M"] if HELD in item else None
    return LimitState(
        limit=_limit_of(item),
        held=None if held is None else {name: from_milliseconds(until) for name, until in held.items()},
        arrival=_time(item, ARRIVAL),
        promised=_time(item, PROMISED),
        spacing=int(item[SPACING]["N"]) * _MICROSECOND if SPACING in item else None,
        marked=ATTENTION_KEY in item,
        last=(tenant, job_id) if LAST in item else None,
        last_at=from_milliseconds(item[LAST_AT]) if LAST_AT in item else EPOCH,
        last_run=item[LAST_RUN]["S"] if LAST_RUN in item else None,
    )


def item_key(line: Line) -> Item:
    return {JOB_KEY: text(_PREFIXES[line.cause] + line.key)}


def line_of(entry: Item) -> Line:
    """The line of an entry of the attention index."""
    key: str = entry[JOB_KEY]["S"]
    cause = next((cause for cause, prefix in _PREFIXES.items() if key.startswith(prefix)), Cause.LIMIT)
    return Line(cause, key.removeprefix(_PREFIXES[cause]))


def lines_partition(shard: int) -> str:
    return f"lines#{shard}"


def _change_slots(
    write: _Write,
    state: LimitState,
    concurrency: int,
    *,
    adds: Mapping[str, datetime],
    gives: Iterable[str],
    over: Iterable[str],
    now: datetime,
) -> None:
    if state.held is None:
        write.set(HELD, {"M": {name: milliseconds(until) for name, until in adds.items()}})
        # Another run has entered first.
        write.conditions.append(f"attribute_not_exists(#{HELD})")
        return
    # The item has expired since, or has no slots yet. Then there is nothing to measure.
    write.conditions.append(f"attribute_exists({write.name(HELD)})")
    gone = 0
    for name in gives:
        write.removes.append(write.slot(name))
        # Its time was up, and another write has removed it.
        write.conditions.append(f"attribute_exists({write.slot(name)})")
        gone += 1
    for name in over:
        write.removes.append(write.slot(name))
        # Another write has removed it, or has given it a new time.
        write.conditions.append(f"{write.slot(name)} <= {write.value('now', milliseconds(now))}")
        gone += 1
    for name, until in adds.items():
        write.sets[write.slot(name)] = write.value(f"until{len(write.values)}", milliseconds(until))
        # The SDK sends an applied write again, or a concurrent release has reserved for the same job.
        write.conditions.append(f"attribute_not_exists({write.slot(name)})")
    if adds:
        # Other runs have entered since. Those that leave with this write make room.
        write.value("most", number(concurrency - len(adds) + gone))
        write.conditions.append(f"size({write.name(HELD)}) <= :most")


def _start(write: _Write, rate: Rate, state: LimitState, now: datetime) -> None:
    """Move the arrival time on."""
    name = write.name(ARRIVAL)
    write.set(SPACING, number(interval(rate) // _MICROSECOND))
    known = state.under(rate, now).arrival
    if known != state.arrival:
        # Another run has started since, at the present rate.
        write.conditions.append(_unchanged(write, ARRIVAL, state.arrival))
        write.set(ARRIVAL, _microseconds(known + interval(rate)))
        return
    write.value("now_exactly", _microseconds(now))
    if state.arrival > now:
        # Other runs have used up the burst since. The table adds, so of two concurrent runs both count.
        write.conditions += [f"{name} > :now_exactly", f"{name} <= :latest"]
        write.sets[name] = f"{name} + :interval"
        write.value("latest", _microseconds(now + burst(rate)))
        write.value("interval", number(interval(rate) // _MICROSECOND))
    else:
        # Another run has started since, so the limit key is no longer idle.
        write.conditions.append(f"(attribute_not_exists({name}) OR {name} <= :now_exactly)")
        write.set(ARRIVAL, _microseconds(now + interval(rate)))


def _unchanged(write: _Write, name: str, seen: datetime) -> str:
    if seen == EPOCH:
        return f"attribute_not_exists({write.name(name)})"
    return f"{write.name(name)} = {write.value(f'seen_{name}', _microseconds(seen))}"


def _limit_fields(limit: Limit) -> dict[str, Item | None]:
    rate = limit.rate
    return {
        _SLOTS: None if limit.concurrency is None else number(limit.concurrency),
        _COUNT: None if rate is None else number(rate.count),
        _PERIOD: None if rate is None else number(rate.period // _MICROSECOND),
    }


def _limit_of(item: Item) -> Limit | None:
    rate = Rate(count=int(item[_COUNT]["N"]), period=int(item[_PERIOD]["N"]) * _MICROSECOND) if _COUNT in item else None
    concurrency = int(item[_SLOTS]["N"]) if _SLOTS in item else None
    return None if rate is None and concurrency is None else Limit(concurrency=concurrency, rate=rate)


def _time(item: Item, name: str) -> datetime:
    return EPOCH + int(item[name]["N"]) * _MICROSECOND if name in item else EPOCH


def _microseconds(value: datetime) -> Item:
    return number((value - EPOCH) // _MICROSECOND)

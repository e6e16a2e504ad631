"""The item of one limit key, and its writes as DynamoDB requests. Pure; a comment above each clause names its race.

The slots are one map, from a short name to the time at which the slot is free in any case. So the size of the map is
the number of slots in use, one condition bounds it, and a hundred slots take less than two kilobytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from zlib import crc32

from tidemill.application.ports import LimitSlot
from tidemill.aws.attribute_values import milliseconds, number, seconds, text
from tidemill.aws.clients import Item
from tidemill.domain.limits.adaptive_limit import ConcurrencyChange
from tidemill.domain.limits.limit_state import RESERVED, LimitState, Turn, burst, interval, run_name, slack
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.time_constants import EPOCH, MICROSECOND
from tidemill.domain.waiting.pauses import Drain
from tidemill.domain.waiting.waiting import Cause, Line
from tidemill.dynamodb.document import from_milliseconds
from tidemill.dynamodb.limits import adaptive_number
from tidemill.dynamodb.limits.adaptive_number import BOUNDS, adapted_of, bounds_field, bounds_of
from tidemill.dynamodb.limits.limit_write import HELD, LimitWrite
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


def enter(slot: LimitSlot, state: LimitState, *, now: datetime) -> Request:
    """The write that lets the run in, if the item leaves room as `state` says."""
    write = LimitWrite(item_key(slot.line))
    write.set(TTL_ATTRIBUTE, seconds(now + KEPT))
    if not slot.limit.has_slots:
        write.set(LAST_RUN, text(slot.token))
        # The SDK sends an applied write again: it must count once.
        write.conditions.append(f"(attribute_not_exists(#{LAST_RUN}) OR #{LAST_RUN} <> :new_{LAST_RUN})")
    else:
        used = state.reservation_for_use(slot.reservation) if slot.released else None
        _change_slots(
            write,
            state,
            slot.limit,
            adds={run_name(slot.token): slot.until},
            gives=[used] if used else [],
            over=[name for name in state.over(now) if name != used],
            now=now,
        )
    if slot.limit.rate:
        _start(write, slot, slot.limit.rate, state, now)
        if state.under(slot.limit.rate, now).promised != state.promised:
            # Another job has got a time since, at the present rate.
            write.conditions.append(_unchanged(write, PROMISED, state.promised))
            write.set(PROMISED, _microseconds(now))
        elif not slot.released:
            # The times until then are promised to jobs that came before.
            write.conditions.append(f"(attribute_not_exists({write.name(PROMISED)}) OR #{PROMISED} <= :now_exactly)")
            write.value("now_exactly", _microseconds(now))
    return write.request()


def leave(slot: LimitSlot, change: ConcurrencyChange | None = None) -> Request:
    """Give the slot back, unless a job may wait for it."""
    write = _vacate(slot.line, run_name(slot.token))
    adaptive_number.change(write, change)
    # A job was parked since this run entered: it gets the slot.
    write.conditions.append(f"attribute_not_exists({write.name(ATTENTION_KEY)})")
    return write.request()


def vacate(line: Line, name: str, change: ConcurrencyChange | None = None) -> Request:
    """Give the slot back, though jobs may wait for it."""
    write = _vacate(line, name)
    adaptive_number.change(write, change)
    return write.request()


def _vacate(line: Line, name: str) -> LimitWrite:
    write = LimitWrite(item_key(line))
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
    write = LimitWrite(item_key(slot.line))
    if slot.line.cause is Cause.LIMIT:
        write.set(TTL_ATTRIBUTE, seconds(now + KEPT))
    else:
        # Nothing writes the item while its jobs wait. `clear` lets it expire.
        write.removes.append(write.name(TTL_ATTRIBUTE))
    write.set(LAST, text("#".join(slot.job)))
    # A mark that was read may be of a later time, since workers race and their clocks differ.
    write.set(LAST_AT, milliseconds(max(now, state.last_at)))
    if not state.marked:
        shard = crc32(slot.line.key.encode()) % LINE_SHARDS
        write.set(ATTENTION_KEY, text(lines_partition(shard)))
        write.set(ATTENTION_SORT_KEY, milliseconds(now))
    for name, value in _limit_fields(slot.lasting, state).items():
        if value is None:
            write.removes.append(write.name(name))
        else:
            write.set(name, value)
    # A later job marked it since. The mark must stay until that one is parked.
    write.conditions.append(f"(attribute_not_exists(#{LAST_AT}) OR #{LAST_AT} <= :new_{LAST_AT})")
    if state.marked:
        # Wake has taken the mark away since it was read.
        write.conditions.append(f"attribute_exists({write.name(ATTENTION_KEY)})")
    if slot.released and slot.reservation in (state.held or ()):
        # The limit was lowered since. A reservation that it kept would release the job again at once.
        write.removes.append(write.slot(slot.reservation))
        # The item has expired since.
        write.conditions.append(f"attribute_exists({write.name(HELD)})")
    return write.request()


def mark_drain(drain: Drain) -> Request:
    """List the line of a pause for wake, for the transaction that changes the pause."""
    write = LimitWrite(item_key(drain.line))
    shard = crc32(drain.line.key.encode()) % LINE_SHARDS
    write.set(ATTENTION_KEY, text(lines_partition(shard)))
    write.set(ATTENTION_SORT_KEY, milliseconds(drain.ends_at))
    write.set(LAST_AT, milliseconds(drain.ends_at))
    write.set(_COUNT, number(drain.rate.count))
    write.set(_PERIOD, number(drain.rate.period // MICROSECOND))
    # An earlier pause of the same name has ended, and its line was cleared.
    write.removes.append(write.name(TTL_ATTRIBUTE))
    return write.request()


def reserve(
    line: Line,
    state: LimitState,
    turns: Sequence[Turn],
    *,
    leaving: str | None,
    now: datetime,
    change: ConcurrencyChange | None = None,
) -> Request | None:
    """Give these turns, and the slot `leaving` back with them, with its `change`. None if there is nothing to write."""
    limit = state.limit
    write = LimitWrite(item_key(line))
    fresh = [turn for turn in turns if not turn.reserved]
    if limit is None or not fresh:
        return None
    if line.cause is Cause.LIMIT:
        write.set(TTL_ATTRIBUTE, seconds(now + KEPT))
    if limit.has_slots:
        adds = {turn.reservation: turn.due + RESERVED for turn in fresh}
        gives = [leaving] if leaving else []
        over = [name for name in state.over(now) if name not in {leaving, *adds}]
        _change_slots(write, state, limit, adds=adds, gives=gives, over=over, now=now, change=change)
        adaptive_number.change(write, change)
    if limit.rate:
        write.set(PROMISED, _microseconds(max(turn.due for turn in fresh) + interval(limit.rate)))
        # Another release has promised these times since.
        write.conditions.append(_unchanged(write, PROMISED, state.promised))
    return write.request()


def promise(slot: LimitSlot, rate: Rate, state: LimitState, at: datetime, *, now: datetime) -> Request:
    """Give the job the time `at`, which no other job has."""
    write = LimitWrite(item_key(slot.line))
    write.set(TTL_ATTRIBUTE, seconds(now + KEPT))
    write.set(PROMISED, _microseconds(at + interval(rate)))
    # Another job has got that time since.
    write.conditions.append(_unchanged(write, PROMISED, state.promised))
    return write.request()


def clear(line: Line, state: LimitState) -> Request:
    """No job waits: wake need not look any more."""
    write = LimitWrite(item_key(line))
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
        spacing=int(item[SPACING]["N"]) * MICROSECOND if SPACING in item else None,
        marked=ATTENTION_KEY in item,
        last=(tenant, job_id) if LAST in item else None,
        last_at=from_milliseconds(item[LAST_AT]) if LAST_AT in item else EPOCH,
        last_run=item[LAST_RUN]["S"] if LAST_RUN in item else None,
        adapted=adapted_of(item),
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
    write: LimitWrite,
    state: LimitState,
    limit: Limit,
    *,
    adds: Mapping[str, datetime],
    gives: Iterable[str],
    over: Iterable[str],
    now: datetime,
    change: ConcurrencyChange | None = None,
) -> None:
    if state.held is None:
        write.set(HELD, {"M": {name: milliseconds(until) for name, until in adds.items()}})
        # Another run has entered first.
        write.conditions.append(f"attribute_not_exists(#{HELD})")
        if limit.adaptive and state.adapted is None:
            adaptive_number.begin(write, limit.adaptive)
        return
    # The item has expired since, or has no slots yet. Then there is nothing to measure.
    write.conditions.append(f"attribute_exists({write.name(HELD)})")
    gone, handed = 0, 0
    for name in gives:
        write.removes.append(write.slot(name))
        # Its time was up, and another write has removed it.
        write.conditions.append(f"attribute_exists({write.slot(name)})")
        gone, handed = gone + 1, handed + 1
    for name in over:
        write.removes.append(write.slot(name))
        # Another write has removed it, or has given it a new time.
        write.conditions.append(f"{write.slot(name)} <= {write.value('now', milliseconds(now))}")
        gone += 1
    for name, until in adds.items():
        write.sets[write.slot(name)] = write.value(f"until{len(write.values)}", milliseconds(until))
        # The SDK sends an applied write again, or a concurrent release has reserved for the same job.
        write.conditions.append(f"attribute_not_exists({write.slot(name)})")
    if limit.adaptive:
        adaptive_number.bound(write, limit.adaptive, state, adds=len(adds), gives=handed, gone=gone, change=change)
    elif limit.concurrency is not None:
        # Other runs have entered since. Those that leave with this write make room.
        write.value("most", number(limit.concurrency - len(adds) + gone))
        write.conditions.append(f"size({write.name(HELD)}) <= :most")


def _start(write: LimitWrite, slot: LimitSlot, rate: Rate, state: LimitState, now: datetime) -> None:
    """Move the arrival time on."""
    name = write.name(ARRIVAL)
    write.set(SPACING, number(interval(rate) // MICROSECOND))
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
        write.value("latest", _microseconds(now + burst(rate) + (slack(rate) if slot.released else timedelta(0))))
        write.value("interval", number(interval(rate) // MICROSECOND))
    else:
        # Another run has started since, so the limit key is no longer idle.
        write.conditions.append(f"(attribute_not_exists({name}) OR {name} <= :now_exactly)")
        write.set(ARRIVAL, _microseconds(now + interval(rate)))


def _unchanged(write: LimitWrite, name: str, seen: datetime) -> str:
    if seen == EPOCH:
        return f"attribute_not_exists({write.name(name)})"
    return f"{write.name(name)} = {write.value(f'seen_{name}', _microseconds(seen))}"


def _limit_fields(limit: Limit, state: LimitState) -> dict[str, Item | None]:
    rate, slots = limit.rate, limit.slots(state.adapted)
    return {
        # The present number of an adaptive one, for a version of the code that knows no other.
        _SLOTS: None if slots is None else number(slots),
        BOUNDS: bounds_field(limit.adaptive),
        _COUNT: None if rate is None else number(rate.count),
        _PERIOD: None if rate is None else number(rate.period // MICROSECOND),
    }


def _limit_of(item: Item) -> Limit | None:
    rate = Rate(count=int(item[_COUNT]["N"]), period=int(item[_PERIOD]["N"]) * MICROSECOND) if _COUNT in item else None
    adaptive = bounds_of(item)
    concurrency = int(item[_SLOTS]["N"]) if _SLOTS in item and adaptive is None else None
    if rate is None and concurrency is None and adaptive is None:
        return None
    return Limit(concurrency=concurrency, rate=rate, adaptive=adaptive)


def _time(item: Item, name: str) -> datetime:
    return EPOCH + int(item[name]["N"]) * MICROSECOND if name in item else EPOCH


def _microseconds(value: datetime) -> Item:
    return number((value - EPOCH) // MICROSECOND)

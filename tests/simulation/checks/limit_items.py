"""Checks of each write of a limit item: what is taken, given or promised stands there in full, and no run takes more.

All figures are those of the job type and of the design, not those of the engine.
"""

import base64
import hashlib
from datetime import timedelta
from typing import Final

from tests.simulation.checks.adaptive_limits import slots_of
from tests.simulation.checks.caps import CapChecks
from tests.simulation.checks.limit_keys import limit_of
from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import Item, number_of, require, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.world import World
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.states import State

_PREFIX: Final = "!limit#"
#: The item of a cap. After it was removed, so many of its jobs may come at once.
_CAP: Final = "!limit#{"
_NO_CAP: Final = 100
_CHECK: Final = "limit items say what was taken"
_FITS: Final = "a limit is not overdrawn"
_KEPT_MS: Final = 2 * 86_400_000
#: How long a slot is kept for a released job, and how far ahead a time may be promised.
_RESERVED_MS: Final = 60_000
_PROMISED_AHEAD_MS: Final = 120_000
#: A line stays listed for so long after the last job found no room: longer than any invocation.
_LISTED_MS: Final = 20 * 60_000
#: The time between the look at the clock and the write: a few calls without faults, each of them retried, or with a
#: frozen environment in between. It thaws when its function is called again.
_CALLS_TAKE_MS: Final = 1_000
_FAULTY_CALLS_TAKE_MS: Final = 100_000
_FROZEN_MS: Final = 2 * 86_400_000
_PARTITIONS: Final = frozenset(f"lines#{shard}" for shard in range(4))
_SLACK_US: Final = 1_000_000
_MICROSECOND: Final = timedelta(microseconds=1)


class LimitItemChecks:
    """Watches the limit items of one world."""

    def __init__(self, world: World, caps: CapChecks) -> None:
        self._world = world
        self._caps = caps
        #: By limit item and name of a run, the process that entered.
        self._holders: dict[tuple[str, str], str] = {}
        watch_items(world, self._changed)

    def _changed(self, key: str, record: Record) -> None:
        before, after = record.before or {}, record.after
        task = self._world.scheduler.current
        if after is None or task is None or self._far_off:
            return
        now_ms = record.at_ms + task.process.skew_ms
        if _state(before) == State.PARKED and _state(after) == State.QUEUED:
            self.released_jobs_have_a_turn(key, after, now_ms)
        if not key.startswith(_PREFIX):
            return
        self.it_lasts(key, before, after, now_ms)
        self.slots_are_taken_and_given_back(key, before, after, now_ms, task.process.name)
        if rate := self._limit(key, now_ms).rate:
            self.starts_are_counted(key, before, after, now_ms, rate)
            self.times_are_promised_once(key, before, after, now_ms, rate)
        self.lines_are_listed(key, before, after, now_ms)

    def released_jobs_have_a_turn(self, key: str, after: Item, now_ms: int) -> None:
        """The item says so before the job is released. In a world with faults a reservation may have ended since.

        While functions differ about a cap, one may give the reservation back with which another releases the job.
        """
        if "wait" not in after or after["wait"]["M"]["cause"]["S"] != "limit":
            return
        name = _PREFIX + after["wait"]["M"]["key"]["S"]
        item, limit = self._world.jobs.items.get((name,), {}), self._limit(name, now_ms)
        if limit.rate and "nudged_at" not in after:
            spare = number_of(item, "promised") - _interval(limit.rate) - number_of(after, "due") * 1000
            require(spare >= 0, _FITS, f"released {-spare} us after the last promised time", key)
        differ = name.startswith(_CAP) and len(self._caps.caps_of(name, now_ms)) > 1
        if limit.has_slots and not differ and not any(self._world.faults.rates.values()):
            require("+" + _name_of_run(key) in _held(item), _FITS, "released without a slot", key)

    def it_lasts(self, key: str, before: Item, after: Item, now_ms: int) -> None:
        """Every write but one that only gives back puts the expiry off."""
        expires_ms = number_of(after, "expires_at") * 1000
        gives_back = expires_ms == number_of(before, "expires_at") * 1000 != 0
        gives_back = gives_back and all(after.get(name) == before.get(name) for name in ("arrival", "promised"))
        gives_back = gives_back and _held(after).keys() <= _held(before).keys() and not _marked_anew(before, after)
        late_ms = expires_ms - now_ms - _KEPT_MS
        recent = -self._calls_take_ms <= late_ms <= 1000 + self._calls_take_ms
        require(gives_back or recent, _CHECK, f"expires {late_ms} ms after it should", key)

    def slots_are_taken_and_given_back(self, key: str, before: Item, after: Item, now_ms: int, by: str) -> None:
        limit = self._limit(key, now_ms)
        most = slots_of(limit, after)
        was, held = _held(before), _held(after)
        require(most is not None or "held" not in after, _FITS, "slots of a type without slots", key)
        if most is None:
            return
        added, gone = held.keys() - was.keys(), was.keys() - held.keys()
        fits = (
            not added or len(held) <= most or (self._limit(key, now_ms).adaptive is not None and len(held) <= len(was))
        )
        require(fits, _FITS, f"{len(held)} slots are taken; the limit is {most}", key)
        runs = sorted(name for name in added if not name.startswith("+"))
        require(len(runs) <= 1, _FITS, f"{runs} entered at once", key)
        for name in runs:
            self._holders[key, name] = by
            self.a_run_keeps_its_slot_for_its_lease(key, name, held[name])
        for name in added - {*runs}:
            late_ms = held[name] - now_ms - _RESERVED_MS
            fits = -self._calls_take_ms <= late_ms <= _PROMISED_AHEAD_MS + self._calls_take_ms
            require(fits, _CHECK, f"{name} is reserved {late_ms} ms too long", key)
        for name in gone:
            over = was[name] <= now_ms
            own = name.startswith("+") or self._holders.get((key, name)) == by
            require(over or own, _FITS, f"{by} took the slot of another run", key)

    def a_run_keeps_its_slot_for_its_lease(self, key: str, name: str, until_ms: int) -> None:
        for (job_key,), item in self._world.jobs.items.items():
            if "owner" in item and _name_of_run(text_of(item, "owner")) == name:
                lease_ms = number_of(item, "due")
                require(until_ms == lease_ms, _CHECK, f"until {until_ms}, the lease ends {lease_ms}", job_key)

    def starts_are_counted(self, key: str, before: Item, after: Item, now_ms: int, rate: Rate) -> None:
        """Each start moves the arrival time on by one interval: from the present, or from a time ahead of it."""
        was, now = number_of(before, "arrival"), number_of(after, "arrival")
        started = after.get("last_run") != before.get("last_run") or any(
            not name.startswith("+") for name in _held(after).keys() - _held(before).keys()
        )
        require((was != now) is started, _CHECK, f"the arrival time moved by {now - was}, started: {started}", key)
        if started:
            interval = _interval(rate)
            idle = now - interval >= was and abs(now - interval - now_ms * 1000) <= self._calls_take_ms * 1000
            require(now - was == interval or idle, _FITS, f"the arrival time moved by {now - was} us", key)
            ahead = now - interval - now_ms * 1000 - (rate.count - 1) * interval
            # A job whose time has come may start a little sooner.
            require(ahead <= min(_SLACK_US, interval / 2), _FITS, f"it started {ahead} us before the rate permits", key)

    def times_are_promised_once(self, key: str, before: Item, after: Item, now_ms: int, rate: Rate) -> None:
        was, now = number_of(before, "promised"), number_of(after, "promised")
        if was != now:
            at = now - _interval(rate)
            require(at >= was, _FITS, f"a time was promised {was - at} us before the one after the last", key)
            ahead_ms = at // 1000 - now_ms
            far = ahead_ms > _PROMISED_AHEAD_MS + self._calls_take_ms
            require(not far, _FITS, f"a time {ahead_ms} ms ahead was promised", key)

    def lines_are_listed(self, key: str, before: Item, after: Item, now_ms: int) -> None:
        if _marked_anew(before, after):
            limit = self._limit(key, now_ms)
            rate = limit.rate
            slots = number_of(after, "slots") if limit.adaptive else limit.concurrency or 0
            wanted = (slots, rate.count if rate else 0, rate.period // _MICROSECOND if rate else 0)
            found = tuple(number_of(after, name) for name in ("slots", "count", "period"))
            capped = key.startswith(_CAP) and number_of(after, "slots") in self._caps.caps_of(key, now_ms)
            require(found == wanted or capped, _CHECK, f"wake finds the limit {found}, not {wanted}", key)
            last_ms = number_of(after, "last_at")
            recent = abs(last_ms - now_ms) <= self._calls_take_ms and last_ms >= number_of(before, "last_at")
            require(recent and "last" in after, _CHECK, f"marked at {last_ms} by {after.get('last')}", key)
            listed = text_of(after, "attention") in _PARTITIONS and "attention_at" in after
            require(listed, "wake knows every line", f"{after.get('attention')} finds no line", key)
            fresh = "attention" in before or number_of(after, "attention_at") == last_ms
            require(fresh, _CHECK, f"listed since {after.get('attention_at')}", key)
        elif "attention" in before and "attention" not in after:
            left = [name for name in ("attention_at", "last", "last_at") if name in after]
            require(not left, _CHECK, f"{left} remain of a line that was cleared", key)
            since_ms = now_ms - number_of(before, "last_at")
            require(since_ms > _LISTED_MS, "wake knows every line", f"cleared {since_ms} ms after the last job", key)
            name = key.removeprefix(_PREFIX)
            for (job_key,), item in self._world.jobs.items.items():
                waits = text_of(item, "state") == "parked" and item["wait"]["M"]["key"]["S"] == name
                require(not waits, "wake knows every line", "its line was cleared", job_key)

    def _limit(self, key: str, now_ms: int) -> Limit:
        """The limit of the job type that a limit item names, or the highest cap that a process may know."""
        if key.startswith(_CAP):
            caps = self._caps.caps_of(key, now_ms)
            return Limit(concurrency=max(_NO_CAP if cap is None else cap for cap in caps))
        limit = limit_of(key.removeprefix(_PREFIX))
        if limit is None:
            raise AssertionError(f"{key}: a job type without a limit")
        return limit

    @property
    def _calls_take_ms(self) -> int:
        faults = self._world.faults
        if faults.counted[Fault.FROZEN_MID_CALL]:
            return _FROZEN_MS
        return _FAULTY_CALLS_TAKE_MS if any(faults.rates.values()) else _CALLS_TAKE_MS

    @property
    def _far_off(self) -> bool:
        return bool(self._world.faults.counted[Fault.CLOCK_FAR_OFF])


def _state(item: Item) -> str:
    """An empty text for an item of another kind."""
    return text_of(item, "state")


def _held(item: Item) -> dict[str, int]:
    """The end of each slot, in epoch milliseconds."""
    return {name: int(until["N"]) for name, until in item.get("held", {"M": {}})["M"].items()}


def _marked_anew(before: Item, after: Item) -> bool:
    """Whether a job has found no room."""
    return "last_at" in after and any(after.get(name) != before.get(name) for name in ("last", "last_at"))


def _name_of_run(token: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()[:6]).decode()


def _interval(rate: Rate) -> int:
    """In microseconds, rounded up."""
    return -(-(rate.period // _MICROSECOND) // rate.count)


__all__ = ["LimitItemChecks"]

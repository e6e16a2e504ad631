"""Checks of parked jobs: found by their line, released in its order, soon after their cause ended, and parked once."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from tests.simulation.checks.adaptive_limits import slots_in
from tests.simulation.checks.newer_documents import is_newer
from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import Item, capped, number_of, require, state_of, text_of, waits_alone
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import LOSSES, Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS
from tests.simulation.world.sdk import LONGEST_OUTAGE_MS
from tests.simulation.world.world import LONGEST_INDEX_LAG_MS, World
from tidemill.domain.limits.limit_state import RESERVED
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Line
from tidemill.dynamodb.indexes import line_partition
from tidemill.dynamodb.limits.limit_item import ARRIVAL, LIMIT_PREFIX

_MILLISECOND: Final = timedelta(milliseconds=1)
#: The schedules of a seed call wake so often while all jobs are late by that much.
_SPARSE_WAKES_MS: Final = 30 * 60_000
#: Wake, twice late, after a reservation that its job did not use, and a lag of the index.
_STANDS_MS: Final = 3 * 60_000 + RESERVED // _MILLISECOND + LONGEST_INDEX_LAG_MS
#: Without faults: the run that ends, or the job that was parked, releases the next job itself.
_HANDED_OVER_MS: Final = 2_000
#: Longest lag of an index without that fault, and the calls beside it.
_SHORT_LAG_MS: Final = 1_000
#: A job is parked once. It is parked again if its reservation ended before it came, which takes a fault or a slow lane.
_MOST_HOLDS: Final = 3
#: With any of these, a slot may be idle or a job late through no fault of the line.
_SLOW: Final = (*LOSSES, Fault.CLOCK_FAR_OFF, Fault.DEPLOYED)
#: From a call of wake that died to the one that releases the jobs of all lines.
_WAKES_WITHIN_MS: Final = 2 * _SPARSE_WAKES_MS
#: From the end of a run's time to that of its process.
_ENDS_WITHIN_MS: Final = 1_000


class ParkedJobChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By limit item, its parked jobs.
        self._parked: dict[str, dict[str, Item]] = defaultdict(dict)
        #: By limit item, when it was written last.
        self._written_ms: dict[str, int] = {}
        #: The last write of the table before the faults stopped. 0 in a world without faults.
        self._calm_since_ms = 0
        self._left_to_wake: set[str] = set()
        #: The longest time without faults for which a slot was free while a job waited: milliseconds, limit item.
        self._idle: tuple[int, str] = (0, "*")
        watch_items(world, self._changed)

    def at_end(self) -> None:
        self.slots_are_free_at_rest()
        idle_ms, key = self._idle
        outages_ms = self._world.faults.counted[Fault.SERVICE_OUTAGE] * LONGEST_OUTAGE_MS
        most_ms = _HANDED_OVER_MS if self._calm else _STANDS_MS + outages_ms
        soon = idle_ms <= most_ms or self._clocks_far_off
        require(soon, "no parked job stands still", f"a slot was free for {idle_ms} ms of at most {most_ms}", key)
        self.jobs_wait_once()

    def slots_are_free_at_rest(self) -> None:
        """Every run gives its slot back.

        A clock that is far off takes a job over and ends it, while its first run still has the slot. A worker that
        declares the time of a run over ends the job, and then its process and with it the run.
        """
        faulty = bool(self._world.sdk.gave_up or self._world.scheduler.interrupted or self._clocks_far_off)
        now_ms = self._world.scheduler.now_ms
        faulty = faulty or any(now_ms - at_ms <= _ENDS_WITHIN_MS for at_ms, _, _ in self._world.expired_runs)
        for key, item in self._limit_items():
            left = [name for name in _held(item) if not name.startswith("+")]
            ends = all(_held(item)[name] <= now_ms for name in left)
            require(ends or faulty, "slots are free at rest", f"{left} are still taken", key)
            require(not self._parked[key], "no parked job stands still", f"{[*self._parked[key]]}", key)

    def jobs_wait_once(self) -> None:
        if self._excused():
            return
        for change in self._world.trace.changes:
            # While functions differ about a cap that was raised, one may release the job and the other park it again.
            if change.after and text_of(change.after, "hold_cause") == "limit" and not capped(change.after):
                holds = number_of(change.after, "holds")
                require(holds <= _MOST_HOLDS, "a job is parked once", f"it waited {holds} times in a row", change.key)

    def _changed(self, key: str, record: Record) -> None:
        before, after = record.before, record.after
        if not self._world.faults.stopped and any(self._world.faults.rates.values()):
            self._calm_since_ms = self._world.scheduler.now_ms
        if key.startswith(LIMIT_PREFIX):
            self._count_idle_time(key, before, after)
            self.limits_are_not_forgotten(key, before, after, by_ttl=record.by_ttl)
        elif "state" in (before or after or {}):
            self._job_changed(key, before, after)

    def _count_idle_time(self, key: str, before: Item | None, after: Item | None) -> None:
        """How long a slot was free since the last write, while jobs waited only for that."""
        now_ms = self._world.scheduler.now_ms
        if before and "slots" in before and "count" not in before:
            ends = sorted(_held(before).values(), reverse=True)
            slots = slots_in(before)
            # The slot is free from the time at which fewer than all are taken.
            free_ms = max(self._written_ms[key], ends[slots - 1] if len(ends) >= slots else 0)
            readable = [item for item in self._parked[key].values() if not is_newer(item)]
            since = [int(item["wait"]["M"]["since"]["N"]) for item in readable]
            # Wake frees a reservation whose job did not come in time, such as behind a long run, and the slot of a run
            # whose worker was killed.
            killed = bool(self._world.scheduler.interrupted)
            unused = any((killed or name.startswith("+")) and until <= now_ms for name, until in _held(before).items())
            if since and not (self._calm and (unused or key in self._left_to_wake)):
                self._idle = max(self._idle, (now_ms - max(free_ms, min(since), self._calm_from_ms), key))
            self._left_to_wake.discard(key)
            if unused and after and len(_held(after)) < slots:
                # The run that entered dropped the slots of killed runs, and one of them is left to wake.
                self._left_to_wake.add(key)
        self._written_ms[key] = now_ms

    @property
    def _calm_from_ms(self) -> int:
        """While every call fails, the table has no writes, and wake may be called each half hour only."""
        stopped_ms = self._world.faults.stopped_ms
        return max(self._calm_since_ms, stopped_ms and stopped_ms + _SPARSE_WAKES_MS)

    def _job_changed(self, key: str, before: Item | None, after: Item | None) -> None:
        was, now = _in_line(before), _in_line(after)
        if after and now:
            self.parked_jobs_are_in_their_line(key, after)
            self._parked[_limit_of(after)][key] = after
        elif before and was:
            left = self._parked[_limit_of(before)].pop(key, before)
            if after and state_of(after) is State.QUEUED:
                self.jobs_are_released_in_order(key, left)
                self.jobs_are_released_by_their_line(key, left)

    def parked_jobs_are_in_their_line(self, key: str, after: Item) -> None:
        line = Line(Cause(after["wait"]["M"]["cause"]["S"]), after["wait"]["M"]["key"]["S"])
        found = (text_of(after, "attention"), number_of(after, "attention_at"))
        wanted = (line_partition(line), number_of(after, "created_at"))
        require(found == wanted, "a parked job is in its line", f"{found}, not {wanted}", key)
        item = self._world.jobs.items.get((_limit_of(after),), {})
        require("attention" in item, "wake knows every line", f"{line.key} is not listed", key)

    def jobs_are_released_by_their_line(self, key: str, released: Item) -> None:
        """The latest time of a parked job is for a line that was lost. No job here has to wait for so long."""
        waited_ms = self._world.scheduler.now_ms - int(released["wait"]["M"]["since"]["N"])
        soon = waited_ms < LONGEST_PARKED // _MILLISECOND - FAR_OFF_MS or self._clocks_far_off
        # An operator may forget a pause until the faults have stopped, and a deployment may leave a job file broken.
        soon = soon or released["wait"]["M"]["cause"]["S"] in {Cause.PAUSE, Cause.TYPE}
        soon = soon or is_newer(released)
        # Each call of wake may die for a day.
        now_ms = self._world.scheduler.now_ms
        soon = soon or now_ms - self._world.trace.last_death_ms("wake", now_ms) <= _WAKES_WITHIN_MS
        require(soon, "no parked job stands still", f"it waited for {waited_ms // 1000} s", key)

    def jobs_are_released_in_order(self, key: str, released: Item) -> None:
        """The index shows a job some time after it was parked, so only those parked before that count."""
        if self._excused() or self._elected(released):
            return
        lag_ms = _SHORT_LAG_MS if self._calm else LONGEST_INDEX_LAG_MS
        shown_ms = self._world.scheduler.now_ms - 2 * lag_ms
        for other, item in self._parked[_limit_of(released)].items():
            earlier = number_of(item, "created_at") < number_of(released, "created_at")
            since_ms = int(item["wait"]["M"]["since"]["N"])
            require(not earlier or since_ms > shown_ms, "parked jobs start in order", f"before {other}", key)

    def limits_are_not_forgotten(self, key: str, before: Item | None, after: Item | None, *, by_ttl: bool) -> None:
        check, now_ms = "limit items are not forgotten early", self._world.scheduler.now_ms
        if after is not None or before is None:
            return
        require(by_ttl, check, "it was deleted", key)
        require(all(until <= now_ms for until in _held(before).values()), check, "a slot was taken", key)
        require(number_of(before, ARRIVAL) // 1000 <= now_ms, check, "its rate was in use", key)
        waiting = [name for name, item in self._parked[key].items() if not is_newer(item)]
        require(not waiting, check, f"{waiting} wait", key)

    def _limit_items(self) -> Iterator[tuple[str, Item]]:
        for (key,), item in self._world.jobs.items.items():
            if key.startswith(LIMIT_PREFIX):
                yield key, item

    @property
    def _clocks_far_off(self) -> bool:
        return bool(self._world.faults.counted[Fault.CLOCK_FAR_OFF])

    @property
    def _calm(self) -> bool:
        """Whether this seed has no faults at all, from the beginning."""
        return not any(self._world.faults.rates.values()) and not self._world.rollout.planned

    def _elected(self, released: Item) -> bool:
        """Whether a breaker has it as its probe: after one that failed, it is not the first of the line."""
        breaker = self._world.jobs.items.get((_limit_of(released),), {})
        return text_of(breaker, "circuit") == "open" and bool(text_of(breaker, "probe"))

    def _excused(self) -> bool:
        counted = self._world.faults.counted
        faulty = bool(self._world.sdk.gave_up or self._world.scheduler.interrupted)
        return faulty or any(counted[fault] for fault in _SLOW)


def _in_line(item: Item | None) -> bool:
    return state_of(item) is State.PARKED and not waits_alone(item)


def _limit_of(parked: Item) -> str:
    """The item of its line: of a limit key, of a pause or of a job type."""
    wait = parked["wait"]["M"]
    return f"!{wait['cause']['S']}#{wait['key']['S']}"


def _held(item: Item) -> dict[str, int]:
    """The end of each slot, in epoch milliseconds."""
    return {name: int(until["N"]) for name, until in item.get("held", {"M": {}})["M"].items()}

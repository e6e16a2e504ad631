"""EventBridge Scheduler with the schedules of the deployment: it invokes `wake`, `tick` and `reconcile`.

It delivers at least once, so perhaps twice, and late if Lambda does not accept the invocation.
https://docs.aws.amazon.com/scheduler/latest/UserGuide/what-is-scheduler.html
"""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from tests.simulation.checks.violation import waits_alone
from tests.simulation.world.code_versions import PRESENT
from tests.simulation.world.faults import Fault
from tests.simulation.world.world import World
from tidemill.cdk.functions.schedule_retries import DELIVERY_SECONDS, PROMPT_SECONDS
from tidemill.domain.states import State
from tidemill.domain.waiting.schedule_times import Rate, parse
from tidemill.dynamodb.limits.limit_item import PAUSE_PREFIX, TYPE_PREFIX
from tidemill.dynamodb.passes import pass_items
from tidemill.dynamodb.passes.pass_items import PASS_KEY
from tidemill.names import (
    ATTENTION_SORT_KEY,
    CONTINUE,
    JOB_KEY,
    OWED_PREFIX,
    RECONCILE_INTERVAL_SECONDS,
    STRAIN_KEY,
    TICK_SCHEDULED_AT,
    TICK_TYPE,
    WAKE_INTERVAL_SECONDS,
    WAKE_PART,
    WAKE_PARTS,
    WAKE_WINDOW_SECONDS,
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WAKE_MS: Final = WAKE_INTERVAL_SECONDS * 1000
_WINDOW_MS: Final = WAKE_WINDOW_SECONDS * 1000
_LONG_LATE_MS: Final = 1_800_000
_RECONCILE_MS: Final = RECONCILE_INTERVAL_SECONDS * 1000
_SWEEP_MS: Final = 3 * 3_600_000
#: Two days of calls, one after the other, that had only owed work to do. A store that hardly ever answers leaves it
#: undone for as long as faults last: ten days, if a lane is emptied. Calling each minute adds nothing until they end.
_MOST_CALLS_FOR_OWED_WORK: Final = 2 * 24 * 60
#: An invocation may be late by less than the retry window of the schedule, and within the length of a seed.
_LATEST_MS: Final = 2 * 3_600_000
#: Share of seeds with periodic jobs, and their most scheduled times.
_SEEDS_WITH_TICKS: Final = 0.08
_MOST_TICKS: Final = 4


class EventBridgeScheduler:
    """The schedules of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._next_wake_ms = 0
        self._wake_parts = Random(f"wake {world.seed}").choice(world.deployment.wake_parts)
        self._next_sweep_ms = 0
        self._calls_for_owed_work = 0
        #: Type and scheduled time of each call of `tick` so far.
        self.ticked: list[tuple[str, str]] = []
        #: The number of invocations that have not reached Lambda yet.
        self._on_their_way = 0
        #: Whether this world has periodic jobs.
        self.ticks = False

    def begin(self) -> None:
        """Start the schedules. Minutes in which `wake` has nothing to do are skipped."""
        self._world.jobs.watchers.append(lambda record: self._look(record.after))
        self._reconcile()
        self.ticks = self._world.random.random() < _SEEDS_WITH_TICKS
        if self.ticks:
            for type_ in PRESENT.job_types.names():
                if expression := PRESENT.job_types.get(type_).schedule:
                    self.begin_ticks(type_, expression, times=self._world.scheduler.random.randint(1, _MOST_TICKS))

    def at_rest(self) -> bool:
        """Whether every scheduled time has reached `tick`."""
        return not self._on_their_way and not self._world.async_invocations["tick"].under_way

    def _reconcile(self) -> None:
        """Invoke `reconcile`. Intervals in which it has nothing to do are skipped."""
        if self._reconcile_is_due():
            self._call("reconcile", {CONTINUE: "true"}, window_seconds=DELIVERY_SECONDS)
        self._world.scheduler.after(_RECONCILE_MS, self._reconcile)

    def _reconcile_is_due(self) -> bool:
        """Whether a pass is open or due. A dead-letter queue with messages is swept less often than in AWS."""
        now_ms = self._world.scheduler.now_ms
        item = self._world.jobs.items.get((PASS_KEY[JOB_KEY]["S"],))
        if item is None or pass_items.decoded_pass(dict(item)).workable(_EPOCH + timedelta(milliseconds=now_ms)):
            return True
        messages = any(queue.messages for queue in self._world.dead_letters.values())
        if not messages or now_ms < self._next_sweep_ms:
            return False
        self._next_sweep_ms = now_ms + _SWEEP_MS
        return True

    def begin_ticks(self, type_: str, expression: str, *, times: int) -> None:
        """Call `tick` at the next scheduled times."""
        scheduler = self._world.scheduler
        schedule = parse(expression)
        assert isinstance(schedule, Rate)
        every_ms = schedule.period // timedelta(milliseconds=1)
        first_ms = (scheduler.now_ms // every_ms + 1) * every_ms
        for number in range(times):
            self._on_their_way += 1
            scheduler.at(first_ms + number * every_ms, self._tick, type_, first_ms + number * every_ms)

    def _tick(self, type_: str, tick_ms: int) -> None:
        self._on_their_way -= 1
        scheduled_at = f"{_EPOCH + timedelta(milliseconds=tick_ms):%Y-%m-%dT%H:%M:%SZ}"
        self.ticked.append((type_, scheduled_at))
        event = {TICK_TYPE: type_, TICK_SCHEDULED_AT: scheduled_at}
        self._call("tick", event, window_seconds=DELIVERY_SECONDS)

    def _look(self, item: Any) -> None:
        if item and _is_strained(item):
            minute_ms = (self._world.scheduler.now_ms // _WAKE_MS + 1) * _WAKE_MS
            self._world.scheduler.at(minute_ms, self._wake, minute_ms)
        elif item and (wake_ms := _wake_ms(item)) is not None:
            minute_ms = (max(wake_ms, self._world.scheduler.now_ms) // _WAKE_MS + 1) * _WAKE_MS
            if self._store_hardly_answers and item["pk"]["S"].startswith(OWED_PREFIX):
                minute_ms = max(minute_ms, self._next_wake_ms + _LONG_LATE_MS)
            self._world.scheduler.at(minute_ms, self._wake, minute_ms)

    def _wake(self, minute_ms: int) -> None:
        """Invoke `wake` each minute while it has work. The index may lag, so a later run finds the work."""
        world = self._world
        if minute_ms <= self._next_wake_ms:
            return
        self._next_wake_ms = minute_ms
        for part in range(self._wake_parts):
            event = {WAKE_PART: str(part), WAKE_PARTS: str(self._wake_parts)}
            self._call("wake", event, window_seconds=PROMPT_SECONDS)
        now_ms = world.scheduler.now_ms
        wakes_ms = [
            (wake_ms, key) for (key,), item in world.jobs.items.items() if (wake_ms := _wake_ms(item)) is not None
        ]
        soon = [(wake_ms, key) for wake_ms, key in wakes_ms if wake_ms <= now_ms + _WAKE_MS]
        strained = any(map(_is_strained, world.jobs.items.values()))
        only_owed = all(key.startswith(OWED_PREFIX) for _, key in soon)
        self._calls_for_owed_work = self._calls_for_owed_work + 1 if only_owed else 0
        if soon or strained:
            # A job that no deployed version can read stays scheduled. Invoking `wake` each minute adds nothing.
            late = max(soon, default=(0, ""))[0] <= now_ms - _WINDOW_MS - _LONG_LATE_MS
            prompt = strained or not (late or self._store_hardly_answers)
            pause_ms = _WAKE_MS if prompt else _LONG_LATE_MS
            world.scheduler.at(minute_ms + pause_ms, self._wake, minute_ms + pause_ms)

    @property
    def _store_hardly_answers(self) -> bool:
        return self._calls_for_owed_work > _MOST_CALLS_FOR_OWED_WORK and not self._world.faults.stopped

    def _call(self, verb: str, event: Any, *, window_seconds: int) -> None:
        faults, scheduler = self._world.faults, self._world.scheduler
        for _ in range(2 if faults.occurs(Fault.SCHEDULE_TWICE) else 1):
            late_ms = 0
            if faults.occurs(Fault.SCHEDULE_LATE):
                late_ms = scheduler.random.randint(0, min(window_seconds * 1000, _LATEST_MS))
            self._on_their_way += 1
            scheduler.after(late_ms, self._deliver, verb, event)

    def _deliver(self, verb: str, event: Any) -> None:
        self._on_their_way -= 1
        self._world.async_invocations[verb].invoke(event)


def _wake_ms(item: Any) -> int | None:
    """When `wake` begins to look after this item: a scheduled or parked job, a line without a limit, or owed work."""
    if item.get("state", {}).get("S") == State.PARKED and not waits_alone(item):
        return int(item["wait"]["M"]["since"]["N"])
    if item.get("state", {}).get("S") in {State.SCHEDULED, State.PARKED}:
        return int(item["due"]["N"]) - _WINDOW_MS
    if item["pk"]["S"].startswith((OWED_PREFIX, PAUSE_PREFIX, TYPE_PREFIX)) and ATTENTION_SORT_KEY in item:
        return int(item[ATTENTION_SORT_KEY]["N"])
    return None


def _is_strained(item: Any) -> bool:
    """Whether this is the item of the governor, whose level `wake` lowers."""
    return bool(item["pk"]["S"] == STRAIN_KEY and item.get("level", {"N": "0"})["N"] != "0")

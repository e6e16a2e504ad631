"""Checks of jobs whose type a deployed job file fails to declare: they wait, use nothing up, and then move on."""

from typing import Final

from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import Item, number_of, require, run_ended, state_of, text_of
from tests.simulation.world.code_versions import PRESENT, types_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS
from tests.simulation.world.sdk import LONGEST_OUTAGE_MS
from tests.simulation.world.world import LONGEST_INDEX_LAG_MS, World
from tidemill.domain.states import State

#: Wake, late and more than once, with a lag of the index, and a time of the rate.
_MOVES_ON_WITHIN_MS: Final = 20 * 60_000 + LONGEST_INDEX_LAG_MS
_NO_ATTEMPT: Final = "a job of a broken job file uses no attempt"
_MOVES_ON: Final = "a job of a fixed job file moves on"


class JobFileChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: The jobs that wait for their type, with the time since when in milliseconds.
        self._since_ms: dict[str, int] = {}
        #: The last write of the table before the faults stopped. 0 in a world without faults.
        self._calm_since_ms = 0
        watch_items(world, self._changed)

    def at_end(self) -> None:
        for key in self._since_ms:
            require(False, _MOVES_ON, "it is still parked at the end", key)

    def _changed(self, key: str, record: Record) -> None:
        now_ms = self._world.scheduler.now_ms
        if not self._world.faults.stopped and any(self._world.faults.rates.values()):
            self._calm_since_ms = now_ms
        before, after = record.before, record.after
        if before and after and "hold_cause" in after and run_ended(before, after):
            self.held_jobs_say_what_they_wait_for(key, after)
        if _waits(after):
            self._since_ms.setdefault(key, now_ms)
            if before and after and state_of(before) is State.RUNNING:
                self.no_attempt_is_used(key, before, after)
        elif (since_ms := self._since_ms.pop(key, None)) is not None and before and after:
            self.jobs_move_on(key, before, after, since_ms)

    def held_jobs_say_what_they_wait_for(self, key: str, after: Item) -> None:
        """A worker that lacks the type because of a broken file leaves its jobs to no other version."""
        fits = text_of(after, "hold_cause") != "version" or not self._lacks(text_of(after, "type"))
        require(fits, "a job of a broken job file waits for its type", "it is held for another version", key)

    def _lacks(self, name: str) -> bool:
        """Whether the process at work lacks the type because of a broken file."""
        task = self._world.scheduler.current
        return task is not None and types_of(task.process.environment).lacks(name)

    def no_attempt_is_used(self, key: str, before: Item, after: Item) -> None:
        gave_back = run_ended(before, after) and number_of(after, "attempt") == number_of(before, "attempt") - 1
        same = before.get("hops") == after.get("hops") and before.get("errors") == after.get("errors")
        what = f"attempt {number_of(before, 'attempt')} -> {number_of(after, 'attempt')}"
        require(gave_back and same, _NO_ATTEMPT, what, key)

    def jobs_move_on(self, key: str, before: Item, after: Item, since_ms: int) -> None:
        """Soon after the last process has the fixed file. After a rollback, only a newer wake may read the document."""
        world, task = self._world, self._world.scheduler.current
        by_wake = task is not None and task.process.name.startswith("wake")
        released = by_wake and state_of(after) is State.QUEUED and self._lacks(text_of(after, "type"))
        require(not released, "a job of a broken job file stays parked", "wake released it", key)
        unread = number_of(before, "schema") > PRESENT.document_schema
        if state_of(after) is not State.QUEUED or unread or world.faults.counted[Fault.CLOCK_FAR_OFF]:
            return
        late_ms = world.scheduler.now_ms - max(since_ms, self._calm_since_ms, world.rollout.ends_ms())
        outages_ms = world.faults.counted[Fault.SERVICE_OUTAGE] * LONGEST_OUTAGE_MS
        soon = late_ms <= _MOVES_ON_WITHIN_MS + outages_ms + FAR_OFF_MS
        require(soon, _MOVES_ON, f"released {late_ms // 1000} s after its file was fixed", key)


def _waits(item: Item | None) -> bool:
    if item is None or "state" not in item or state_of(item) is not State.PARKED:
        return False
    return text_of(item["wait"]["M"], "cause") == "type"


__all__ = ["JobFileChecks"]

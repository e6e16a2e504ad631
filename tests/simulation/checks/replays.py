"""Checks of replays: one consumer gets each event once per replay, and no other consumer gets anything."""

import json
from collections import defaultdict
from typing import Final

from tests.simulation.checks.table_watch import watch_items, watch_jobs
from tests.simulation.checks.violation import (
    Item,
    number_of,
    replay_of,
    require,
    require_in_task,
    run_ended,
    state_of,
    tenant_of,
    text_of,
)
from tests.simulation.jobs.event_types import SOME
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.world import LONGEST_INDEX_LAG_MS, World
from tidemill.application.events.replay import Replay
from tidemill.domain.states import State
from tidemill.domain.time_constants import EPOCH, MILLISECOND
from tidemill.names import EVENT_TYPE

_ONCE: Final = "a replay gives each event to its consumer once"
_ONLY: Final = "a replay reaches no other consumer"
_EACH: Final = "a replay reaches each event"
_APART: Final = "a replay yields to all other work"

_Event = tuple[str, int]


class ReplayChecks:
    """Watches the jobs table of one world. The operators name their replays, by tag, and report complete ones."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By the tag of the replay.
        self.asked: dict[str, Replay] = {}
        #: By tag, the events that have a job of it.
        self._made: dict[str, set[_Event]] = defaultdict(set)
        #: By the key of a job of a replay, the tag and the event.
        self._jobs: dict[str, tuple[str, _Event]] = {}
        #: The same, of jobs that were deleted since, such as by a purge: a repeat gives their events again.
        self._deleted: set[tuple[str, _Event]] = set()
        #: When each event succeeded, in milliseconds.
        self._succeeded_ms: dict[_Event, int] = {}
        watch_jobs(world, changed=(self._it_succeeds,), inserted=self.it_is_asked_for)
        watch_items(world, self._it_is_deleted)

    def it_is_asked_for(self, key: str, after: Item) -> None:
        tag = replay_of(after)
        if tag is None:
            return
        asked, other = self.asked[tag], f"{tenant_of(key)}#{text_of(after, 'parent')}"
        event = self._world.jobs.items.get((other,)) or {}
        require(text_of(event, "type") == EVENT_TYPE, _ONLY, f"its parent {other} is of another type", key)
        require(text_of(after, "type") == asked.consumer, _ONLY, f"{after} of {tag}", key)
        require(asked.tenant in {None, tenant_of(key)}, _ONLY, f"a replay for {asked.tenant}", key)
        at = EPOCH + number_of(event, "created_at") * MILLISECOND
        require(asked.since <= at < asked.until, _ONLY, f"{other} is of {at}: {asked}", key)
        require(state_of(event) is State.SUCCEEDED, _ONLY, f"{other} has not reached its own consumers", key)
        life = other, number_of(event, "created_at")
        again = life in self._made[tag] and (tag, life) not in self._deleted
        require(not again, _ONCE, f"{other} has had a job of {tag}", key)
        self._made[tag].add(life)
        self._jobs[key] = tag, life
        self._deleted.discard((tag, life))
        group = text_of(event, "group").removeprefix(f"{EVENT_TYPE}/")
        expected = f"{asked.consumer}/{group}" if group else ""
        apart = text_of(after, "lane") == "bulk" and text_of(after, "group") == expected and "useful_until" not in after
        require(apart, _APART, f"{after} of {event}", key)

    def completed(self, tag: str, *, began_ms: int) -> None:
        """From the operator. A pass that began then has ended, and it has left no event."""
        asked, now_ms = self.asked[tag], self._world.scheduler.now_ms
        # Scans and listings are eventually consistent.
        lag_ms = LONGEST_INDEX_LAG_MS if self._world.faults.counted[Fault.INDEX_LAG] else 1_000
        for (key,), item in self._world.jobs.items.items():
            life = key, number_of(item, "created_at")
            wanted = (
                text_of(item, "type") == EVENT_TYPE
                and self._succeeded_ms.get(life, now_ms) < began_ms - lag_ms
                and asked.tenant in {None, tenant_of(key)}
                and asked.since <= EPOCH + life[1] * MILLISECOND < asked.until
                and not (text_of(item, "group") and asked.tenant is None)
                and not 0 < number_of(item, "expires_at") * 1000 <= now_ms
                and self._passes(asked, item)
            )
            met = not wanted or life in self._made[tag]
            require_in_task(self._world.scheduler, met, _EACH, f"{tag} left {key}: {asked}", key)

    def _it_is_deleted(self, key: str, record: Record) -> None:
        if record.after is None and key in self._jobs:
            self._deleted.add(self._jobs.pop(key))

    def _it_succeeds(self, key: str, before: Item, after: Item) -> None:
        if text_of(after, "type") == EVENT_TYPE and run_ended(before, after) and state_of(after) is State.SUCCEEDED:
            self._succeeded_ms[key, number_of(after, "created_at")] = self._world.scheduler.now_ms

    @staticmethod
    def _passes(asked: Replay, item: Item) -> bool:
        """Its payload may be outside of the document, where the check does not look."""
        if asked.consumer != "sim.hears-some":
            return True
        return bool(text_of(item, "payload")) and json.loads(text_of(item, "payload"))["data"]["count"] in SOME


__all__ = ["ReplayChecks"]

"""Checks of events: each reaches the consumers that its publisher knew, each of them once and in a job of its own."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    number_of,
    replay_of,
    require,
    run_ended,
    state_of,
    tenant_of,
    text_of,
)
from tests.simulation.jobs.event_types import SOME
from tests.simulation.world.world import World
from tidemill.domain.events.events import Event
from tidemill.domain.states import State
from tidemill.names import EVENT_TYPE

_ONCE: Final = "an event reaches each of its consumers once"
_KEPT: Final = "an event that was accepted is not lost"
_FIXED: Final = "an event reaches the consumers that its publisher knew"
_APART: Final = "each consumer has its own job, lane and group"
_ITSELF: Final = "no consumer stops an event"
_ALWAYS: Final = frozenset({"sim.hears", "sim.deaf"})
_FILTERED: Final = "sim.hears-some"
#: One of them, as the version of the publisher says.
_OF_A_VERSION: Final = ("sim.hears-present", "sim.hears-next")
#: What only a consumer's type or model can cause.
_OF_CONSUMERS: Final = ("ResultError", "KeyReusedError", "UnknownJobTypeError", "InvalidPayloadError")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """An accepted publication."""

    tenant: str
    event: Event
    job_id: str


@dataclass(slots=True)
class _Reached:
    """What became of the job of one event, and of one that publishes an event."""

    type: str = ""
    succeeded: bool = False
    count: int | None = None
    #: The consumers that its payload lists, if that is in the document.
    listed: list[str] | None = None
    #: The types of the jobs that it created.
    made: list[str] = field(default_factory=list)


class EventChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.published: list[Published] = []
        #: By key and time of submission.
        self._events: dict[tuple[str, int], _Reached] = defaultdict(_Reached)
        watch_jobs(world, changed=(self.it_succeeds, self.it_fails_for_itself), inserted=self.it_is_made)

    def it_is_made(self, key: str, after: Item) -> None:
        if text_of(after, "type") in {EVENT_TYPE, "sim.announces"}:
            self._events[_life(key, after)].type = text_of(after, "type")
        if text_of(after, "type") == EVENT_TYPE and text_of(after, "payload"):
            event, reached = json.loads(text_of(after, "payload")), self._events[_life(key, after)]
            reached.count = event["data"]["count"]
            reached.listed = [consumer["type"] for consumer in event["consumers"]]
        if replay_of(after) is not None:
            return
        other = f"{tenant_of(key)}#{text_of(after, 'parent')}"
        parent = self._world.jobs.items.get((other,)) or {}
        if text_of(parent, "type") == "sim.announces":
            self._events[_life(other, parent)].made.append(text_of(after, "type"))
        if text_of(parent, "type") == EVENT_TYPE:
            self._events[_life(other, parent)].made.append(text_of(after, "type"))
            self._is_apart(key, after, parent)

    def _is_apart(self, key: str, made: Item, parent: Item) -> None:
        group = text_of(parent, "group").removeprefix(f"{EVENT_TYPE}/")
        expected = f"{text_of(made, 'type')}/{group}" if group else ""
        fits = text_of(made, "group") == expected and text_of(made, "lane") == "default"
        fits = fits and ("blocks" in made) == (bool(group) and text_of(made, "type") == "sim.deaf")
        require(fits, _APART, f"{made} of {parent}", key)

    def it_succeeds(self, key: str, before: Item, after: Item) -> None:
        succeeded = run_ended(before, after) and state_of(after) is State.SUCCEEDED
        if succeeded and text_of(after, "type") in {EVENT_TYPE, "sim.announces"}:
            self._events[_life(key, after)].succeeded = True

    def it_fails_for_itself(self, key: str, _before: Item, after: Item) -> None:
        if text_of(after, "type") == EVENT_TYPE:
            classes = {text_of(error["M"], "error_class") for error in after.get("errors", {"L": []})["L"]}
            require(not classes & set(_OF_CONSUMERS), _ITSELF, f"it failed with {classes}", key)

    def at_end(self) -> None:
        """Raises `Violation`."""
        inserted = {change.key for change in self._world.trace.changes if change.before is None}
        for one in self.published:
            key = f"{one.tenant}#{one.job_id}"
            require(key in inserted, _KEPT, "no document was ever written", key)
        for (key, _), reached in self._events.items():
            if reached.type == "sim.announces":
                expected = [EVENT_TYPE] if reached.succeeded else []
                require(reached.made == expected, _KEPT, f"it published {reached.made}", key)
            else:
                self._reaches(key, reached)

    def _reaches(self, key: str, reached: _Reached) -> None:
        made = set(reached.made)
        require(len(made) == len(reached.made), _ONCE, f"jobs: {sorted(reached.made)}", key)
        require(reached.succeeded or not made, _ONCE, f"it made {made} without its success", key)
        if not reached.succeeded:
            return
        if reached.listed is not None:
            require(made == set(reached.listed), _ONCE, f"it made {made}, not {reached.listed}", key)
        of_count = made >= {_FILTERED} if reached.count in SOME else _FILTERED not in made
        require(reached.count is None or of_count, _FIXED, f"count {reached.count} made {made}", key)
        of_a_version = made & set(_OF_A_VERSION)
        fits = made - {_FILTERED} == _ALWAYS | of_a_version and len(of_a_version) == 1
        require(fits, _FIXED, f"it made {made}", key)


def _life(key: str, item: Item) -> tuple[str, int]:
    return key, number_of(item, "created_at")


__all__ = ["EventChecks", "Published"]

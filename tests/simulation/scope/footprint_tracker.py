"""Records the items that each step of a schedule touches."""

from collections.abc import Mapping
from typing import Any, Final

from tests.simulation.scope.director import Director
from tests.simulation.scope.participants import Option
from tests.simulation.scope.touched_items import ANYTHING, QUEUES, Footprint, keys_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World

#: Requests that read several items without naming them. Requests to SQS show in the queues.
_SEARCHES: Final = frozenset({"Query", "Scan", "BatchGetItem"})


class Tracker:
    """Records the footprint of one step after another."""

    def __init__(self, world: World, director: Director) -> None:
        self._world = world
        self._director = director
        self._read: set[str] = set()
        self._written: set[str] = set()
        self._queues: object = None
        for table in (world.jobs, world.effects):
            table.watchers.append(self._changed)

    def begin(self) -> None:
        self._read.clear()
        self._written.clear()
        self._queues = self._of_queues()

    def reads(self, operation: str, request: Mapping[str, Any]) -> None:
        """Called for every call of any actor, before its fate is known."""
        self._read |= {ANYTHING} if operation in _SEARCHES else keys_of(request)

    def footprint(self, taken: Option) -> Footprint:
        """The footprint since `begin`, after this option was taken."""
        actor, task, _ = taken.name
        written = self._written | taken.holds
        if self._queues != self._of_queues() or taken.may_end_a_batch:
            written = written | {QUEUES}
        return Footprint(actor, task, frozenset(self._read), frozenset(written), taken.of_all)

    def _changed(self, record: Record) -> None:
        self._written.add(record.keys["pk"]["S"])

    def _of_queues(self) -> object:
        world = self._world
        return [
            [(message.id, message.receives, message.visible_ms) for message in queue.messages]
            for queue in (*world.lanes.values(), *world.dead_letters.values())
        ], [actor.label for actor in self._director.actors.values()]

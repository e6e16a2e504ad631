"""The state of a world as one digest. Two schedules that reach the same state continue in the same way."""

from hashlib import blake2b
from typing import Final

from tests.simulation.scope.director import Director
from tests.simulation.world.dynamodb_table import Record, Table
from tests.simulation.world.faults import LOSSES, Fault
from tests.simulation.world.sqs_queue import Message, Queue
from tests.simulation.world.world import World

#: Faults that excuse a violation at any later time.
_EXCUSES: Final = sorted({*LOSSES, Fault.DUPLICATE, Fault.CLOCK_FAR_OFF})


class Fingerprint:
    """Watches one world from its beginning.

    It keeps the whole history of each item, since some checks look back, and all responses to each actor, which
    determine its state. Times are compared exactly.
    """

    def __init__(self, world: World, director: Director) -> None:
        self._world = world
        self._director = director
        self._items: dict[str, bytes] = {}
        #: Labels of the actors that have written. No check uses the others.
        self._wrote: set[str] = set()
        for table in (world.jobs, world.effects):
            self._watch(table)

    def _watch(self, table: Table) -> None:
        def changed(record: Record) -> None:
            name = f"{table.name} {record.keys}"
            task = self._director.current
            by = self._label(task.process.name) if task else ""
            self._wrote.add(by)
            self._items[name] = blake2b(
                f"{record.at_ms} {by} {record.after!r}".encode(), key=self._items.get(name, b""), digest_size=16
            ).digest()

        table.watchers.append(changed)

    def digest(self) -> bytes:
        world, director = self._world, self._director
        state = (
            director.now_ms,
            sorted(self._items.items()),
            [sorted(table.held) for table in (world.jobs, world.effects)],
            [self._queue(queue) for queue in (*world.lanes.values(), *world.dead_letters.values())],
            [
                [(record.keys, record.after) for record in part._records[part._position :]]
                for part in world.stream._parts
            ],
            sorted(
                (
                    actor.label,
                    actor.began_ms,
                    actor.process.skew_ms,
                    sorted(actor.answers.items()),
                    sorted(actor.lasting),
                )
                for actor in director.actors.values()
            ),
            sorted((call.actor.label, call.actor.number_of(call.task), call.operation) for call in director.held),
            sorted(late.actor.label for late in director.late),
            self._check_state(),
        )
        return blake2b(repr(state).encode(), digest_size=16).digest()

    def _queue(self, queue: Queue) -> list[tuple[object, ...]]:
        return sorted((self._message(message) for message in queue.messages), key=repr)

    def _message(self, message: Message) -> tuple[object, ...]:
        last = self._director.labels.get(message.receipt, "")
        return message.body, message.receives, message.visible_ms, message.received_ms, last

    def _check_state(self) -> tuple[object, ...]:
        """The other state that the checks at the end use."""
        world = self._world
        runs = sorted(
            (run.key, run.attempt, self._label(run.by), run.began_ms, run.ended_ms or 0, run.asked_to_end)
            for run in world.runs
        )
        reports = sorted(
            (at_ms, self._label(by), report.ending, report.job.lease.owner or "")
            for at_ms, by, report in world.reports
            if report.job and self._label(by) in self._wrote
        )
        return (
            runs,
            reports,
            [(planned.submission.key, planned.ids) for planned in world.submissions],
            [fault for fault in _EXCUSES if world.faults.counted[fault]],
            sorted(self._wrote & set(map(self._label, world.sdk.gave_up))),
            sorted(self._wrote & set(map(self._label, world.scheduler.interrupted))),
        )

    def _label(self, name: str) -> str:
        return self._director.labels.get(name, name)

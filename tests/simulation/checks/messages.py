"""A message is acknowledged only if the document of its job permits it."""

import json

from tests.simulation.checks.violation import Item, has_expired, number_of, require_in_task, state_of
from tests.simulation.world.lambda_environments import FAR_OFF_MS
from tests.simulation.world.sqs_queue import Message
from tests.simulation.world.world import World
from tidemill.domain.states import TERMINAL


class MessageChecks:
    """Watches the lanes of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        for queue in world.lanes.values():
            queue.delete_watchers.append(self._deleted)

    def _deleted(self, message: Message) -> None:
        """The mapping or a worker deletes the message. Its document permitted that at some time since its delivery."""
        world, (key, generation) = self._world, reference_in(message)
        versions = [world.jobs.items.get((key,))]
        for change in reversed(world.trace.changes):
            if change.at_ms < message.received_ms:
                break
            if change.key == key:
                versions.append(change.before)
        now_ms = world.scheduler.now_ms
        permitted = any(permits_deletion(item, generation, now_ms=now_ms) for item in versions)
        check = "a message is acknowledged only if its document permits it"
        require_in_task(world.scheduler, permitted, check, f"generation {generation} is still to run", key)


def permits_deletion(item: Item | None, generation: int, *, now_ms: int) -> bool:
    """Whether the job is gone or has ended, or a later message is on its way."""
    if item is None or has_expired(item, now_ms, late_ms=FAR_OFF_MS):
        return True
    return state_of(item) in TERMINAL or number_of(item, "generation") > generation


def reference_in(message: Message) -> tuple[str, int]:
    """The key of the document, and the generation."""
    body = json.loads(message.body)
    return f"{body['tenant']}#{body['id']}", int(body["generation"])

"""Checks that no text of one tenant reaches another: each tenant has one in its payloads, tags, errors and results."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from tests.simulation.checks.violation import Violation
from tests.simulation.world.cloudwatch import Line
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.sqs_queue import Message
from tests.simulation.world.world import World

#: By tenant, the text that only it may see.
CANARIES: Final[Mapping[str, str]] = {
    "111122223333:AROAADA": "canary-of-ada",
    "111122223333:AROABOB": "canary-of-bob",
}
_KEPT: Final = "a text of one tenant reaches no other"


def require_own_texts(world: World, whose: str, text: str, where: str) -> None:
    """`whose` names the tenants that may see the text, such as the key of an item."""
    for tenant, canary in CANARIES.items():
        if canary in text and tenant not in whose:
            what = f"{where} of {whose or 'no tenant'} has {canary}: {text[:500]}"
            world.scheduler.fail(Violation(_KEPT, what, whose))


class CanaryChecks:
    """Looks at each item, message, file and log line of one world. `ask` looks at each answer of the API."""

    def __init__(self, world: World) -> None:
        self._world = world
        world.jobs.watchers.append(self._written)
        world.s3.put_watchers.append(self._stored)
        world.cloudwatch.line_watchers.append(self._logged)
        for queue in (*world.lanes.values(), *world.dead_letters.values()):
            queue.send_watchers.append(self._sent)

    def _written(self, record: Record) -> None:
        if record.after:
            require_own_texts(self._world, record.keys["pk"]["S"], _text(record.after), "an item")

    def _stored(self, key: str) -> None:
        tenant = base64.urlsafe_b64decode(key.split("/")[1] + "==").decode()
        for (_, name), body in self._world.s3.objects.items():
            if name == key:
                require_own_texts(self._world, tenant, body.decode(errors="replace"), "a file")

    def _sent(self, message: Message) -> None:
        require_own_texts(self._world, message.body, message.body, "a message")

    def _logged(self, line: Line) -> None:
        require_own_texts(self._world, str(line.fields.get("tenant", "")), _text(line.fields), "a line")


def _text(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)

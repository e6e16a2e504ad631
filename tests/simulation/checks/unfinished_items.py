"""The items that keep a world from coming to rest: jobs that have not ended, and owed work.

They are kept up to date with each change, since the world asks after each of its steps.
"""

from tests.simulation.checks.violation import text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World
from tidemill.domain.states import TERMINAL
from tidemill.names import OWED_PREFIX


class UnfinishedItems:
    """Watches the jobs table of one world. Create it before the world runs."""

    def __init__(self, world: World) -> None:
        self.keys: set[str] = set()
        world.jobs.watchers.append(self._changed)

    def _changed(self, record: Record) -> None:
        key, item = record.keys["pk"]["S"], record.after
        live = item is not None and "state" in item and text_of(item, "state") not in TERMINAL
        if live or (item is not None and key.startswith(OWED_PREFIX)):
            self.keys.add(key)
        else:
            self.keys.discard(key)

"""Checks of migrations: each payload is migrated once or reported, and nothing else of its job changes."""

import json
from typing import Any, Final

from tests.simulation.checks.table_watch import watch_items, watch_jobs
from tests.simulation.checks.violation import Item, joined, number_of, require, require_in_task, state_of, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.world import LONGEST_INDEX_LAG_MS, World
from tidemill.domain.states import TERMINAL, State

#: Both versions of the code have the same model for it.
MIGRATED_TYPE: Final = "sim.effect"
_FORM: Final = "form"
_REWRITE: Final = "a migration rewrites a payload as its function says"
_ONLY: Final = "a migration changes nothing but the payload"
_EACH: Final = "a migration reaches each job"
_ITEM: Final = "!payload#"
_PLACES: Final = ("payload", "payload_at")
#: Each write says which version of the code has made it.
_CHANGES: Final = frozenset({*_PLACES, "schema"})


def migrated(payload: dict[str, Any]) -> dict[str, Any]:
    """The function of the migration. It accepts its own result."""
    return payload if _FORM in payload else {**payload, _FORM: 2, "was": sorted(payload)}


class MigrationChecks:
    """Watches the jobs table of one world. Only migrations and redrives with another payload change a payload."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By key, when the present job was inserted, and when it last ended or was redriven, in milliseconds.
        self._inserted_ms: dict[str, int] = {}
        self._crossed_ms: dict[str, int] = {}
        watch_items(world, self._deleted)
        watch_jobs(world, changed=[self._crossed, self.payload_follows_the_function], inserted=self._inserted)

    def pass_ended(self, *, ended: bool, began_ms: int, failed: set[str]) -> None:
        """From the operator. The pass has left no job: `failed` has the keys of those that were reported."""
        for (key,), item in self._world.jobs.items.items():
            if "state" not in item or text_of(item, "type") != MIGRATED_TYPE or key in failed:
                continue
            since_ms = max(self._inserted_ms[key], self._crossed_ms.get(key, 0))
            expired = 0 < number_of(item, "expires_at") * 1000 <= self._world.scheduler.now_ms
            # A scan is eventually consistent. The code that submits the old form is gone for longer when a pass begins.
            lag_ms = LONGEST_INDEX_LAG_MS if self._world.faults.counted[Fault.INDEX_LAG] else 0
            if since_ms >= began_ms - lag_ms or expired or (state_of(item) in TERMINAL) is not ended:
                continue
            payload = self._payload(item)
            met = payload is not None and _FORM in payload
            require_in_task(self._world.scheduler, met, _EACH, f"{state_of(item)} since {since_ms}, not migrated", key)

    def payload_follows_the_function(self, key: str, before: Item, after: Item) -> None:
        if all(before.get(name) == after.get(name) for name in _PLACES):
            return
        if joined(before, after):
            # A later submission has replaced it. `BurstChecks` looks at that.
            return
        if before["generation"] != after["generation"]:
            # An operator has redriven it with another payload.
            return
        require(state_of(before) is not State.RUNNING, _REWRITE, "a worker runs it", key)
        others = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} - _CHANGES
        require(not others, _ONLY, f"{', '.join(sorted(others))} changed", key)
        old, new = self._payload(before), self._payload(after)
        require(new is not None, _REWRITE, "its new payload is not there", key)
        if old is not None:
            require(_FORM not in old, _REWRITE, "it was migrated before", key)
            require(new == migrated(old), _REWRITE, f"{str(new)[:200]}, from {str(old)[:200]}", key)

    def _inserted(self, key: str, _after: Item) -> None:
        self._inserted_ms[key] = self._world.scheduler.now_ms
        self._crossed_ms.pop(key, None)

    def _crossed(self, key: str, before: Item, after: Item) -> None:
        if (state_of(before) in TERMINAL) is not (state_of(after) in TERMINAL):
            self._crossed_ms[key] = self._world.scheduler.now_ms

    def _deleted(self, key: str, record: Record) -> None:
        if record.after is None:
            self._inserted_ms.pop(key, None)
            self._crossed_ms.pop(key, None)

    def _payload(self, item: Item) -> dict[str, Any] | None:
        """None if it is gone."""
        place = text_of(item, "payload_at")
        if not place:
            text: str | bytes | None = text_of(item, "payload")
        elif place.startswith("file/"):
            files = self._world.s3.objects.items()
            text = next((body for (_, path), body in files if path.endswith(place.removeprefix("file"))), None)
        else:
            keys = (key for (key,) in self._world.jobs.items if key.startswith(_ITEM))
            found = next((key for key in keys if json.loads(key.removeprefix(_ITEM))[2] == place), None)
            text = text_of(self._world.jobs.items[(found,)], "payload") if found else None
        return None if text is None else json.loads(text)


__all__ = ["MIGRATED_TYPE", "MigrationChecks", "migrated"]

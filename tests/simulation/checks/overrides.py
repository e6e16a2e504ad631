"""Checks of type overrides: each run has those that stood at its claim."""

import json
from typing import Final

from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import require, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.world import World

#: A change acts within this time.
_ACTS_WITHIN_MS: Final = 10_000
_CONFIGURATION: Final = "!config"
_PREFIX: Final = "types."
_OPTION: Final = ".max_attempts"


class OverrideChecks:
    """Watches the runtime configuration of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: Each number of attempts by type, and since when the table has them, in milliseconds. The last one is present.
        self._history: list[tuple[int, dict[str, int]]] = [(0, {})]
        watch_items(world, self._changed)

    def at_end(self) -> None:
        self.runs_have_the_overrides_of_their_claims()

    def _changed(self, key: str, record: Record) -> None:
        if key == _CONFIGURATION:
            settings = json.loads(text_of(record.after, "document") or "{}").get("settings", {})
            attempts = {
                name.removeprefix(_PREFIX).removesuffix(_OPTION): entry["value"]
                for name, entry in settings.items()
                if name.startswith(_PREFIX) and name.endswith(_OPTION)
            }
            self._history.append((self._world.scheduler.now_ms, attempts))

    def runs_have_the_overrides_of_their_claims(self) -> None:
        check = "a run has the overrides of its claim"
        far_off = self._world.faults.counted[Fault.CLOCK_FAR_OFF]
        since_ms = _ACTS_WITHIN_MS + (FAR_OFF_MS if far_off else LARGEST_SKEW_MS)
        for run in self._world.runs:
            # Its worker read the configuration between the claim and the begin.
            stood = self._stood(run.kind, run.claimed_ms - since_ms, run.began_ms)
            # A process that could not read the configuration has the last known values.
            known = stood is not None and not self._world.sdk.gave_up[run.by]
            what = f"it has {run.max_attempts} attempts, and the override says {stood}"
            require(not known or run.max_attempts == stood, check, what, run.key)

    def _stood(self, type_: str, from_ms: int, to_ms: int) -> int | None:
        """The override that stood for all of that time."""
        ends = [at_ms for at_ms, _ in self._history[1:]] + [to_ms + 1]
        values = {
            attempts.get(type_)
            for (begins_ms, attempts), ends_ms in zip(self._history, ends, strict=True)
            if begins_ms <= to_ms and ends_ms > from_ms
        }
        return values.pop() if len(values) == 1 else None

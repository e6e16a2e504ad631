"""Checks of breakers that operators force: forced open, no call passes; forced closed, no job waits.

All figures are those of the documentation, not those of the engine.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import Item, require, state_of, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import PAYMENTS, World
from tidemill.domain.states import State

_CONFIGURATION: Final = "!config"
_SETTING: Final = f"breakers.{PAYMENTS}"
#: Settings that leave it to the breaker alone when a dependent job runs.
_APART: Final = ("breakers.", "quotas.", "strain.", "flags.")
#: A change acts within ten seconds. The step before a call takes a second at most, and so do the calls in between.
_ACTS_WITHIN_MS: Final = 12_000
#: Wake, and the rate of a line that has at most a dozen jobs.
_DRAINS_WITHIN_MS: Final = 90_000


@dataclass(slots=True)
class _Force:
    """A time for which an operator forces the breaker, in milliseconds."""

    state: str
    from_ms: int
    to_ms: int

    def acts(self, at_ms: int, *, after_ms: int = _ACTS_WITHIN_MS) -> bool:
        """Whether each worker knows of it."""
        return self.from_ms + after_ms < at_ms < self.to_ms


class ForcedBreakerChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._written: object = None
        self.forces: list[_Force] = []
        #: All settings that the table has held.
        self._names: set[str] = set()
        #: The times at which breakers parked jobs, and those until which jobs were parked, each with its job.
        self._parked: list[tuple[int, str]] = []
        self._waiting_ms: dict[str, int] = {}
        self._waited: list[tuple[int, int, str]] = []
        watch_items(world, self._changed)

    def at_end(self) -> None:
        if not self.calm:
            return
        for force in self.forces:
            if force.state == "open":
                self.no_call_passes(force)
            else:
                self.no_job_waits(force)

    def may_be_closed(self, at_ms: int) -> bool:
        """Whether a worker may take the breaker for forced closed, and so count a failure."""
        return any(
            each.state == "closed" and each.from_ms <= at_ms <= each.to_ms + _ACTS_WITHIN_MS for each in self.forces
        )

    def no_call_passes(self, force: _Force) -> None:
        for call in self._world.downstreams[PAYMENTS].calls:
            late_ms = call.began_ms - force.from_ms
            what = f"{call.by} called {late_ms} ms after it was forced open"
            require(not force.acts(call.began_ms), "a breaker that is forced open lets no call pass", what, "*")

    def no_job_waits(self, force: _Force) -> None:
        rule = "no job waits for a breaker that is forced closed"
        for at_ms, key in self._parked:
            late_ms = at_ms - force.from_ms
            require(not force.acts(at_ms), rule, f"parked {late_ms} ms after it was forced closed", key)
        for from_ms, to_ms, key in self._waited:
            drained_ms = force.from_ms + _ACTS_WITHIN_MS + _DRAINS_WITHIN_MS
            waits = from_ms <= force.from_ms + _ACTS_WITHIN_MS and drained_ms < min(to_ms, force.to_ms)
            # A job that was parked before the force and has left the line before it did not wait for it.
            require(
                not waits or to_ms <= force.from_ms, rule, f"it left the line {to_ms - force.from_ms} ms later", key
            )

    @property
    def calm(self) -> bool:
        """Whether only the downstream and operators who force its breaker trouble the dependent jobs of this seed."""
        if any(not name.startswith(_APART) for name in self._names):
            return False
        return not any(self._world.faults.rates.values()) and not self._world.rollout.planned

    def _changed(self, key: str, record: Record) -> None:
        before, after, now_ms = record.before, record.after, self._world.scheduler.now_ms
        if key == _CONFIGURATION:
            self._configured(json.loads(text_of(after or {}, "document") or "{}").get("settings", {}))
            return
        was, now = by_breaker(before), by_breaker(after)
        if now and not was:
            self._parked.append((now_ms, key))
            self._waiting_ms[key] = now_ms
        elif was and not now:
            self._waited.append((self._waiting_ms.pop(key), now_ms, key))

    def _configured(self, settings: dict[str, Any]) -> None:
        self._names |= set(settings)
        entry, now_ms = settings.get(_SETTING), self._world.scheduler.now_ms
        if entry == self._written:
            return
        self._written = entry
        if self.forces:
            self.forces[-1].to_ms = min(self.forces[-1].to_ms, now_ms)
        if entry:
            until_ms = round(datetime.fromisoformat(entry["until"]).timestamp() * 1000)
            self.forces.append(_Force(entry["value"]["force"], now_ms, until_ms))


def by_breaker(item: Item | None) -> bool:
    """Whether a breaker has parked the job."""
    if not item or "state" not in item or state_of(item) is not State.PARKED:
        return False
    return bool(item["wait"]["M"]["cause"]["S"] == "breaker")

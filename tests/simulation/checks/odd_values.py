"""Checks of runs that return a value at the edge of what a job may keep, or beyond it."""

import json
from typing import Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import Item, require, run_ended, state_of, text_of
from tests.simulation.jobs.odd_values import ODD_VALUES
from tests.simulation.world.world import World
from tidemill.domain.states import State

ODD_TYPE: Final = "sim.unstorable"
#: Errors with which a run may end before its handler returns: of a handler that cannot submit the job that it needs,
#: and of a run in trouble.
_EARLY: Final = frozenset({"BrokenError", "DeadlinePassed"})
_OF_FAULTS: Final = frozenset(
    {"Crashed", "JobTimeoutError", "LeaseLostError", "StoreUnavailableError", "TransactionConflictError"}
)


class OddValueChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._other = _EARLY | _OF_FAULTS if any(world.faults.rates.values()) else _EARLY
        watch_jobs(world, changed=[self._run_ended])

    def _run_ended(self, key: str, before: Item, after: Item) -> None:
        if run_ended(before, after) and text_of(after, "type") == ODD_TYPE:
            self.odd_values_are_judged(key, before, after)

    def odd_values_are_judged(self, key: str, before: Item, after: Item) -> None:
        name = json.loads(text_of(after, "payload"))["key"]
        check, expected, state = "a value that cannot be stored ends the run", ODD_VALUES[name], state_of(after)
        errors = after.get("errors", {"L": []})["L"]
        if len(errors) == len(before.get("errors", {"L": []})["L"]) or state in {State.CANCELLED, State.EXPIRED}:
            require(state is not State.SUCCEEDED or expected.error is None, check, f"{name}: it succeeded", key)
            return
        error = errors[-1]["M"]
        if text_of(error, "error_class") in self._other:
            return
        fits = expected.error == text_of(error, "error_class")
        require(fits, check, f"{name}: {text_of(error, 'error_class')}, not {expected.error}", key)
        death = text_of(after, "death") or None
        last = death == "attempts used up"
        require(death == expected.death or (last and not expected.death), check, f"{name}: {state}, {death}", key)


__all__ = ["ODD_TYPE", "OddValueChecks"]

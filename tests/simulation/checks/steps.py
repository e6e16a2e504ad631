"""Checks of steps: no recorded step runs again, none is lost, and each run continues behind them."""

import json
from dataclasses import dataclass
from typing import Any, Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    maps_of,
    number_of,
    payload_edited,
    require,
    run_ended,
    state_of,
    text_of,
)
from tests.simulation.world.world import World
from tidemill.domain.states import State

_ONCE: Final = "a recorded step does not run again"
_KEPT: Final = "a recorded step is not lost"
_ORDER: Final = "the recorded steps are the first that a run asks for"
_TYPES: Final = frozenset({"sim.stepwise", "sim.lengthened", "sim.reordered"})


@dataclass(frozen=True, slots=True)
class Claimed:
    """The results of the steps of a document that was claimed, by name, in order."""

    by: str
    attempt: int
    steps: dict[str, Any]


class StepChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By owner token.
        self._claimed: dict[str, Claimed] = {}
        #: By owner token, the names in the document that the run ended with a success.
        self._at_success: dict[str, list[str]] = {}
        watch_jobs(world, changed=(self.claims_are_known, self.steps_only_come))

    def claims_are_known(self, key: str, before: Item, after: Item) -> None:
        if text_of(after, "owner") not in {"", text_of(before, "owner")}:
            task = self._world.scheduler.current
            self._claimed[text_of(after, "owner")] = Claimed(
                by=task.process.name if task else "", attempt=number_of(after, "attempt"), steps=_results(after)
            )
        if run_ended(before, after) and state_of(after) is State.SUCCEEDED:
            self._at_success[text_of(before, "owner")] = [*_results(before)]
            require("steps" not in after, "a success drops its steps", f"{after.get('steps')}", key)

    def steps_only_come(self, key: str, before: Item, after: Item) -> None:
        """One at a time, from the run that owns the job, until its success or a redrive with another payload."""
        was, now = maps_of(before, "steps"), maps_of(after, "steps")
        if run_ended(before, after) and state_of(after) is State.SUCCEEDED:
            return
        if payload_edited(before, after):
            require(not now, "another payload clears the steps", f"{now} are left", key)
            return
        require(now[: len(was)] == was and len(now) - len(was) in {0, 1}, _KEPT, f"{was} became {now}", key)
        if now == was:
            return
        names, owner, task = [text_of(one, "name") for one in now], text_of(after, "owner"), self._world.scheduler
        require(len(set(names)) == len(names), _ONCE, f"recorded twice: {names}", key)
        own = bool(owner) and owner == text_of(before, "owner") and owner in self._claimed
        own = own and (task.current is None or task.current.process.name == self._claimed[owner].by)
        require(own, "steps are fenced", f"{names[-1]} is not of the run that owns the job", key)
        own = number_of(now[-1], "attempt") == number_of(after, "attempt")
        require(own, "steps are fenced", f"{now[-1]} in attempt {after['attempt']}", key)

    def at_end(self) -> None:
        """Raises `Violation`."""
        for run in self._world.runs:
            claimed = self._claimed.get(run.owner)
            # Another worker may have taken the job over before the handler began.
            if run.kind not in _TYPES or not claimed or (run.by, run.attempt) != (claimed.by, claimed.attempt):
                continue
            called = [name for name, _ in run.called]
            require(not {*called} & claimed.steps.keys(), _ONCE, f"{called} after {[*claimed.steps]}", run.key)
            require(len({*called}) == len(called), _ONCE, f"{called} in one run", run.key)
            keys = {key for name, key in run.called if key != f"{run.job_id}/{name}"}
            require(not keys, "the key of a step stays the same", f"{keys}", run.key)
            for name, value in run.returned:
                expected = claimed.steps.get(name, {"name": name, "by": run.owner})
                require(value == expected, _KEPT, f"{name} returned {value}, not {expected}", run.key)
            names = [name for name, _ in run.returned]
            common = min(len(names), len(claimed.steps))
            require(names[:common] == [*claimed.steps][:common], _ORDER, f"{names} of {[*claimed.steps]}", run.key)
            recorded = self._at_success.get(run.owner, names)
            require(recorded == names, _KEPT, f"a success with {recorded} after {names}", run.key)


def _results(item: Item) -> dict[str, Any]:
    return {text_of(one, "name"): json.loads(text_of(one, "result")) for one in maps_of(item, "steps")}


__all__ = ["StepChecks"]

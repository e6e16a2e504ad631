"""Checks of batch handlers: each job of a call has its own outcome and effect, and costs its neighbours little."""

import json
from collections import Counter
from typing import Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import Item, errors_of, number_of, require, run_ended, state_of, text_of
from tests.simulation.world.code_versions import job_type
from tests.simulation.world.world import World
from tidemill.domain.states import State

BATCHED: Final = frozenset({"sim.batched", "sim.batched-in-pairs"})
#: What the effects of several jobs are summed in.
SUM: Final = "!sum"
_OWN: Final = "a job of a call has its own outcome"
_SUMMED: Final = "the sum of the effects is that of the successes"
_SMALL: Final = "a call has no more jobs than its type allows"
_ALONE: Final = "only first attempts share a call"
_CHEAP: Final = "a failed call costs a job one attempt"
#: Or the job is cancelled, as it was asked.
_GOES_ON: Final = frozenset({State.RETRYING, State.SCHEDULED, State.CANCELLED})


class JointCallChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: What the successes have added.
        self._effects = 0
        #: The failed calls of each job in its present life.
        self._failed: Counter[str] = Counter()
        watch_jobs(world, changed=[self._run_ended])

    def _run_ended(self, key: str, before: Item, after: Item) -> None:
        if text_of(after, "type") not in BATCHED:
            return
        if len(after.get("redrives", {"L": []})["L"]) > len(before.get("redrives", {"L": []})["L"]):
            self._failed.pop(key, None)
        if not run_ended(before, after):
            return
        attempt, state = number_of(before, "attempt"), state_of(after)
        if state is State.SUCCEEDED:
            result = json.loads(text_of(after, "result") or "{}")
            self._effects += 2 if result.get("tallies") else 1
            own = {"id": key.rpartition("#")[2], "attempt": attempt}
            require(own.items() <= result.items(), _OWN, f"the result is {result}, not {own}", key)
        failed = any(
            run.call_failed
            and run.jobs_of_call > 1
            and run.owner == text_of(before, "owner")
            and run.attempt == attempt
            for run in self._world.runs
            if run.key == key
        )
        require(not failed or state in _GOES_ON, _CHEAP, f"{state} after a failed call", key)
        errors = errors_of(after)
        if errors and errors != errors_of(before) and text_of(errors[-1], "error_class") == "BatchCallError":
            self._failed[key] += 1
            last = state is not State.DEAD and attempt == 1 and self._failed[key] == 1
            require(last, _CHEAP, f"{state} after {self._failed[key]} failed calls, in attempt {attempt}", key)

    def at_end(self) -> None:
        """Raises `Violation`."""
        effects = self._world.effects.items.items()
        summed = sum(int(item["count"]["N"]) for (key,), item in effects if key.startswith(SUM))
        require(summed == self._effects, _SUMMED, f"the sum is {summed}, not {self._effects}", "*")
        for run in self._world.runs:
            if run.kind in BATCHED and run.jobs_of_call > 1:
                most = job_type(run.kind).batch or 1
                require(run.jobs_of_call <= most, _SMALL, f"{run.jobs_of_call} jobs, {most} allowed", run.key)
                require(run.attempt == 1, _ALONE, f"attempt {run.attempt} is one of {run.jobs_of_call}", run.key)


__all__ = ["JointCallChecks"]

"""Checks of batch handlers: each job of a call has its own outcome and effect, and costs its neighbours little."""

import json
from itertools import pairwise
from typing import Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    errors_of,
    holds_by_cause,
    number_of,
    require,
    run_ended,
    state_of,
    text_of,
)
from tests.simulation.jobs.handler_runs import HandlerRun
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
_CHEAP: Final = "a failed call costs a job no attempt"
_APART: Final = "a job that a failed call held back runs alone"
_HALVED: Final = "the jobs of a failed call go on in halves"
_PAYS: Final = "a job has no error of another job of its call"
#: What the handler raises for a plan, or what its outcomes lack.
_RAISED: Final = frozenset({"BrokenError", "PermanentJobError", "BatchOutcomesError"})


def runs_of(world: World, key: str, before: Item) -> list[HandlerRun]:
    """The calls of the handler in the run that holds the job, in their order."""
    held = (text_of(before, "owner"), number_of(before, "attempt"), key)
    return [run for run in world.runs if (run.owner, run.attempt, run.key) == held]


class JointCallChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: What the successes have added.
        self._effects = 0
        watch_jobs(world, changed=[self._run_ended])

    def _run_ended(self, key: str, before: Item, after: Item) -> None:
        if text_of(after, "type") not in BATCHED or not run_ended(before, after):
            return
        attempt, state = number_of(before, "attempt"), state_of(after)
        if state is State.SUCCEEDED:
            result = json.loads(text_of(after, "result") or "{}")
            self._effects += 2 if result.get("tallies") else 1
            own = {"id": key.rpartition("#")[2], "attempt": attempt}
            require(own.items() <= result.items(), _OWN, f"the result is {result}, not {own}", key)
        calls = runs_of(self._world, key, before)
        sizes = [call.jobs_of_call for call in calls]
        # A call that is under way has taken too long.
        unclear = sizes and sizes[-1] > 1 and (calls[-1].call_failed or calls[-1].ended_ms is None)
        # Or the job is cancelled, as it was asked.
        given_back = number_of(after, "attempt") == attempt - 1 or state is State.CANCELLED
        require(not unclear or given_back, _CHEAP, f"{state} after calls of {sizes} jobs", key)
        apart = "call" in holds_by_cause(before)
        require(not apart or not sizes or sizes == [1], _APART, f"it has calls of {sizes} jobs", key)
        halved = all(later <= (earlier + 1) // 2 for earlier, later in pairwise(sizes))
        require(halved, _HALVED, f"it has calls of {sizes} jobs", key)
        self._pays_for_itself(key, after)

    def _pays_for_itself(self, key: str, after: Item) -> None:
        plan = json.loads(text_of(after, "payload") or "null")
        if plan and not plan["fails"] and plan["key"] != "never":
            raised = _RAISED & {text_of(error, "error_class") for error in errors_of(after)}
            require(not raised, _PAYS, f"it has {sorted(raised)}", key)

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

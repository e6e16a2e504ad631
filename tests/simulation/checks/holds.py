"""Checks of jobs that a worker holds: they have not run, and those that wait for a rate have times of their own."""

from collections import defaultdict
from datetime import timedelta
from typing import Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import Item, number_of, require, run_ended, text_of
from tests.simulation.world.code_versions import job_type
from tests.simulation.world.faults import Fault
from tests.simulation.world.world import World

_MILLISECOND: Final = timedelta(milliseconds=1)
#: Their handlers call the store, or their follow-ups do after they have returned, or their breaker parks them then.
_CALLING: Final = frozenset(
    {
        *("sim.announces", "sim.chain", "sim.dependent", "sim.node", "sim.steps", "sim.unstorable"),
        # The second is held for the other version, too.
        *("sim.stepwise", "sim.lengthened", "sim.reordered"),
        # Their follow-ups.
        *("sim.batched", "sim.batched-in-pairs"),
    }
)


class HoldChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By line, the times that were given to jobs.
        self._given: dict[str, dict[str, int]] = defaultdict(dict)
        watch_jobs(world, changed=[self._changed])

    def _changed(self, key: str, before: Item, after: Item) -> None:
        # A release gives a run back, and leaves an earlier hold as it is.
        held = any(before.get(name) != after.get(name) for name in ("holds", "hold_cause"))
        if held and "hold_cause" in after and run_ended(before, after):
            self.held_jobs_have_not_run(key, text_of(before, "owner"), after)
            self.waiting_jobs_name_their_limit(key, after)
            self.times_differ(key, after)

    def held_jobs_have_not_run(self, key: str, owner: str, after: Item) -> None:
        """A job is held instead of a run. The result of a run that ended is settled, even if a call after it fails."""
        ran = any(run.owner == owner and run.key == key for run in self._world.runs)
        calling = text_of(after, "type") in _CALLING
        # Then two may run at once, and the document names the later one when the handler of the earlier one begins.
        far_off = bool(self._world.faults.counted[Fault.CLOCK_FAR_OFF])
        require(calling or far_off or not ran, "a held job has not run", f"held by {text_of(after, 'hold_cause')}", key)

    def waiting_jobs_name_their_limit(self, key: str, after: Item) -> None:
        cause = text_of(after, "hold_cause")
        fits = ("wait" in after) is (cause in {"limit", "pause", "type", "breaker"})
        require(fits, "a job that waits for a limit says so", f"held by {cause}, wait: {after.get('wait')}", key)

    def times_differ(self, key: str, after: Item) -> None:
        """A rate gives one start in each interval, so no two jobs that wait for it have the same time."""
        limit = job_type(text_of(after, "type")).limit
        if "wait" not in after or "attention" in after or not limit or not limit.rate:
            return
        given, due_ms = self._given[after["wait"]["M"]["key"]["S"]], number_of(after, "due")
        interval_ms = limit.rate.interval / _MILLISECOND
        for other, at_ms in given.items():
            apart_ms = abs(due_ms - at_ms)
            passed = other == key or at_ms <= self._world.scheduler.now_ms
            what = f"{other} and this one have times {apart_ms} ms apart"
            require(passed or apart_ms >= interval_ms - 1, "each start of a rate is given once", what, key)
        given[key] = due_ms


__all__ = ["HoldChecks"]

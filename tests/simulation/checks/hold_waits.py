"""Checks of why a worker holds a job, and for how long. The figures are not the constants of the engine."""

from typing import Final

from tests.simulation.checks.joint_calls import runs_of
from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import Item, capped, number_of, require, run_ended, text_of
from tests.simulation.jobs.flow_types import NODE
from tests.simulation.world.code_versions import job_type
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.names import BATCH_TYPE, FLOW_TYPE

_CHECK: Final = "a held job is tried again soon"
#: A random time of a second to a second more than a ceiling. By cause, the ceiling of the first hold and the longest.
_CEILINGS_MS: Final = {
    "outage": (60_000, 900_000),
    "version": (2_000, 900_000),
    "suspect": (3_000, 3_000),
    "stray": (3_000, 3_000),
    "undo": (1_000, 300_000),
    "call": (2_000, 2_000),
}


class HoldWaitChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        watch_jobs(world, changed=[self._changed])

    def _changed(self, key: str, before: Item, after: Item) -> None:
        held = any(before.get(name) != after.get(name) for name in ("holds", "hold_cause"))
        if held and "hold_cause" in after and run_ended(before, after):
            self.a_hold_has_its_cause(key, before, after)
            self.a_hold_lasts_as_its_cause_says(key, before, after)

    def a_hold_has_its_cause(self, key: str, before: Item, after: Item) -> None:
        """What is recorded as the cause has happened."""
        world, cause = self._world, text_of(after, "hold_cause")
        process = world.scheduler.current.process.name if world.scheduler.current else ""
        happened = {
            "limit": job_type(text_of(after, "type")).limit is not None or capped(after),
            "pause": any(key.startswith("!pause#") for (key,) in world.jobs.items),
            "breaker": any(key.startswith("!breaker#") for (key,) in world.jobs.items),
            "outage": world.sdk.gave_up[process] > 0 or self._left_unread(after),
            "type": world.rollout.broken,
            "version": world.rollout.planned,
            "undo": "supersedes" in after,
            "suspect": number_of(before, "open_runs") > 1,
            "stray": any(by == process for _, by, _ in world.expired_runs)
            or bool(world.scheduler.current and world.scheduler.current.process.streams_closed),
            "call": any(run.jobs_of_call > 1 for run in runs_of(world, key, before)),
        }
        require(happened[cause], "a hold has its cause", f"held by {cause}", key)

    def _left_unread(self, job: Item) -> bool:
        """These read many documents, and the table may leave some of them unread each time."""
        reads = text_of(job, "type") in {BATCH_TYPE, FLOW_TYPE, NODE}
        return reads and bool(self._world.faults.counted[Fault.PARTIAL_BATCH])

    def a_hold_lasts_as_its_cause_says(self, key: str, before: Item, after: Item) -> None:
        """At least a second, and no longer than the ceiling of its number in a row."""
        cause = text_of(after, "hold_cause")
        if cause not in _CEILINGS_MS:
            return
        first_ms, longest_ms = _CEILINGS_MS[cause]
        ceiling_ms = min(first_ms * 2.0 ** (number_of(after, "holds") - 1), longest_ms) + 1000
        claimed_ms, due_ms = number_of(before, "claimed_at"), number_of(after, "due")
        # The worker decided between its claim and now, by its own clock.
        fits = claimed_ms + 1000 <= due_ms <= self._world.scheduler.now_ms + self._skew_ms + ceiling_ms
        require(fits, _CHECK, f"held by {cause} for {due_ms - claimed_ms} ms of at most {ceiling_ms:.0f}", key)

    @property
    def _skew_ms(self) -> int:
        return FAR_OFF_MS if self._world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS


__all__ = ["HoldWaitChecks"]

"""Checks of breakers: no attempt is used while one is open, one probe runs at a time, and it closes and drains in time.

All figures are those of the job type and of the design, not those of the engine.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tests.simulation.checks.forced_breakers import ForcedBreakerChecks, by_breaker
from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import Item, errors_of, require, run_ended, state_of, text_of
from tests.simulation.world.downstream import DownstreamCall
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.world import PAYMENTS, World
from tidemill.domain.states import State

_ITEM: Final = f"!breaker#{PAYMENTS}"
_DEPENDENT: Final = "sim.dependent"
_ERRORS: Final = frozenset({"DownstreamStatusError", "TimeoutError"})
_PROBE_INTERVAL_MS: Final = 10_000
#: A worker knows of an opening after so long: its cached state, the step before its call, and the calls in between.
_KNOWN_AFTER_MS: Final = 5_000
#: A probe on its way, one more interval, and the calls.
_CLOSES_WITHIN_MS: Final = 30_000
#: Wake, and the rate of a line that has at most a dozen jobs.
_DRAINS_WITHIN_MS: Final = 90_000


@dataclass(slots=True)
class _Opened:
    """A time for which the breaker was not closed, in milliseconds."""

    from_ms: int
    to_ms: int | None = None


class BreakerChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World, forced: ForcedBreakerChecks) -> None:
        self._world = world
        self._forced = forced
        self._opened: list[_Opened] = []
        #: By job, since when a breaker holds it.
        self._parked_ms: dict[str, int] = {}
        watch_items(world, self._changed)

    def at_end(self) -> None:
        if self._calm:
            self.one_probe_runs_at_a_time()
            self.a_breaker_closes_in_time()
        for key in self._parked_ms:
            require(False, "no job waits for a closed breaker", "it is still parked at the end", key)

    def _changed(self, key: str, record: Record) -> None:
        before, after = record.before, record.after
        if key == _ITEM:
            self._breaker_moved(after or {})
        elif before and after and "state" in after and before["created_at"] == after["created_at"]:
            if run_ended(before, after):
                self.no_attempt_is_used_while_open(key, before, after)
            self._job_moved(key, before, after)
        elif after is None:
            self._parked_ms.pop(key, None)

    def _breaker_moved(self, item: Item) -> None:
        closed = text_of(item, "circuit") in {"", "closed"}
        present = self._opened[-1] if self._opened and self._opened[-1].to_ms is None else None
        if closed and present:
            present.to_ms = self._now_ms
        elif not closed and present is None:
            self._opened.append(_Opened(self._now_ms))

    def no_attempt_is_used_while_open(self, key: str, before: Item, after: Item) -> None:
        """A run that fails because of the downstream, after its breaker has opened, gives its attempt back."""
        new = errors_of(after)[len(errors_of(before)) :]
        present = self._opened[-1] if self._opened and self._opened[-1].to_ms is None else None
        if not present or not {error["error_class"]["S"] for error in new} & _ERRORS:
            return
        run = next((run for run in self._world.runs if run.owner == text_of(before, "owner")), None)
        ended_ms = run.ended_ms if run and run.ended_ms is not None else self._now_ms
        counted = ended_ms <= present.from_ms or self._unsure(run.by if run else "")
        counted = counted or self._forced.may_be_closed(ended_ms)
        what = f"it failed {ended_ms - present.from_ms} ms after the breaker opened"
        require(counted, "no attempt is used while a breaker is open", what, key)

    def _job_moved(self, key: str, before: Item, after: Item) -> None:
        was, now = by_breaker(before), by_breaker(after)
        if now and not was:
            self._parked_ms[key] = self._now_ms
            require(text_of(after, "type") == _DEPENDENT, "a breaker holds its dependents only", "it is another", key)
        elif was and not now:
            since_ms = self._parked_ms.pop(key)
            if self._calm and state_of(after) is State.QUEUED and self._opened[-1].to_ms is not None:
                late_ms = self._now_ms - max(since_ms, self._opened[-1].to_ms)
                soon = late_ms <= _DRAINS_WITHIN_MS
                require(soon, "no job waits for a closed breaker", f"released {late_ms} ms after it closed", key)

    def one_probe_runs_at_a_time(self) -> None:
        calls = sorted(self._world.downstreams[PAYMENTS].calls, key=lambda call: call.began_ms)
        for opened in self._opened:
            known_ms = opened.from_ms + _KNOWN_AFTER_MS
            probes = [call for call in calls if known_ms < call.began_ms < (opened.to_ms or self._now_ms)]
            for one, other in pairwise(probes):
                apart_ms = other.began_ms - one.began_ms
                # The job takes its step, of a second at most, after it was admitted.
                far = apart_ms >= _PROBE_INTERVAL_MS - 1_000 and not _overlap(one, other)
                require(far, "one probe runs at a time", f"{one.by} and {other.by}, {apart_ms} ms apart", "*")

    def a_breaker_closes_in_time(self) -> None:
        ends_ms = [trouble.until_ms for trouble in self._world.downstreams[PAYMENTS].troubles]
        for opened in self._opened:
            known_ms, to_ms = opened.from_ms + _KNOWN_AFTER_MS, opened.to_ms or self._now_ms
            for call in self._world.downstreams[PAYMENTS].calls:
                # A probe that succeeds closes it with the next write.
                stays = call.succeeded and known_ms < call.began_ms and (call.ended_ms or to_ms) + 1_000 < to_ms
                require(not stays, "a breaker closes in time", f"the call of {call.by} has not closed it", "*")
            if opened.to_ms is None:
                # No job is left that could probe it: `at_end` finds one that waits.
                continue
            over_ms = max([opened.from_ms, *(end for end in ends_ms if end <= opened.to_ms)])
            late_ms = opened.to_ms - over_ms
            require(late_ms <= _CLOSES_WITHIN_MS, "a breaker closes in time", f"after {late_ms} ms", "*")

    def _unsure(self, by: str) -> bool:
        """Whether this process may know an older state: the table did not answer it, or it was stopped for a while."""
        world = self._world
        stopped = world.faults.counted[Fault.FROZEN_MID_CALL] or world.faults.counted[Fault.SLOW_CALL]
        return bool(world.sdk.gave_up[by] or by in world.scheduler.interrupted or stopped)

    @property
    def _calm(self) -> bool:
        """Whether the downstream has the only troubles of this seed. An operator may pause a job that is elected."""
        return self._forced.calm and not self._forced.forces

    @property
    def _now_ms(self) -> int:
        return self._world.scheduler.now_ms


def _overlap(one: DownstreamCall, other: DownstreamCall) -> bool:
    return other.began_ms < (one.ended_ms or other.began_ms + 1)

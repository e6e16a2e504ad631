"""Watches the jobs table of an outage: the transitions of the breaker, and the jobs that have not ended."""

from random import Random
from typing import Final

from tests.simulation.checks.violation import number_of, state_of, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import PAYMENTS, World
from tidemill.domain.states import TERMINAL, State

DEPENDENT: Final = "sim.dependent"
#: The worker of a probe is killed within so long, and not in the last minutes of the outage: a probe that is lost
#: holds its turn until its lease ends, which is a bound of its own.
_WITHIN_MS: Final = 300
_NOT_AFTER_MS: Final = 180_000
#: A breaker that opens so soon after it closed is in the same outage.
_SAME_OUTAGE_MS: Final = 300_000
#: Clocks differ.
_DIFFERENCE_MS: Final = 10_000
#: A job whose runs crash again and again dies of it.
_MOST_CRASHES: Final = 2


class Watch:
    """Watches one world."""

    def __init__(self, world: World, *, until_ms: int, crash_share: float) -> None:
        self._world = world
        self._random = Random(f"crashes {world.seed}")
        self._crashes_until_ms = until_ms - _NOT_AFTER_MS
        self._crash_share = crash_share
        #: Each time at which the breaker closed, and each at which it opened.
        self.closed_ms: list[int] = []
        self.opened_ms: list[int] = []
        #: Openings soon after a closing whose item does not say when the outage began.
        self.forgotten = 0
        self._outage_ms = 0
        #: When dependent jobs came, when a worker claimed one, and how many had not ended at each opening.
        self.submitted_ms: list[int] = []
        self.claimed_ms: list[int] = []
        self.live_at_openings: list[int] = []
        #: Dependent jobs that have not ended, and all of these jobs.
        self.live = self.all_live = 0
        #: Workers that were killed with the probe.
        self.crashes = 0
        world.jobs.watchers.append(self._changed)

    @property
    def openings(self) -> int:
        return len(self.opened_ms)

    def closed_at(self, until_ms: int) -> int | None:
        """When it closed after that time; that time, if it was closed then. None if it stayed open."""
        open_then = sum(at <= until_ms for at in self.opened_ms) > sum(at <= until_ms for at in self.closed_ms)
        return next((at for at in self.closed_ms if at > until_ms), None) if open_then else until_ms

    def _changed(self, record: Record) -> None:
        before, after = record.before or {}, record.after or {}
        if record.keys["pk"]["S"] == f"!breaker#{PAYMENTS}":
            was, now = text_of(before, "circuit") or "closed", text_of(after, "circuit") or "closed"
            if was != now:
                self._moved(was, now)
                if was == "closed":
                    self._began(number_of(after, "outage_from"))
        elif "state" in after:
            more = (state_of(after) not in TERMINAL) - ("state" in before and state_of(before) not in TERMINAL)
            self.all_live += more
            if text_of(after, "type") == DEPENDENT:
                self.live += more
                if "state" not in before:
                    self.submitted_ms.append(self._world.scheduler.now_ms)
                if state_of(after) is State.RUNNING and text_of(after, "owner") != text_of(before, "owner"):
                    self.claimed_ms.append(self._world.scheduler.now_ms)

    def _began(self, outage_ms: int) -> None:
        now_ms = self.opened_ms[-1]
        if not self.closed_ms or now_ms - self.closed_ms[-1] >= _SAME_OUTAGE_MS:
            self._outage_ms = now_ms
        self.forgotten += abs(outage_ms - self._outage_ms) > _DIFFERENCE_MS

    def _moved(self, was: str, now: str) -> None:
        if was == "closed":
            self.opened_ms.append(self._world.scheduler.now_ms)
            self.live_at_openings.append(self.live)
        elif now == "closed":
            self.closed_ms.append(self._world.scheduler.now_ms)
        elif now == "half-open":
            self._may_crash()

    def _may_crash(self) -> None:
        scheduler, task = self._world.scheduler, self._world.scheduler.current
        may = self.crashes < _MOST_CRASHES and scheduler.now_ms < self._crashes_until_ms
        if task and may and self._random.random() < self._crash_share:
            self.crashes += 1
            scheduler.after(self._random.randint(0, _WITHIN_MS), scheduler.kill, task.process)

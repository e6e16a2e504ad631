"""Operators who replay events to one consumer: in several runs, twice at once, and again under another name."""

from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random
from typing import Final

from tests.simulation.actors.callers import TENANTS, run_tool
from tests.simulation.checks.replays import ReplayChecks
from tests.simulation.jobs.event_types import EVENT
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.application.events.replay import REPLAY_TAG, Progress, Replay, ReplayVerdict
from tidemill.domain.errors import PermanentJobError
from tidemill.domain.time_constants import EPOCH, MILLISECOND
from tidemill.system import clock

#: Share of seeds with replays, and the most of them.
_SHARE: Final = 0.5
_MOST_REPLAYS: Final = 3
#: An operator looks whether a replay has ended or died, and begins the next run.
_LOOK_MS: Final = 60_000
_RUN: Final = timedelta(seconds=100)
_RATES: Final = (1, 20)
_READ_UNITS: Final = 100
#: Passes of each replay: the last ones repeat it.
_PASSES: Final = 3
_MOST_RUNS: Final = 60
#: Between the publication of the first events and the end of the times, so that some replays miss events.
_WINDOWS: Final = (timedelta(seconds=30), timedelta(days=2))
_CONSUMERS: Final = ("sim.hears", "sim.hears-some", "sim.deaf")


@dataclass(slots=True)
class _State:
    """A replay, with the progress that its runs have saved."""

    tag: str
    asked: Replay
    rate: int
    progress: Progress = field(default_factory=Progress)
    #: When its pass began, in milliseconds.
    began_ms: int = 0
    passes: int = 0
    runs: int = 0


class ReplayingOperators:
    """Replay events in one world. Their own chance leaves all else as it is in seeds without them."""

    def __init__(self, world: World, checks: ReplayChecks) -> None:
        self._world = world
        self._random = Random(f"replaying operators {world.seed}")
        self._checks = checks

    def plan(self, until_ms: int) -> None:
        random, now_ms = self._random, self._world.scheduler.now_ms
        if random.random() >= _SHARE:
            return
        began = EPOCH + now_ms * MILLISECOND
        for number in range(random.randint(1, _MOST_REPLAYS)):
            name = f"r{number}" if number else ""
            asked = Replay(
                consumer=random.choice(_CONSUMERS),
                event=EVENT,
                version=None,
                tenant=random.choice([None, *TENANTS]),
                since=began,
                until=began + random.choice(_WINDOWS),
                name=name,
            )
            tag = f"{REPLAY_TAG}:{name}" if name else REPLAY_TAG
            self._checks.asked[tag] = asked
            state = _State(tag, asked, random.choice(_RATES))
            at_ms = random.randint(now_ms, until_ms)
            for who in ["pia", "quin"][: random.choice([1, 1, 2])]:
                self._world.scheduler.at(at_ms, self._look, who, state)

    def _look(self, who: str, state: _State) -> None:
        """Start a run, which may meet one that still works."""
        if state.passes < _PASSES and state.runs < _MOST_RUNS:
            state.runs += 1
            run_tool(self._world, who, partial(self._run, who, state))
            self._world.scheduler.after(_LOOK_MS, self._look, who, state)

    def _run(self, who: str, state: _State, _process: Process) -> None:
        """One run, as the job does it: what it has saved survives it."""
        progress = Progress() if state.progress.complete else state.progress
        began_ms = self._world.scheduler.now_ms if progress.cursor is None else state.began_ms
        deadline = clock.now() + _RUN

        def save(progress: Progress) -> None:
            # The job keeps its progress in this form.
            state.progress, state.began_ms = Progress.of_json(progress.as_json()), began_ms

        try:
            progress = (
                composition.parts()
                .replayer(tenant=state.asked.tenant, rate=state.rate, read_units=_READ_UNITS)
                .run(state.asked, progress, time_left=lambda: deadline - clock.now(), save=save)
            )
        except PermanentJobError as error:
            # A job file of this version is broken.
            self._world.log(who, f"replays nothing: {error}")
            return
        self._world.log(who, f"replays {state.tag}: {dict(progress.counts)}, complete: {progress.complete}")
        save(progress)
        if progress.complete:
            state.passes += 1
            if ReplayVerdict.UNREADABLE not in progress.counts:
                # An older version of the code cannot read each document of a newer one.
                self._checks.completed(state.tag, began_ms=began_ms)


__all__ = ["ReplayingOperators"]

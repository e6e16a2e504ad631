"""Operators who migrate the payloads of a job type: the live jobs first, and then the ended ones."""

from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random
from typing import Final

from tests.simulation.actors.callers import run_tool
from tests.simulation.checks.migrations import MIGRATED_TYPE, MigrationChecks, migrated
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.application.operations.migration import Migration, Progress
from tidemill.system import clock

#: Share of seeds with a migration, and of those with two at once.
_SHARE: Final = 0.2
_TWO: Final = 0.3
#: An operator looks whether a migration has ended or died, and begins the next run or pass.
_LOOK_MS: Final = 120_000
_RUN: Final = timedelta(seconds=100)
#: Most jobs and read units per second.
_RATES: Final = (1, 20)
_READ_UNITS: Final = 100


@dataclass(slots=True)
class _State:
    """A migration, with the progress that its runs have saved."""

    ended: bool
    rate: int
    progress: Progress = field(default_factory=Progress)
    #: When its pass began, in milliseconds.
    began_ms: int = 0
    #: Keys of the jobs whose payload cannot be migrated.
    failed: set[str] = field(default_factory=set)
    over: bool = False


class MigratingOperators:
    """Migrate payloads in one world. Their own chance leaves all else as it is in seeds without them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"migrating operators {world.seed}")
        self._checks = MigrationChecks(world)

    def plan(self, until_ms: int) -> None:
        if self._random.random() >= _SHARE:
            return
        for who in ["mia", "noa"] if self._random.random() < _TWO else ["mia"]:
            at_ms = self._random.randint(self._world.scheduler.now_ms, until_ms)
            rate = self._random.choice(_RATES)
            self._world.scheduler.at(at_ms, self._look, who, [_State(ended, rate) for ended in (False, True)])

    def _look(self, who: str, states: list[_State]) -> None:
        """Start a run, which may meet one that still works, until both migrations are over."""
        left = [state for state in states if not state.over]
        if left:
            run_tool(self._world, who, partial(self._run, who, left[0]))
            self._world.scheduler.after(_LOOK_MS, self._look, who, states)

    def _run(self, who: str, state: _State, _process: Process) -> None:
        """One run, as the job does it: what it has saved survives it."""
        progress = state.progress.next_pass() if state.progress.complete else state.progress
        began_ms = self._world.scheduler.now_ms if progress.cursor is None else state.began_ms
        deadline = clock.now() + _RUN

        def save(progress: Progress) -> None:
            state.progress, state.began_ms = progress, began_ms

        progress = (
            composition.parts()
            .migrator(rate=state.rate, read_units=_READ_UNITS)
            .run(
                Migration(type=MIGRATED_TYPE, ended=state.ended, dry_run=False),
                migrated,
                progress,
                time_left=lambda: deadline - clock.now(),
                save=save,
                failed=lambda tenant, job_id, _error: state.failed.add(f"{tenant}#{job_id}" if tenant else job_id),
            )
        )
        self._world.log(who, f"migrates: {progress.rewritten} rewritten, {progress.left} left, {progress.complete}")
        save(progress)
        if progress.complete and not progress.left and not state.over:
            state.over = True
            self._checks.pass_ended(ended=state.ended, began_ms=began_ms, failed=state.failed)


__all__ = ["MigratingOperators"]

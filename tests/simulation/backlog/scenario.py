"""One seed: a backlog waits for a service that has a timeout, new jobs continue to come, and the backlog drains.

Between too many calls at once each takes longer than the timeout, so the service does nothing but work that its callers
have given up. Their retries keep it so: the state is metastable, since it outlasts its cause.
https://www.usenix.org/publications/loginonline/metastable-failures-wild
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Final

from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.checks.violation import state_of
from tests.simulation.deployment import Deployment
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.world import PAYMENTS, World
from tidemill import composition
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.states import TERMINAL, State
from tidemill.domain.submission.submission import Submission
from tidemill.names import Lane

ADAPTIVE: Final = "sim.calls"
FREE: Final = "sim.calls_freely"
#: The service works on so many calls at once, for so long, and all slots of the lane together take 15 seconds.
_CAPACITY: Final = 4
_LATENCY_MS: Final = 2_000
_TIMEOUT_MS: Final = 8_000
_PER_SECOND: Final = 1000 * _CAPACITY / _LATENCY_MS
#: The load that made the backlog and continues, as a share of the capacity.
_LOAD: Final = 0.5
_WORKERS: Final = 6
_BATCH: Final = 5
_SUBMITTED_WITHIN_MS: Final = 5_000
_WITHIN: Final = 1.2
_DUPLICATES: Final = 0.05
_REPEATED_AFTER_MS: Final = 1_000
_FEW: Final = 8
_MOST_STEPS: Final = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """The drain of one seed. Times are in seconds."""

    seed: int
    backlog: int
    #: None if it has not drained within twice the bound.
    drained_after: float | None
    #: Calls that the service finished in time, and all.
    succeeded: int
    calls: int
    dead: int

    @property
    def bound(self) -> float:
        """1.2 times the backlog by the spare capacity."""
        return _WITHIN * self.backlog / (_PER_SECOND * (1 - _LOAD))


class _Live:
    """Counts the jobs that have not ended."""

    def __init__(self, world: World) -> None:
        self.number = self.dead = 0
        world.jobs.watchers.append(self._changed)

    def _changed(self, record: Record) -> None:
        before, after = record.before or {}, record.after or {}
        if "state" in after:
            self.number += (state_of(after) not in TERMINAL) - ("state" in before and state_of(before) not in TERMINAL)
            self.dead += state_of(after) is State.DEAD and (not before or state_of(before) is not State.DEAD)


def play(seed: int, *, lasts: timedelta, type_: str = ADAPTIVE) -> Drain:
    """`lasts`: the load of so long a time waits at the beginning."""
    backlog = round(lasts.total_seconds() * _PER_SECOND * _LOAD)
    with _world(seed) as world:
        scheduler, random, downstream = world.scheduler, Random(f"backlog {seed}"), world.downstreams[PAYMENTS]
        EventBridgeScheduler(world).begin()
        downstream.capacity, downstream.latency_ms, downstream.timeout_ms = _CAPACITY, _LATENCY_MS, _TIMEOUT_MS
        live = _Live(world)
        began_ms = scheduler.now_ms
        nothing_yet = Drain(seed=seed, backlog=backlog, drained_after=None, succeeded=0, calls=0, dead=0)
        ends_ms = began_ms + round(2000 * nothing_yet.bound)
        waiting = [began_ms + random.randint(0, _SUBMITTED_WITHIN_MS) for _ in range(backlog)]
        coming = range(began_ms, ends_ms, round(1000 / (_PER_SECOND * _LOAD)))
        for number, at_ms in enumerate([*waiting, *coming]):
            scheduler.at(at_ms, _submit, world, type_, number)
        scheduler.run(until_ms=began_ms + 2 * _SUBMITTED_WITHIN_MS, most_steps=_MOST_STEPS)
        scheduler.run(until_ms=ends_ms, most_steps=_MOST_STEPS, over=lambda: live.number <= _FEW)
        return replace(
            nothing_yet,
            drained_after=(scheduler.now_ms - began_ms) / 1000 if live.number <= _FEW else None,
            succeeded=sum(call.succeeded for call in downstream.calls),
            calls=len(downstream.calls),
            dead=live.dead,
        )


def broken_by(drain: Drain) -> list[str]:
    late = drain.drained_after is None or drain.drained_after > drain.bound
    return ["drained too late"] * late + ["jobs died"] * bool(drain.dead)


def _world(seed: int) -> World:
    faults = Faults(Random(seed))
    faults.rates = {Fault.DUPLICATE: _DUPLICATES}
    stage = Deployment().stage
    lanes = tuple(
        replace(lane, max_concurrency=_WORKERS, batch_size=_BATCH) if lane.name == Lane.DEFAULT else lane
        for lane in stage.lanes
    )
    return World(seed, Deployment(stage=replace(stage, lanes=lanes)), faults=faults)


def _submit(world: World, type_: str, number: int) -> None:
    def submit() -> None:
        submission = Submission(type=type_, payload={}, key=f"{type_}-{number}")
        while True:
            # A caller repeats what the table has refused for the moment.
            with suppress(StoreUnavailableError):
                composition.parts().submit(submission, tenant="111122223333:AROAADA", trace="request")
                return
            world.scheduler.sleep(_REPEATED_AFTER_MS)

    world.scheduler.spawn(world.process(f"caller {number}"), submit)

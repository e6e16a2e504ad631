"""One seed: events come at a steady pace, and one of their three consumers is in trouble all the time."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.simulation.actors.callers import run_tool
from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.actors.operator_objects import configurator
from tests.simulation.checks.violation import number_of, state_of, text_of
from tests.simulation.deployment import Deployment
from tests.simulation.world.downstream import Trouble
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import PAYMENTS, World
from tidemill import composition
from tidemill.application.events.events import publish
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.events.events import Event
from tidemill.domain.operations.runtime_configuration import PAUSE_PREFIX
from tidemill.domain.states import State

_TENANT: Final = "111122223333:AROAADA"
_IN_TROUBLE: Final = "sim.consults"
_OTHERS: Final = ("sim.counts", "sim.greets")
#: Between two events. A slow service serves the two slots of its consumer a third of them.
_EVERY_MS: Final = 500
_LATENCY_MS: Final = 200
_TIMES_SLOWER: Final = 15
_TIMEOUT_MS: Final = 5_000
_DUPLICATES: Final = 0.05
#: The last events reach their consumers within it.
_AFTER_MS: Final = 60_000
_REPEATED_AFTER_MS: Final = 1_000
_MOST_STEPS: Final = 10_000_000
#: The mean and the 95th percentile of the others grow by less.
BOUND: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The consumers that one seed reached."""

    events: int
    #: From the acceptance of each event to the first run of each other consumer, in milliseconds.
    others_ms: Sequence[int]
    #: Jobs of the consumer in trouble that have succeeded, and those that died.
    succeeded: int
    dead: int

    @property
    def missed(self) -> int:
        """Runs of the others that never came."""
        return len(_OTHERS) * self.events - len(self.others_ms)

    @property
    def mean_ms(self) -> float:
        return statistics.fmean(self.others_ms)

    @property
    def p95_ms(self) -> float:
        return statistics.quantiles(self.others_ms, n=20)[-1]


def _works(_world: World, _until_ms: int) -> None:
    """Nothing happens to it."""


def _is_broken(world: World, until_ms: int) -> None:
    world.downstreams[PAYMENTS].troubles.append(Trouble(world.scheduler.now_ms, until_ms))


def _is_slow(world: World, until_ms: int) -> None:
    world.downstreams[PAYMENTS].troubles.append(Trouble(world.scheduler.now_ms, until_ms, _TIMES_SLOWER))


def _is_stopped(world: World, _until_ms: int) -> None:
    def pause(_process: Process) -> None:
        changes = configurator()
        changes.set(changes.read(), f"{PAUSE_PREFIX}type={_IN_TROUBLE}", {"rate": 10}, by="eve", reason="")

    run_tool(world, "eve", pause)


#: What may happen to one consumer, for the whole time.
TROUBLES: Final[Mapping[str, Callable[[World, int], None]]] = {
    "works": _works,
    "broken": _is_broken,
    "slow": _is_slow,
    "stopped": _is_stopped,
}


def play(seed: int, trouble: str, *, events: int) -> Reached:
    """The same seed has the same events for each of the `TROUBLES`."""
    faults = Faults(Random(seed))
    faults.rates = {Fault.DUPLICATE: _DUPLICATES}
    with World(seed, Deployment(), faults=faults) as world:
        scheduler, random, downstream = world.scheduler, Random(f"consumers {seed}"), world.downstreams[PAYMENTS]
        EventBridgeScheduler(world).begin()
        downstream.latency_ms, downstream.timeout_ms = _LATENCY_MS, _TIMEOUT_MS
        ends_ms = scheduler.now_ms + events * _EVERY_MS + _AFTER_MS
        TROUBLES[trouble](world, ends_ms)
        for number in range(events):
            scheduler.at(scheduler.now_ms + number * _EVERY_MS + random.randint(0, _EVERY_MS), _publish, world, number)
        scheduler.run(until_ms=ends_ms, most_steps=_MOST_STEPS)
        return _reached(world, events)


def broken_by(reached: Reached, usual: Reached) -> list[str]:
    """`usual`: with the same seed, and a consumer that works."""
    later = max(reached.mean_ms / usual.mean_ms, reached.p95_ms / usual.p95_ms) - 1
    return [f"the others begin {later:.0%} later"] * (later >= BOUND) + ["runs are missing"] * bool(reached.missed)


def _publish(world: World, number: int) -> None:
    def act() -> None:
        event = Event(type="sim.opened", data={}, key=f"door {number}")
        while True:
            # A caller repeats what the table has refused for the moment.
            with suppress(StoreUnavailableError):
                publish(event, composition.parts().submit, tenant=_TENANT, trace="request")
                return
            world.scheduler.sleep(_REPEATED_AFTER_MS)

    world.scheduler.spawn(world.process(f"publisher {number}"), act)


def _reached(world: World, events: int) -> Reached:
    items = {key: item for (key,), item in world.jobs.items.items() if "state" in item}
    first_ms: dict[str, int] = {}
    for run in world.runs:
        if run.kind in _OTHERS:
            first_ms.setdefault(run.key, run.began_ms)
    published_ms = {
        key: number_of(items[f"{_TENANT}#{text_of(items[key], 'parent')}"], "created_at") for key in first_ms
    }
    troubled = [state_of(item) for item in items.values() if text_of(item, "type") == _IN_TROUBLE]
    return Reached(
        events=events,
        others_ms=[began_ms - published_ms[key] for key, began_ms in first_ms.items()],
        succeeded=troubled.count(State.SUCCEEDED),
        dead=troubled.count(State.DEAD),
    )

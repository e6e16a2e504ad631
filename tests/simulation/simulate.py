"""One seed: a world, a while of chaos, then quiet until everything that was accepted has ended."""

import traceback
from collections import Counter
from dataclasses import dataclass
from typing import Final

from tests.simulation.deployment import Deployment
from tests.simulation.invariants import Checks, Violation
from tests.simulation.operators import Operators
from tests.simulation.people import Asked, Caller, Workload
from tests.simulation.sweeper import Sweeper
from tests.simulation.world.faults import Fault
from tests.simulation.world.scheduler import StalledError
from tests.simulation.world.world import World

_DEPLOYMENT: Final = Deployment()
_CHAOS_SECONDS: Final = (120, 120, 600, 3600, 8 * 3600, 30 * 3600)
_MOST_STEPS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one seed."""

    seed: int
    hash: str
    faults: Counter[Fault]
    violation: Violation | None
    story: str
    jobs: int
    #: Calls to AWS, those that were tried again included.
    calls: int
    #: How much of the bound it took until all had ended: 1 is all of it.
    rested_at: float


def simulate(seed: int) -> Result:
    """Deterministic: the same seed and the same code give the same result, its hash included."""
    with World(seed, _DEPLOYMENT) as world:
        violation: Violation | None = None
        rested_at = 0.0
        try:
            rested_at = _play(world)
        except Violation as found:
            violation = found
        except StalledError as stalled:
            violation = Violation("the world comes to rest", str(stalled), "*")
        except Exception as broken:  # noqa: BLE001 - whatever it is, the seed must be told
            violation = Violation("nothing breaks", "".join(traceback.format_exception(broken)[-3:]), "*")
        return Result(
            seed=seed,
            hash=world.trace.hash(),
            faults=world.weather.counted,
            violation=violation,
            story=world.trace.story(violation.about) if violation else "",
            jobs=sum("state" in item for item in world.jobs.items.values()),
            calls=world.sdk.calls,
            rested_at=rested_at,
        )


def _play(world: World) -> float:
    scheduler, random = world.scheduler, world.random
    checks = Checks(world)
    operators = Operators(world)
    sweeper = Sweeper(world)
    chaos_ends_ms = scheduler.now_ms + random.choice(_CHAOS_SECONDS) * 1000
    workload = Workload(world)
    for number in range(workload.jobs):
        at_ms = scheduler.now_ms + random.randint(0, min(chaos_ends_ms - scheduler.now_ms, workload.window_ms))
        Caller(world, Asked(workload.tenant(), workload.submission(number), at_ms), number)
    operators.tick()
    operators.meddle(chaos_ends_ms)
    sweeper.begin()
    scheduler.run(until_ms=chaos_ends_ms, most_steps=_MOST_STEPS)
    world.weather.calm = True
    world.say("weather", "*turns calm")
    operators.release_groups()
    bound_ms = checks.bound_ms()
    scheduler.run(until_ms=chaos_ends_ms + bound_ms, most_steps=_MOST_STEPS, over=checks.at_rest)
    rested_at = (scheduler.now_ms - chaos_ends_ms) / bound_ms
    checks.at_end()
    return rested_at

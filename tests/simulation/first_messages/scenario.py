"""One small seed: up to four jobs, and no operators, versions or other tenants; the faults are those of any seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any, Final

from tests.simulation.actors.batch_callers import BatchCaller
from tests.simulation.actors.callers import TENANTS, Caller, PlannedSubmission
from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.actors.operators import Operators
from tests.simulation.checks.all_checks import Checks
from tests.simulation.deployment import Deployment
from tests.simulation.run_one_seed import MOST_STEPS, Result, result_of
from tests.simulation.world.world import World
from tidemill import names
from tidemill.domain.submission.submission import Submission

_KINDS: Final = (
    "sim.effect",
    "sim.urgent",
    "sim.plain",
    "sim.later",
    "sim.chain",
    "sim.continue",
    "sim.snooze",
    "sim.poison",
    "sim.blocking",
    "sim.slots",
)
_MOST_JOBS: Final = 4
#: Share of jobs in a group, of those that wait first, and of the seeds that submit in one batch.
_GROUPED: Final = 0.2
_DELAYED: Final = 0.1
_BATCHED: Final = 0.2
_WITHIN_MS: Final = (50, 5_000)
_FAULTS_MS: Final = (20_000, 120_000)


@dataclass(frozen=True)
class _FirstMessages(Deployment):
    """Every lane has first messages. Submit, publish or the workers may not know of it yet, as in a deployment."""

    @property
    def first_message_settings(self) -> Sequence[Mapping[str, str]]:
        every: Mapping[str, str] = {names.Env.FIRST_MESSAGE_LANES: ",".join(lane.name for lane in self.lanes)}
        return (every, every, every, {})

    @property
    def foreground_targets(self) -> Sequence[Mapping[str, str]]:
        return ({},)


_DEPLOYMENT: Final = _FirstMessages()


def simulate(seed: int) -> Result:
    """The same seed and the same code always give the same result, including the hash."""
    return result_of(seed, _DEPLOYMENT, _run)


def _run(world: World) -> float:
    scheduler, random = world.scheduler, Random(f"first messages {world.seed}")
    checks, operators, eventbridge = Checks(world), Operators(world), EventBridgeScheduler(world)
    planned = _planned(world, random)
    if random.random() < _BATCHED:
        BatchCaller(world, planned, 0)
    else:
        for number, one in enumerate(planned):
            Caller(world, one, number)
    eventbridge.begin()
    scheduler.run(until_ms=scheduler.now_ms + random.choice(_FAULTS_MS), most_steps=MOST_STEPS, over=checks.look)
    world.faults.stopped, world.faults.stopped_ms = True, scheduler.now_ms
    operators.release_groups()
    checks.quiet_begins()
    quiet_begins_ms, bound_ms = scheduler.now_ms, checks.bound_ms()

    def at_rest() -> bool:
        return checks.look() or (eventbridge.at_rest() and checks.at_rest())

    scheduler.run(until_ms=quiet_begins_ms + bound_ms, most_steps=MOST_STEPS, over=at_rest)
    checks.at_end()
    return (scheduler.now_ms - quiet_begins_ms) / bound_ms


def _planned(world: World, random: Random) -> Sequence[PlannedSubmission]:
    within_ms = random.choice(_WITHIN_MS)
    return [
        PlannedSubmission(
            TENANTS[0],
            Submission(
                type=random.choice(_KINDS),
                payload=_payload(random),
                key=f"key-{number}",
                group="orders" if random.random() < _GROUPED else None,
                delay=timedelta(seconds=random.choice([1, 30])) if random.random() < _DELAYED else None,
            ),
            world.scheduler.now_ms + random.randint(0, within_ms),
        )
        for number in range(random.randint(1, _MOST_JOBS))
    ]


def _payload(random: Random) -> dict[str, Any]:
    return {
        "fails": random.choice([0, 0, 1, 2, 9]),
        "seconds": random.choice([0, 0, 1, 16]),
        "count": random.randint(1, 3),
        "key": "one",
    }

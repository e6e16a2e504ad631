"""Run one seed: build a world, inject faults for a while, stop them, and wait until every accepted job has ended."""

import gc
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Final

from tests.simulation.actors.alarms import Alarms
from tests.simulation.actors.batch_callers import BatchCaller
from tests.simulation.actors.batch_openers import BatchOpeners
from tests.simulation.actors.batched_jobs import batched_jobs
from tests.simulation.actors.callers import Caller, PlannedSubmission, Workload, further_submissions
from tests.simulation.actors.capping_operators import CappingOperators
from tests.simulation.actors.debouncers import Debouncers
from tests.simulation.actors.event_publishers import EventPublishers
from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.actors.flooding_tenants import FloodingTenants
from tests.simulation.actors.flow_starters import FlowStarters
from tests.simulation.actors.forcing_operators import ForcingOperators
from tests.simulation.actors.grouped_jobs import submit_grouped_jobs
from tests.simulation.actors.invalid_callers import InvalidCallers
from tests.simulation.actors.migrating_operators import MigratingOperators
from tests.simulation.actors.operators import Operators
from tests.simulation.actors.overriding_operators import OverridingOperators
from tests.simulation.actors.pausing_operators import PausingOperators
from tests.simulation.actors.probing_operators import ProbingOperators
from tests.simulation.actors.replaying_operators import ReplayingOperators
from tests.simulation.actors.selecting_operators import SelectingOperators
from tests.simulation.actors.signallers import Signallers
from tests.simulation.actors.tenants import Tenants
from tests.simulation.actors.ttl_sweeper import TtlSweeper
from tests.simulation.actors.undoers import Undoers
from tests.simulation.actors.urgent_bursts import UrgentBursts
from tests.simulation.checks.all_checks import Checks, Violation
from tests.simulation.deployment import Deployment
from tests.simulation.world.faults import Fault
from tests.simulation.world.task_scheduler import StalledError
from tests.simulation.world.world import World
from tidemill.names import Lane

_DEPLOYMENT: Final = Deployment()
#: One seed of four stores payloads as files that the others store as items.
_FRUGAL_DEPLOYMENT: Final = Deployment(stage=replace(_DEPLOYMENT.stage, payload_item_bytes=1024))
_SEEDS_PER_FRUGAL: Final = 4
_FAULTS_SECONDS: Final = (120, 120, 600, 3600, 8 * 3600, 30 * 3600)
#: More than a seed has at once.
_OBJECTS_PER_COLLECTION: Final = 1_000_000
_OLDEST_GENERATION: Final = 2
_SEEDS_PER_WHOLE_COLLECTION: Final = 100
_collections: Final = count()
#: Long enough that reconcile gives up the jobs of an emptied lane.
_EMPTIED_SECONDS: Final = 10 * 86_400
#: Wake and reconcile take a million of them while a lane is emptied and the store answers nothing but errors.
MOST_STEPS: Final = 3_000_000
#: With the longer time, batches have several messages.
_POLL_MS: Final = (20, 20, 3_000)
#: Share of seeds with a batch.
_BATCHED: Final = 0.1
#: Tenants begin to read and control their jobs within this time after the last submission.
_TENANTS_ACT_WITHIN_MS: Final = 60_000
#: Operators ask for ended jobs until then, after the faults too, when more jobs have ended.
_ASKED_AFTER_MS: Final = 120_000
#: By then every document has expired and been deleted, and reconcile has run a day later.
_ALL_EXPIRED_MS: Final = 4 * 86_400_000


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one seed."""

    seed: int
    hash: str
    faults: Counter[Fault]
    violation: Violation | None
    story: str
    jobs: int
    #: Calls to AWS, retries included.
    calls: int
    #: Share of the time bound that passed until every job had ended.
    rested_at: float


def simulate(seed: int) -> Result:
    """The same seed and the same code always give the same result, including the hash."""
    return result_of(seed, _FRUGAL_DEPLOYMENT if seed % _SEEDS_PER_FRUGAL == 0 else _DEPLOYMENT, _run)


def result_of(seed: int, deployment: Deployment, run: Callable[[World], float]) -> Result:
    """`run` raises `Violation`, or returns the share of the time bound that passed until every job had ended."""
    with _one_collection():
        return _played(seed, deployment, run)


def _played(seed: int, deployment: Deployment, run: Callable[[World], float]) -> Result:
    with World(seed, deployment) as world:
        violation: Violation | None = None
        rested_at = 0.0
        try:
            rested_at = run(world)
        except Violation as found:
            violation = found
        except StalledError as stalled:
            violation = Violation("the simulation comes to rest", str(stalled), "*")
        except Exception as broken:  # noqa: BLE001 - report every failure with its seed
            violation = Violation("no unexpected exception", "".join(traceback.format_exception(broken)[-3:]), "*")
        return Result(
            seed=seed,
            hash=world.trace.hash(),
            faults=world.faults.counted,
            violation=violation,
            story=world.trace.story(violation.about) if violation else "",
            jobs=sum("state" in item for item in world.jobs.items.values()),
            calls=world.sdk.calls,
            rested_at=rested_at,
        )


@contextmanager
def _one_collection() -> Iterator[None]:
    """Look for cycles once, when the world is over: a look during the seed finds few cycles and takes longer.

    Some objects of a world outlive that look. A look at all objects, from time to time, finds them.
    """
    usual = gc.get_threshold()
    gc.set_threshold(_OBJECTS_PER_COLLECTION, *usual[1:])
    try:
        yield
        gc.collect(_OLDEST_GENERATION if next(_collections) % _SEEDS_PER_WHOLE_COLLECTION == 0 else 0)
    finally:
        gc.set_threshold(*usual)


def _run(world: World) -> float:
    scheduler, random = world.scheduler, world.random
    checks = Checks(world)
    operators = Operators(world)
    sweeper = TtlSweeper(world)
    _choose_polls(world)
    faults_seconds = random.choice(_FAULTS_SECONDS)
    if world.faults.occurs(Fault.LANE_EMPTIED):
        faults_seconds = _EMPTIED_SECONDS
        world.lanes[Lane.DEFAULT].emptied_until_ms = scheduler.now_ms + faults_seconds * 1000
    faults_end_ms = scheduler.now_ms + faults_seconds * 1000
    world.rollout.plan(faults_end_ms)
    for name, downstream in world.downstreams.items():
        downstream.plan(Random(f"{name} {world.seed}"), faults_end_ms)
    workload = Workload(world)
    invalid = InvalidCallers(world)
    eventbridge = EventBridgeScheduler(world)
    _submit(world, workload, faults_end_ms)
    _plan_callers(world, checks, faults_end_ms)
    eventbridge.begin()
    Alarms(world)
    operators.plan(faults_end_ms)
    pausing = PausingOperators(world)
    pausing.plan(faults_end_ms, periodic=eventbridge.ticks)
    _plan_operators(world, checks, faults_end_ms)
    invalid.plan(min(faults_end_ms, scheduler.now_ms + workload.window_ms))
    Tenants(world).plan(min(faults_end_ms, scheduler.now_ms + workload.window_ms + _TENANTS_ACT_WITHIN_MS))
    sweeper.begin()
    scheduler.run(until_ms=faults_end_ms, most_steps=MOST_STEPS, over=checks.look)
    world.faults.stopped, world.faults.stopped_ms = True, scheduler.now_ms
    world.log("weather", "*turns calm")
    operators.release_groups()
    pausing.resume_all()
    quiet_begins_ms = max(faults_end_ms, world.rollout.ends_ms())
    scheduler.run(until_ms=quiet_begins_ms, most_steps=MOST_STEPS, over=checks.look)
    bound_ms = checks.bound_ms()
    if world.rollout.rolled_back:
        quiet_ends_ms = quiet_begins_ms + bound_ms
        scheduler.run(until_ms=quiet_ends_ms, most_steps=MOST_STEPS, over=checks.versions.rolled_back_at_rest)
        checks.versions.at_end_of_rollback()
        world.rollout.deploy_again()
        quiet_begins_ms = max(scheduler.now_ms, world.rollout.ends_ms())

    def at_rest() -> bool:
        return checks.look() or (eventbridge.at_rest() and checks.at_rest())

    checks.quiet_begins()
    scheduler.run(until_ms=quiet_begins_ms + bound_ms, most_steps=MOST_STEPS, over=at_rest)
    rested_at = (scheduler.now_ms - quiet_begins_ms) / bound_ms
    checks.at_end()
    checks.schedules.at_end(eventbridge.ticked)
    invalid.at_end()
    scheduler.run(until_ms=scheduler.now_ms + _ALL_EXPIRED_MS, most_steps=MOST_STEPS, over=checks.payloads.at_rest)
    checks.payloads.at_end()
    checks.governor.at_end()
    return rested_at


def _choose_polls(world: World) -> None:
    for mapping in world.mappings.values():
        mapping.poll_ms = world.random.choice(_POLL_MS)
    if batched_jobs(world.seed):
        world.mappings[Lane.DEFAULT].poll_ms = max(_POLL_MS)


def _plan_callers(world: World, checks: Checks, until_ms: int) -> None:
    """Those with a chance of their own."""
    Signallers(world, checks.signals.accepted.append).plan()
    Undoers(world, checks.undos).plan()
    EventPublishers(world, checks.events).plan()
    BatchOpeners(world, checks.batches).plan()
    Debouncers(world, checks.bursts).plan()
    FlowStarters(world, checks.flows).plan(until_ms)
    FloodingTenants(world, checks.floods.flood).plan()
    UrgentBursts(world).plan()
    CappingOperators(world).plan()


def _plan_operators(world: World, checks: Checks, until_ms: int) -> None:
    """Those with a chance of their own, who leave all else as it is in seeds without them."""
    OverridingOperators(world).plan(until_ms)
    ForcingOperators(world).plan(until_ms)
    SelectingOperators(world).plan(until_ms + _ASKED_AFTER_MS)
    ProbingOperators(world).plan(until_ms)
    MigratingOperators(world).plan(until_ms)
    ReplayingOperators(world, checks.replays).plan(until_ms + _ASKED_AFTER_MS)


def _submit(world: World, workload: Workload, until_ms: int) -> None:
    """Each job by itself, or all jobs of one tenant in a batch."""
    now_ms, random = world.scheduler.now_ms, world.random
    within_ms = min(until_ms - now_ms, workload.window_ms)
    planned = [
        PlannedSubmission(workload.tenant(), workload.submission(number), now_ms + random.randint(0, within_ms))
        for number in range(workload.jobs)
    ]
    planned = [one.with_canary() for one in (*planned, *further_submissions(world))]
    together = [one for one in planned if one.tenant == planned[0].tenant and not one.submission.supersedes]
    batched = together if random.random() < _BATCHED else []
    if batched:
        BatchCaller(world, batched, 0)
    for number, one in enumerate(planned):
        if one not in batched:
            Caller(world, one, number)
    submit_grouped_jobs(world)

"""One seed: jobs come at a steady pace, their downstream is down for a while, and then their line drains."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Final

from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.checks.violation import errors_of, state_of, text_of
from tests.simulation.deployment import Deployment
from tests.simulation.outage.variant import Variant, variant_of
from tests.simulation.outage.watch import DEPENDENT, Watch
from tests.simulation.world.downstream import Downstream
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.world import PAYMENTS, World
from tidemill import composition
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.states import TERMINAL
from tidemill.domain.submission.submission import Submission
from tidemill.names import Lane

_TENANT: Final = "111122223333:AROAADA"
_OTHER: Final = "sim.effect"
#: The threshold that `sim.dependent` declares for its breaker.
THRESHOLD: Final = 3
WINDOW_MS: Final = 30_000
PROBE_MS: Final = 10_000
#: The errors of a call that failed. Others belong to a worker that was killed.
_ERRORS: Final = frozenset({"DownstreamStatusError", "TimeoutError"})
#: A caller waits longer than a queue of all slots lasts, so that the drain shows the breaker and not the timeout.
_TIMEOUT_MS: Final = 20_500
#: A breaker that closed so short a time ago does not count earlier successes. Time until a failure is counted.
_SAME_OUTAGE_MS: Final = 300_000
_COUNTED_MS: Final = 2_000
_BEFORE_MS: Final = 30_000
_AFTER_MS: Final = 4 * 60_000
_ALL_END_MS: Final = 40 * 60_000
#: Between two jobs of another type, which share the lane.
_OTHERS_MS: Final = 30_000
_REPEATED_AFTER_MS: Final = 1_000
_MOST_STEPS: Final = 10_000_000
_BUCKET_MS: Final = 10_000
#: The drain is over when so many jobs are left, which have come meanwhile.
_FEW: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The figures of one seed. Times in seconds; None if it has not happened."""

    seed: int
    variant: Variant
    calls: int
    #: For each opening the failures that may come before and the slots, and a probe in each interval.
    most_calls: int
    #: Attempts that failed calls used up, and the failures that may come before the openings.
    attempts: int
    most_attempts: int
    #: Claims of its jobs while it was down; the guide says how many there may be.
    claims: int
    most_claims: int
    closed_after: float | None
    goodput_after: float | None
    backlog: int
    drained_after: float | None
    #: Openings beyond one for each time that the service went down.
    reopened: int
    downs: int
    #: Reopenings that began an outage of their own.
    forgotten: int
    crashes: int
    #: Jobs that have not ended.
    left: int
    #: Start latencies of jobs of another type in milliseconds, during the outage and during the drain.
    others: Sequence[float]
    others_in_drain: Sequence[float]
    #: Part of the capacity that new jobs take.
    new_jobs_share: float

    @property
    def drain_bound(self) -> float:
        """1.2 times the backlog by the capacity that new jobs leave."""
        return 1.2 * self.backlog / (self.variant.per_second * (1 - self.new_jobs_share))


def play(seed: int, *, lasts: timedelta) -> Outage:
    lasts_ms = lasts // timedelta(milliseconds=1)
    return _played(seed, variant_of(seed, lasts_ms), lasts_ms)


def start_latencies_without(seed: int, *, lasts: timedelta) -> Sequence[float]:
    """Return the latencies of another type, with the same faults and load, while the downstream works."""
    lasts_ms = lasts // timedelta(milliseconds=1)
    variant = variant_of(seed, lasts_ms)
    with _world(seed, variant) as world:
        from_ms = _prepare(world, variant, lasts_ms)
        world.scheduler.run(until_ms=from_ms + lasts_ms, most_steps=_MOST_STEPS)
        return _latencies(world, from_ms, from_ms + lasts_ms)


def _world(seed: int, variant: Variant) -> World:
    faults = Faults(Random(seed))
    faults.rates = variant.rates()
    workers, batch_size = variant.workers
    stage = Deployment().stage
    lanes = tuple(
        replace(lane, max_concurrency=workers, batch_size=batch_size) if lane.name == Lane.DEFAULT else lane
        for lane in stage.lanes
    )
    return World(seed, Deployment(stage=replace(stage, lanes=lanes)), faults=faults)


def _prepare(world: World, variant: Variant, lasts_ms: int) -> int:
    """Plan the load. The time at which the outage begins, in milliseconds."""
    scheduler, random = world.scheduler, Random(f"outage {world.seed}")
    EventBridgeScheduler(world).begin()
    downstream = world.downstreams[PAYMENTS]
    downstream.capacity, downstream.timeout_ms = variant.capacity, _TIMEOUT_MS
    downstream.latency_ms = variant.latency_ms
    from_ms = scheduler.now_ms + _BEFORE_MS + random.randint(0, 10_000)
    ends_ms = from_ms + lasts_ms + _AFTER_MS
    for type_, every_ms in ((DEPENDENT, variant.pace_ms(lasts_ms)), (_OTHER, _OTHERS_MS)):
        for number, at_ms in enumerate(range(scheduler.now_ms, ends_ms, every_ms)):
            scheduler.at(at_ms + random.randint(0, 500), _submit, world, type_, number)
    return from_ms


def _played(seed: int, variant: Variant, lasts_ms: int) -> Outage:
    with _world(seed, variant) as world:
        scheduler, downstream = world.scheduler, world.downstreams[PAYMENTS]
        from_ms = _prepare(world, variant, lasts_ms)
        until_ms = from_ms + lasts_ms
        downs = variant.downs(from_ms, until_ms)
        downstream.troubles += [*downs, *variant.recovery(until_ms)]
        watch = Watch(world, until_ms=until_ms, crash_share=variant.crash_share)
        scheduler.run(until_ms=until_ms, most_steps=_MOST_STEPS)
        world.faults.rates.pop(Fault.THROTTLED, None)
        backlog = watch.live
        scheduler.run(until_ms=until_ms + _AFTER_MS, most_steps=_MOST_STEPS, over=lambda: _drained(watch))
        drained_ms = scheduler.now_ms if _drained(watch) else None
        scheduler.run(until_ms=until_ms + _AFTER_MS, most_steps=_MOST_STEPS)
        scheduler.run(until_ms=until_ms + _ALL_END_MS, most_steps=_MOST_STEPS, over=lambda: not watch.all_live)
        closed_ms = watch.closed_at(until_ms)
        items = [item for item in world.jobs.items.values() if text_of(item, "type") in {DEPENDENT, _OTHER}]
        trips = sum(_trips_at(downstream, opened_ms, watch.closed_ms) for opened_ms in watch.opened_ms)

        def while_down(times_ms: Iterable[int]) -> int:
            return sum(any(down.from_ms <= at < down.until_ms for down in downs) for at in times_ms)

        most_calls = trips + watch.openings * variant.slots + lasts_ms // PROBE_MS + len(downs)
        failed = [error for item in items for error in errors_of(item) if error["error_class"]["S"] in _ERRORS]
        return Outage(
            seed=seed,
            variant=variant,
            calls=while_down(call.began_ms for call in downstream.calls),
            most_calls=most_calls,
            attempts=len(failed),
            most_attempts=trips,
            claims=while_down(watch.claimed_ms),
            # A message that is on its lane is claimed once before its job is parked.
            most_claims=most_calls + while_down(watch.submitted_ms) + sum(watch.live_at_openings),
            closed_after=None if closed_ms is None else (closed_ms - until_ms) / 1000,
            goodput_after=_goodput_after(downstream, until_ms, variant.per_second),
            backlog=backlog,
            drained_after=None if drained_ms is None or closed_ms is None else (drained_ms - closed_ms) / 1000,
            reopened=max(watch.openings - len(downs), 0),
            downs=len(downs),
            forgotten=watch.forgotten,
            crashes=watch.crashes,
            left=sum(state_of(item) not in TERMINAL for item in items),
            others=_latencies(world, from_ms, until_ms),
            others_in_drain=_latencies(world, until_ms, drained_ms or until_ms + _AFTER_MS),
            new_jobs_share=1000 / variant.pace_ms(lasts_ms) / variant.per_second,
        )


def _trips_at(downstream: Downstream, opened_ms: int, closed_ms: Sequence[int]) -> int:
    """Failures that may come before the opening: the threshold, and as many as calls succeeded not long ago.

    The breaker needs half of the calls of a window, and a worker counts its successes of one window before. A call that
    hangs fails only after its timeout. Soon after a closing, only successes since the first failure count.
    """
    from_ms = opened_ms - 2 * WINDOW_MS - _TIMEOUT_MS
    if any(0 <= opened_ms - at_ms < _SAME_OUTAGE_MS for at_ms in closed_ms):
        failed_ms = (call.ended_ms or 0 for call in downstream.calls if not call.succeeded)
        from_ms = min((at for at in failed_ms if opened_ms - WINDOW_MS - _COUNTED_MS <= at <= opened_ms), default=0)
    succeeded = sum(call.succeeded and from_ms <= (call.ended_ms or 0) <= opened_ms for call in downstream.calls)
    return THRESHOLD + succeeded


def _drained(watch: Watch) -> bool:
    return bool(watch.closed_ms) and watch.live <= _FEW


def _latencies(world: World, from_ms: int, until_ms: int) -> list[float]:
    """From submission to the first line of the handler, in milliseconds, of jobs submitted in that time."""
    return [
        run.began_ms - run.submitted_ms
        for run in world.runs
        if run.kind == _OTHER and run.attempt == 1 and from_ms <= run.submitted_ms < until_ms
    ]


def _goodput_after(downstream: Downstream, until_ms: int, per_second: float) -> float | None:
    """When the calls that succeed in ten seconds first reach nine tenths of the capacity."""
    ended = [call.ended_ms for call in downstream.calls if call.succeeded and call.ended_ms]
    for begins_ms in range(until_ms, until_ms + _AFTER_MS, 1_000):
        number = sum(begins_ms <= at_ms < begins_ms + _BUCKET_MS for at_ms in ended)
        if number >= 0.9 * per_second * _BUCKET_MS / 1000:
            return (begins_ms + _BUCKET_MS - until_ms) / 1000
    return None


def _submit(world: World, type_: str, number: int) -> None:
    def submit() -> None:
        submission = Submission(type=type_, payload={}, key=f"{type_}-{number}")
        while True:
            # A caller repeats what the table has refused for the moment.
            with suppress(StoreUnavailableError):
                composition.parts().submit(submission, tenant=_TENANT, trace="request")
                return
            world.scheduler.sleep(_REPEATED_AFTER_MS)

    world.scheduler.spawn(world.process(f"caller {type_} {number}"), submit)

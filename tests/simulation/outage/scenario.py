"""One seed: jobs come at a steady pace, their downstream is down for a while, and then their line drains."""

from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Final

from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.checks.violation import errors_of, state_of, text_of
from tests.simulation.deployment import Deployment
from tests.simulation.world.downstream import Trouble
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Faults
from tests.simulation.world.world import PAYMENTS, World
from tidemill import composition
from tidemill.domain.states import TERMINAL
from tidemill.domain.submission import Submission

_TENANT: Final = "111122223333:AROAADA"
_DEPENDENT: Final = "sim.dependent"
#: At most as many runs are under way at the opening, or begin before their worker knows of it: five workers of the
#: default lane in `dev`, each with a batch of ten.
SLOTS: Final = 50
#: As `sim.dependent` declares its breaker.
THRESHOLD: Final = 3
PROBE_MS: Final = 10_000
#: Calls in a second: four at a time, of 400 ms each.
_CAPACITY: Final = 4
_LATENCY_MS: Final = 400
CAPACITY_PER_SECOND: Final = 1000 * _CAPACITY / _LATENCY_MS
#: A caller waits longer than a queue of all slots lasts, so that the drain shows the breaker and not the timeout.
_TIMEOUT_MS: Final = 20_000
_BEFORE_MS: Final = 30_000
_AFTER_MS: Final = 20 * 60_000
_MOST_STEPS: Final = 10_000_000
_BUCKET_MS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The figures of one seed. Times in seconds; None if it has not happened."""

    seed: int
    calls: int
    #: Threshold, slots, and a probe in each interval.
    most_calls: int
    #: Attempts that the outage used up.
    attempts: int
    closed_after: float | None
    goodput_after: float | None
    backlog: int
    drained_after: float | None
    reopened: int
    #: Jobs that have not ended well.
    left: int

    @property
    def drain_bound(self) -> float:
        """1.2 times the backlog by the capacity that new jobs leave."""
        return 1.2 * self.backlog / (CAPACITY_PER_SECOND - 1 / _PACE_SECONDS)


#: Between two submissions.
_PACE_SECONDS: Final = 2.0


class _Watch:
    """When the breaker closed, and how many jobs waited at each time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.closed_ms: list[int] = []
        self.openings = 0
        self.live = 0
        self.empty_ms: int | None = None
        self._closed = True
        world.jobs.watchers.append(self._changed)

    def _changed(self, record: Record) -> None:
        before, after = record.before or {}, record.after or {}
        if record.keys["pk"]["S"] == f"!breaker#{PAYMENTS}":
            closed = text_of(after, "circuit") in {"", "closed"}
            if closed and not self._closed:
                self.closed_ms.append(self._world.scheduler.now_ms)
            self.openings += self._closed and not closed
            self._closed = closed
        elif text_of(after, "type") == _DEPENDENT:
            was = "state" in before and state_of(before) not in TERMINAL
            now = state_of(after) not in TERMINAL
            self.live += now - was


def play(seed: int, *, lasts: timedelta) -> Outage:
    faults = Faults(Random(seed))
    faults.rates = {}
    with World(seed, Deployment(), faults=faults) as world:
        return _run(world, lasts // timedelta(milliseconds=1))


def _run(world: World, lasts_ms: int) -> Outage:
    scheduler, random = world.scheduler, Random(f"outage {world.seed}")
    EventBridgeScheduler(world).begin()
    watch = _Watch(world)
    downstream = world.downstreams[PAYMENTS]
    downstream.capacity, downstream.latency_ms, downstream.timeout_ms = _CAPACITY, _LATENCY_MS, _TIMEOUT_MS
    from_ms = scheduler.now_ms + _BEFORE_MS + random.randint(0, 10_000)
    until_ms = from_ms + lasts_ms
    downstream.troubles.append(Trouble(from_ms, until_ms))
    ends_ms = until_ms + _AFTER_MS
    for number, at_ms in enumerate(range(scheduler.now_ms, until_ms + _AFTER_MS // 2, round(_PACE_SECONDS * 1000))):
        scheduler.at(at_ms + random.randint(0, 500), _submit, world, number)
    scheduler.run(until_ms=until_ms, most_steps=_MOST_STEPS)
    backlog = watch.live
    few = round(SLOTS / 10)
    scheduler.run(until_ms=ends_ms, most_steps=_MOST_STEPS, over=lambda: bool(watch.closed_ms) and watch.live <= few)
    drained_ms = scheduler.now_ms if watch.live <= few else None
    scheduler.run(until_ms=ends_ms, most_steps=_MOST_STEPS)
    items = [item for item in world.jobs.items.values() if text_of(item, "type") == _DEPENDENT]
    closed_ms = watch.closed_ms[0] if watch.closed_ms else None
    return Outage(
        seed=world.seed,
        calls=sum(from_ms <= call.began_ms < until_ms for call in downstream.calls),
        most_calls=THRESHOLD + SLOTS + lasts_ms // PROBE_MS + 1,
        attempts=sum(len(errors_of(item)) for item in items),
        closed_after=None if closed_ms is None else (closed_ms - until_ms) / 1000,
        goodput_after=_goodput_after(world, until_ms),
        backlog=backlog,
        drained_after=None if drained_ms is None or closed_ms is None else (drained_ms - closed_ms) / 1000,
        reopened=max(watch.openings - 1, 0),
        left=sum(text_of(item, "state") != "succeeded" for item in items),
    )


def _goodput_after(world: World, until_ms: int) -> float | None:
    """When the calls that succeed in ten seconds first reach nine tenths of the capacity."""
    ended = [call.ended_ms for call in world.downstreams[PAYMENTS].calls if call.succeeded and call.ended_ms]
    for begins_ms in range(until_ms, until_ms + _AFTER_MS, 1_000):
        number = sum(begins_ms <= at_ms < begins_ms + _BUCKET_MS for at_ms in ended)
        if number >= 0.9 * CAPACITY_PER_SECOND * _BUCKET_MS / 1000:
            return (begins_ms + _BUCKET_MS - until_ms) / 1000
    return None


def _submit(world: World, number: int) -> None:
    def submit() -> None:
        composition.submit()(
            Submission(type=_DEPENDENT, payload={}, key=f"outage-{number}"), tenant=_TENANT, trace="request"
        )

    world.scheduler.spawn(world.process(f"caller {number}"), submit)

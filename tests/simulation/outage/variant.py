"""What differs between the seeds: the service, how it fails and recovers, and the faults that come with its outage."""

from dataclasses import dataclass
from random import Random
from typing import Final

from tests.simulation.world.downstream import Trouble
from tests.simulation.world.faults import Fault

#: Calls that the service works on at once; slots of the lane, as workers and the messages of each; and jobs that wait
#: at the end of the outage, in seconds of work. All slots together wait for less than the timeout of a call. A small
#: service has the same bounds, and takes a tenth of the time to play. Only a large one is faster than the first rate of
#: the drain, so its backlog has to be larger than what that costs.
_SMALL: Final = (1, (2, 3), 60)
_LARGE: Final = (4, (5, 10), 100)
_LARGE_SHARE: Final = 0.05
_LATENCY_MS: Final = 400
#: A call that hangs lasts until the timeout of its caller.
_HANGS: Final = 100_000
_HALF: Final = 2
#: The service works at half of its capacity for so long.
_PARTIAL_MS: Final = 300_000
_MOST_GAPS: Final = 2
_GAP_MS: Final = (15_000, 45_000)
#: Between two gaps, and before and after them: long enough for the breaker to open again.
_APART_MS: Final = 180_000
_DUPLICATES: Final = 0.1
#: Until the service recovers, since repeated calls take time of the drain.
_THROTTLED: Final = 0.1
_REPLACED: Final = 0.2
#: Share of the probes whose worker is killed, up to a few.
_CRASHES: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The variant of one seed. Times are in milliseconds from the beginning of the outage."""

    capacity: int
    #: Workers of the lane, and the most messages that each gets at once.
    workers: tuple[int, int]
    backlog_seconds: int
    #: Whether calls hang instead of failing at once.
    hangs: bool
    #: Whether the service recovers to half of its capacity first.
    partial: bool
    #: Times in which it works for a moment.
    gaps: tuple[tuple[int, int], ...]
    duplicates: bool
    throttled: bool
    replaced: bool
    crash_share: float

    @property
    def per_second(self) -> float:
        """Calls in a second when the service has just recovered."""
        return 1000 * self.capacity / _LATENCY_MS / (_HALF if self.partial else 1)

    @property
    def slots(self) -> int:
        """Runs at once."""
        return self.workers[0] * self.workers[1]

    @property
    def latency_ms(self) -> int:
        return _LATENCY_MS

    def pace_ms(self, lasts_ms: int) -> int:
        """Between two submissions."""
        return round(lasts_ms / (self.backlog_seconds * self.per_second))

    def rates(self) -> dict[Fault, float]:
        drawn = {
            Fault.DUPLICATE: _DUPLICATES * self.duplicates,
            Fault.THROTTLED: _THROTTLED * self.throttled,
            Fault.COLD_START: _REPLACED * self.replaced,
        }
        return {fault: rate for fault, rate in drawn.items() if rate}

    def downs(self, from_ms: int, until_ms: int) -> list[Trouble]:
        """The times in which the service is down."""
        edges = [from_ms, *(from_ms + edge for gap in self.gaps for edge in gap), until_ms]
        slower = _HANGS if self.hangs else None
        return [Trouble(begin, end, slower) for begin, end in zip(edges[::2], edges[1::2], strict=True)]

    def recovery(self, until_ms: int) -> list[Trouble]:
        return [Trouble(until_ms, until_ms + _PARTIAL_MS, _HALF)] if self.partial else []


def variant_of(seed: int, lasts_ms: int) -> Variant:
    """Each seed draws half of the ways, so that one does not always mask another."""
    random = Random(f"outage variant {seed}")

    def drawn() -> bool:
        return random.random() < 1 / 2

    large = random.random() < _LARGE_SHARE
    capacity, workers, backlog_seconds = _LARGE if large else _SMALL
    return Variant(
        capacity=capacity,
        workers=workers,
        backlog_seconds=backlog_seconds,
        hangs=drawn(),
        partial=drawn(),
        gaps=_gaps(random, lasts_ms) if drawn() and not large else (),
        duplicates=drawn(),
        throttled=drawn(),
        replaced=drawn(),
        crash_share=_CRASHES if drawn() else 0.0,
    )


def _gaps(random: Random, lasts_ms: int) -> tuple[tuple[int, int], ...]:
    number = min(random.randint(1, _MOST_GAPS), lasts_ms // _APART_MS - 1)
    part_ms = lasts_ms // (number + 1) if number > 0 else 0
    begins_ms = [part_ms * (index + 1) - random.randint(0, part_ms - _APART_MS) for index in range(number)]
    return tuple((begin, begin + random.randint(*_GAP_MS)) for begin in begins_ms)

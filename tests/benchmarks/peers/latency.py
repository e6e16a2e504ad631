"""What happened to the jobs of one phase: how long they took, which were lost, and which ran more than once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.benchmarks.peers.journal import Notes
from tests.benchmarks.peers.load import Due

PERCENTILES: Final = (50, 95, 99)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of the values do not exceed: the nearest rank. NaN without values."""
    if not values:
        return math.nan
    return sorted(values)[max(math.ceil(len(values) * percent / 100), 1) - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    jobs: int
    #: By percentile, in milliseconds, from the time at which the job was due.
    pickup: Mapping[str, float]
    end_to_end: Mapping[str, float]
    #: Jobs whose outcome was not stored within the patience of the phase, although the system had accepted them.
    unfinished: int
    #: Jobs that the system did not accept.
    refused: int
    #: Runs that began although an earlier run of the job had begun.
    extra_begins: int
    #: Runs that ended although an earlier run of the job had ended: a second effect.
    extra_ends: int
    #: From the time at which the first job was due to the last stored outcome.
    seconds: float


def outcome(plan: Sequence[Due], accepted: Mapping[int, float], notes: Notes, stored: Mapping[int, float]) -> Outcome:
    """`stored`: when the outcome of a job was stored, in seconds since 1970."""
    begins, ends = notes.of("begin"), notes.of("end")
    numbers = {due.number for due in plan}
    finished = [number for number in numbers if number in stored]
    first = min(due.at for due in plan)
    return Outcome(
        jobs=len(plan),
        pickup=_percentiles([begins[due.number][0] - due.at for due in plan if due.number in begins]),
        end_to_end=_percentiles([stored[due.number] - due.at for due in plan if due.number in stored]),
        unfinished=sum(number in accepted and number not in stored for number in numbers),
        refused=sum(number not in accepted for number in numbers),
        extra_begins=_beyond_first(begins, numbers),
        extra_ends=_beyond_first(ends, numbers),
        seconds=max((stored[number] for number in finished), default=math.nan) - first,
    )


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    return {f"p{percent}": percentile(seconds, percent) * 1000 for percent in PERCENTILES}


def _beyond_first(times: Mapping[int, Sequence[float]], numbers: set[int]) -> int:
    return sum(len(times[number]) - 1 for number in numbers if number in times)

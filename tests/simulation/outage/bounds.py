"""What each outage must keep, and the printed figures of many."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median, quantiles
from typing import Final

from tests.simulation.outage.scenario import Outage

#: Seconds from the end of the outage.
CLOSES_WITHIN: Final = 60
GOODPUT_WITHIN: Final = 120
#: Times the start latency of other types without an outage. Fewer seeds say too little about a 95th percentile.
OTHERS_AT_MOST: Final = 1.1
#: Where calls hang, or the line drains in a moment in which the service works: both take slots of the lane.
OTHERS_BESIDE_BUSY_SLOTS_AT_MOST: Final = 1.3
FEWEST_SEEDS: Final = 100


def broken_by(outage: Outage) -> Sequence[str]:
    """The bounds that this outage breaks."""
    holds: Mapping[str, bool] = {
        "too many calls": outage.calls <= outage.most_calls,
        "too many attempts": outage.attempts <= outage.most_attempts,
        "too many claims": outage.claims <= outage.most_claims,
        "closed too late": outage.closed_after is not None and outage.closed_after <= CLOSES_WITHIN,
        "goodput too late": outage.goodput_after is not None and outage.goodput_after <= GOODPUT_WITHIN,
        "drained too late": outage.drained_after is not None and outage.drained_after <= outage.drain_bound,
        "reopened": outage.reopened <= outage.downs,
        "began anew": outage.forgotten == 0,
        "jobs left": outage.left == 0,
    }
    return [name for name, held in holds.items() if not held]


def figures(outages: Sequence[Outage]) -> Iterator[str]:
    """Lines with the median and the worst of each figure."""
    yield _row("calls while it is down", [each.calls for each in outages])
    yield _row("of the calls that are allowed", [each.calls / each.most_calls for each in outages])
    yield _row("attempts used", [each.attempts for each in outages])
    yield _row("of the attempts that are allowed", [each.attempts / max(each.most_attempts, 1) for each in outages])
    yield _row("claims while it is down", [each.claims for each in outages])
    yield _row("of the claims that are allowed", [each.claims / each.most_claims for each in outages])
    yield _row("seconds until the breaker closed", [each.closed_after for each in outages])
    yield _row("seconds until 90 % of the capacity", [each.goodput_after for each in outages])
    yield _row("jobs that waited at its end", [each.backlog for each in outages])
    yield _row("seconds from the closing until they had ended", [each.drained_after for each in outages])
    yield _row("of the time that is allowed", [_of(each.drained_after, each.drain_bound) for each in outages])
    yield _row("reopenings of each time that it went down", [each.reopened / each.downs for each in outages])
    yield _row("workers killed with the probe", [each.crashes for each in outages])


def others_slower(outages: Sequence[Outage], without: Sequence[Sequence[float]]) -> tuple[bool, Sequence[str]]:
    """Whether the p95 of the start latency of other types breaks its bound, and lines with the figures.

    It is compared with that of the same seeds without an outage. Only of seeds in which no worker was killed: the
    messages of its batch come again after their visibility timeout.
    """
    pairs = [pair for pair in zip(outages, without, strict=True) if not pair[0].crashes]
    plain = [pair for pair in pairs if not (pair[0].variant.hangs or pair[0].variant.gaps)]
    busy = [pair for pair in pairs if pair[0].variant.hangs or pair[0].variant.gaps]
    lines, broken = [_line("p95 start latency of another type, without", f"{_calm(pairs):.0f} ms")], False
    for name, some, most in (
        ("during an outage that fails at once", plain, OTHERS_AT_MOST),
        ("during one that hangs or pauses", busy, OTHERS_BESIDE_BUSY_SLOTS_AT_MOST),
    ):
        times = _p95([latency for each, _ in some for latency in each.others]) / _calm(some)
        broken = broken or times > most
        lines.append(_line(name, f"{times:.2f} times"))
    draining = _p95([latency for each, _ in pairs for latency in each.others_in_drain])
    return broken, [*lines, _line("while the line drains", f"{draining / _calm(pairs):.2f} times")]


def _calm(pairs: Sequence[tuple[Outage, Sequence[float]]]) -> float:
    return _p95([latency for _, each in pairs for latency in each])


def _p95(latencies: Sequence[float]) -> float:
    return quantiles(latencies, n=20)[-1] if len(latencies) > 1 else math.nan


def _of(figure: float | None, bound: float) -> float | None:
    return None if figure is None else figure / bound


def _row(name: str, values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    worst = "never" if len(known) < len(values) else f"{max(known):.3g}"
    return _line(name, f"{median(known):.3g}, {worst}" if known else "never")


def _line(name: str, text: str) -> str:
    return f"{name:>46}  {text}"

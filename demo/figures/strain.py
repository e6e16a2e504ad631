"""`python -m demo.figures strain` computes goodput against offered load, with and without an adaptive limit.

It also computes how fast a foreground beside the jobs is, with and without the governor. It needs no AWS:
`demo.figures.strain_model` is a model. It fails if the goodput with the limit falls beyond saturation, if a metastable
start does not drain in time, if the governor does not keep the foreground fast, or if its level swings. It draws the
plots of the guides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from demo.figures.foreground_model import FOREGROUND, TARGET, ForegroundModel
from demo.figures.require import require
from demo.figures.strain_model import CAPACITY, Model
from demo.figures.strain_plot import svg

#: Offered load, as a multiple of the capacity.
LOADS: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.25, 1.5, 2, 3, 5, 7, 10)
#: Until a run has settled, and how long it is measured then.
WARM_UP_SECONDS: Final = 60.0
MEASURED_SECONDS: Final = 120.0
#: Goodput with the limit stays above this share of the capacity at every load beyond it.
FLAT: Final = 0.9
#: The metastable start: an hour of jobs at half of the capacity, all due at once, while such jobs continue to come.
BACKLOG_LOAD: Final = 0.5
BACKLOG_SECONDS: Final = 3600.0
#: The backlog is gone within this multiple of backlog / spare capacity.
DRAINED_WITHIN: Final = 1.2
_CHECK_EVERY_SECONDS: Final = 10.0
#: The governor needs some steps of ten seconds.
GOVERNED_WARM_UP_SECONDS: Final = 120.0
#: With the governor, at least this share of the foreground is answered in time at every load.
KEPT: Final = 0.75
#: Beyond saturation, the goodput of the jobs stays above this share of its largest value.
LEVEL: Final = 0.8
#: How long the level is watched, and how often it may swing: rise after a fall, although the load stays the same.
WATCHED_SECONDS: Final = 1800.0
MOST_SWINGS: Final = 2
#: A level could swing where the load is near the capacity. Far above it, the level is at its highest all the time.
WATCHED_LOADS: Final = LOADS[: LOADS.index(2) + 1]
_ROOT: Final = Path(__file__).parents[2]
PLOT: Final = _ROOT / "docs/guides/strain-goodput.svg"
FOREGROUND_PLOT: Final = _ROOT / "docs/guides/strain-foreground.svg"


@dataclass(frozen=True, slots=True)
class Point:
    """Jobs a second that succeeded at one offered load, with a limit and without."""

    load: float
    limited: float
    unlimited: float


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the foreground that was answered in time, and the jobs a second that succeeded beside it."""

    in_time: float
    goodput: float


@dataclass(frozen=True, slots=True)
class Governing:
    """One offered load of jobs, beside the same foreground."""

    load: float
    governed: Share
    ungoverned: Share


def measure(
    loads: Sequence[float] = LOADS, *, warm_up: float = WARM_UP_SECONDS, measured: float = MEASURED_SECONDS
) -> list[Point]:
    def goodput(load: float, *, adaptive: bool) -> float:
        model = Model(offered=load * CAPACITY, adaptive=adaptive)
        model.run_until(warm_up)
        before = model.succeeded
        model.run_until(warm_up + measured)
        return (model.succeeded - before) / measured

    return [Point(load, goodput(load, adaptive=True), goodput(load, adaptive=False)) for load in loads]


def falls(points: Sequence[Point]) -> list[Point]:
    """The points beyond saturation at which goodput with the limit is no longer flat."""
    return [point for point in points if point.load >= 1 and point.limited < FLAT * CAPACITY]


def drain_seconds(*, adaptive: bool, backlog_seconds: float = BACKLOG_SECONDS) -> float | None:
    """Until a metastable start has drained. None if it has not after twice the allowed time."""
    backlog = round(backlog_seconds * BACKLOG_LOAD * CAPACITY)
    model = Model(offered=BACKLOG_LOAD * CAPACITY, adaptive=adaptive, backlog=backlog)
    while model.now < 2 * allowed_seconds(backlog_seconds):
        model.run_until(model.now + _CHECK_EVERY_SECONDS)
        if model.live < CAPACITY:
            return model.now
    return None


def allowed_seconds(backlog_seconds: float = BACKLOG_SECONDS) -> float:
    return DRAINED_WITHIN * backlog_seconds * BACKLOG_LOAD / (1 - BACKLOG_LOAD)


def measure_foreground(
    loads: Sequence[float] = LOADS, *, warm_up: float = GOVERNED_WARM_UP_SECONDS, measured: float = MEASURED_SECONDS
) -> list[Governing]:
    def share(load: float, *, governed: bool) -> Share:
        model = ForegroundModel(offered=load * CAPACITY, adaptive=False, governed=governed)
        model.run_until(warm_up)
        asked, answered, succeeded = model.asked, model.answered, model.succeeded
        model.run_until(warm_up + measured)
        in_time = (model.answered - answered) / (model.asked - asked)
        return Share(in_time, (model.succeeded - succeeded) / measured)

    return [Governing(load, share(load, governed=True), share(load, governed=False)) for load in loads]


def measure_swings(loads: Sequence[float] = WATCHED_LOADS, *, watched: float = WATCHED_SECONDS) -> dict[float, int]:
    """How often the governor's level swings at each load."""
    swings = {}
    for load in loads:
        model = ForegroundModel(offered=load * CAPACITY, adaptive=False, governed=True)
        model.run_until(watched)
        swings[load] = swings_of([level for _, level in model.changes])
    return swings


def swings_of(levels: Sequence[int]) -> int:
    """The rises that follow a fall."""
    changes = [after - before for before, after in pairwise([0, *levels])]
    return sum(first < 0 < second for first, second in pairwise(changes))


def unkept(points: Sequence[Governing]) -> list[Governing]:
    """The points at which the governor does not keep the foreground fast, or the jobs near their best goodput."""
    best = max(point.governed.goodput for point in points)
    return [
        point
        for point in points
        if point.governed.in_time < KEPT or (point.load >= 1 and point.governed.goodput < LEVEL * best)
    ]


def main() -> None:
    _limits()
    _foreground()


def _foreground() -> None:
    points = measure_foreground()
    foreground = f"a foreground of {FOREGROUND:g} calls a second, to be answered within {TARGET.total_seconds():g} s"
    table = Table(title=foreground)
    for title in ("offered jobs, x capacity", "in time, governed", "without", "jobs a second, governed", "without"):
        table.add_column(title, justify="right")
    for point in points:
        shares = point.governed, point.ungoverned
        in_time, goodput = [f"{each.in_time:.0%}" for each in shares], [f"{each.goodput:.1f}" for each in shares]
        table.add_row(f"{point.load:g}", *in_time, *goodput)
    Console().print(table)
    FOREGROUND_PLOT.write_text(
        svg(
            "foreground in time with the governor",
            [(point.load, point.governed.in_time) for point in points],
            [(point.load, point.ungoverned.in_time) for point in points],
        )
    )
    Console().print(f"plot: {FOREGROUND_PLOT.relative_to(_ROOT)}")
    failed = ", ".join(
        f"{point.governed.in_time:.0%} and {point.governed.goodput:.1f} at {point.load:g} x" for point in unkept(points)
    )
    require(not failed, f"the governor does not keep the foreground and the goodput: {failed}")
    swings = measure_swings()
    most = max(swings.values())
    watched = f"in {WATCHED_SECONDS / 60:.0f} minutes of a steady load, up to {WATCHED_LOADS[-1]:g} x"
    Console().print(f"the governor's level swings at most {most} times {watched}")
    require(most <= MOST_SWINGS, f"the governor's level swings, by load: {swings}")


def _limits() -> None:
    points = measure()
    table = Table(title=f"jobs a second, of a downstream that serves {CAPACITY:g}")
    for title in ("offered, x capacity", "with Adaptive", "without"):
        table.add_column(title, justify="right")
    for point in points:
        table.add_row(f"{point.load:g}", f"{point.limited:.1f}", f"{point.unlimited:.1f}")
    Console().print(table)
    drained = {name: drain_seconds(adaptive=name == "with") for name in ("with", "without")}
    for name, seconds in drained.items():
        shown = f"not within {2 * allowed_seconds():.0f} s" if seconds is None else f"{seconds:.0f} s"
        Console().print(f"an hour of jobs, all due at once, drains {name} Adaptive: {shown}")
    PLOT.write_text(
        svg(
            "goodput with Adaptive",
            [(point.load, point.limited / CAPACITY) for point in points],
            [(point.load, point.unlimited / CAPACITY) for point in points],
        )
    )
    Console().print(f"plot: {PLOT.relative_to(_ROOT)}")
    fallen = ", ".join(f"{point.limited:.1f} at {point.load:g} x" for point in falls(points))
    require(not fallen, f"goodput with Adaptive falls beyond saturation: {fallen}")
    limited = drained["with"]
    require(
        limited is not None and limited <= allowed_seconds(),
        f"the backlog did not drain within {allowed_seconds():.0f} s",
    )

"""`python -m demo.figures strain` computes goodput against offered load, with and without an adaptive limit.

It needs no AWS: `demo.figures.strain_model` is a model. It fails if the goodput with the limit falls beyond saturation,
or if a metastable start does not drain in time, and draws the plot of the guide.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

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
_ROOT: Final = Path(__file__).parents[2]
PLOT: Final = _ROOT / "docs/guides/strain-goodput.svg"


@dataclass(frozen=True, slots=True)
class Point:
    """Jobs a second that succeeded at one offered load, with a limit and without."""

    load: float
    limited: float
    unlimited: float


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


def main() -> None:
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

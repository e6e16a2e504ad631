"""Draws panels of curves over time as an SVG file, for the documents."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from demo.figures.svg_parts import curve, document, grid_line, label, mark

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BETWEEN = 640, 190, 70, 20, 30, 20
_COLOURS: Final = ("#d62728", "#1f77b4", "#2ca02c")
_LINES: Final = 5

#: Minutes and values, in the order of time.
Curve = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    #: By their names, which are the same in each panel.
    curves: Mapping[str, Curve]


def svg(panels: Sequence[Panel]) -> str:
    last = max(each[-1][0] for panel in panels for each in panel.curves.values())
    height = (_HEIGHT + _BETWEEN) * len(panels) + 30
    parts: list[str] = []
    for number, panel in enumerate(panels):
        parts += _panel(panel, top=number * (_HEIGHT + _BETWEEN), last=last)
    for number, name in enumerate(panels[0].curves):
        at = _LEFT + 160 * number
        parts += [mark(at, height - 11, _COLOURS[number]), label(at + 20, height - 6, name, "start")]
    parts.append(label(_WIDTH - _RIGHT, height - 6, "minutes", "end"))
    return document(_WIDTH, height, parts)


def _panel(panel: Panel, *, top: int, last: float) -> list[str]:
    highest = max(value for each in panel.curves.values() for _, value in each) or 1.0
    y_step, x_step = _round_step(highest), _round_step(last)
    lowest_y, highest_y = top + _HEIGHT, top + _TOP
    scale_x, scale_y = (_WIDTH - _LEFT - _RIGHT) / last, (lowest_y - highest_y) / (math.ceil(highest / y_step) * y_step)

    def x(minutes: float) -> float:
        return _LEFT + scale_x * minutes

    def y(value: float) -> float:
        return lowest_y - scale_y * value

    parts = [label(_LEFT, top + 18, panel.title, "start")]
    for line in range(math.floor(last / x_step) + 1):
        parts.append(grid_line(x(line * x_step), highest_y, x(line * x_step), lowest_y))
        parts.append(label(x(line * x_step), lowest_y + 16, f"{line * x_step:g}", "middle"))
    for line in range(math.ceil(highest / y_step) + 1):
        parts.append(grid_line(_LEFT, y(line * y_step), _WIDTH - _RIGHT, y(line * y_step)))
        parts.append(label(_LEFT - 8, y(line * y_step) + 4, f"{line * y_step:,.10g}", "end"))
    for number, values in enumerate(panel.curves.values()):
        points = ((x(minutes), y(value)) for minutes, value in values)
        parts.append(curve(points, _COLOURS[number], width=2))
    return parts


def _round_step(highest: float) -> float:
    """Between the lines of a grid with at most five spaces."""
    least = highest / _LINES
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)

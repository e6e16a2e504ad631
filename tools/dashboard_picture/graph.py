"""Draws one graph: title, axes, curves and legend."""

from collections.abc import Sequence
from typing import Final

from tools.dashboard_picture.axes import runs, time_label, time_ticks, value_label, value_ticks
from tools.dashboard_picture.canvas import COLOURS, FAINT, GRID, Box, Canvas, Point, fitted, text_width
from tools.dashboard_picture.data import Curve

#: Pixels.
SMALL: Final = 11
_LABELS: Final = 40
_MARGIN: Final = 12
_TIME_LABELS: Final = 16
_LEGEND_ROW: Final = 15
_SQUARE: Final = 8
_GAP: Final = 12


def draw_graph(canvas: Canvas, box: Box, curves: Sequence[Curve], *, seconds: float, stacked: bool = False) -> None:
    """In `box`, which begins below the title. `seconds` is the length of the axis of time."""
    shown = _stack(curves) if stacked else list(curves)
    rows = _legend_rows([curve.label for curve in curves], box.width - 2 * _MARGIN)
    plot = Box(
        box.left + _LABELS,
        box.top + _MARGIN / 2,
        box.right - _MARGIN,
        box.bottom - _TIME_LABELS - len(rows) * _LEGEND_ROW - _MARGIN,
    )
    largest = max((point for curve in shown for point in curve.points if point is not None), default=None)
    ticks = value_ticks(largest or 0)
    _draw_axes(canvas, plot, ticks, seconds)
    _draw_legend(canvas, rows, left=box.left + _MARGIN, top=plot.bottom + _TIME_LABELS + _MARGIN / 2)
    if largest is None:
        middle = ((plot.left + plot.right) / 2, (plot.top + plot.bottom) / 2)
        canvas.text(middle, "no data", size=SMALL, colour=FAINT, anchor="mm")
        return
    # The first curve is the one to read first, so it comes on top.
    for index in reversed(range(len(shown))):
        below = shown[index - 1].points if stacked and index else None
        _draw_curve(canvas, plot, shown[index], COLOURS[index % len(COLOURS)], top=ticks[-1], area=stacked, below=below)


def _stack(curves: Sequence[Curve]) -> list[Curve]:
    stacked: list[Curve] = []
    for curve in curves:
        below = stacked[-1].points if stacked else (0.0,) * len(curve.points)
        stacked.append(Curve(curve.label, tuple((a or 0) + (b or 0) for a, b in zip(below, curve.points, strict=True))))
    return stacked


def _draw_axes(canvas: Canvas, plot: Box, ticks: Sequence[float], seconds: float) -> None:
    for tick in ticks:
        y = plot.bottom - plot.height * tick / ticks[-1]
        canvas.line([(plot.left, y), (plot.right, y)], colour=GRID if tick else FAINT, width=1)
        canvas.text((plot.left - 6, y), value_label(tick), size=SMALL, colour=FAINT, anchor="rm")
    for second in time_ticks(seconds):
        x = plot.left + plot.width * second / seconds
        canvas.line([(x, plot.bottom), (x, plot.bottom + 3)], colour=FAINT)
        anchor = "lt" if not second else "rt" if x > plot.right - _MARGIN else "mt"
        canvas.text((x, plot.bottom + 5), time_label(second), size=SMALL, colour=FAINT, anchor=anchor)


def _draw_curve(
    canvas: Canvas,
    plot: Box,
    curve: Curve,
    colour: str,
    *,
    top: float,
    area: bool,
    below: tuple[float | None, ...] | None,
) -> None:
    def at(index: int, value: float) -> Point:
        # A value stands in the middle of its period.
        x = plot.left + plot.width * (index + 0.5) / len(curve.points)
        return x, plot.bottom - plot.height * value / top

    for run in runs(curve.points):
        points = [at(index, value) for index in run if (value := curve.points[index]) is not None]
        if area:
            base = [at(index, (below[index] or 0) if below else 0) for index in reversed(run)]
            canvas.area([*points, *base], colour=colour)
        canvas.line(points, colour=colour, width=1.8)
        for point in points if len(points) == 1 or len(curve.points) <= _LABELS else ():
            canvas.dot(point, colour=colour, radius=2)


def _legend_rows(labels: Sequence[str], width: float) -> list[list[tuple[float, str, str]]]:
    """Rows of entries: the offset from the left, the label, and its colour."""
    rows: list[list[tuple[float, str, str]]] = [[]]
    used = 0.0
    for index, label in enumerate(labels):
        text = fitted(label, width - _SQUARE - 4, size=SMALL)
        needed = _SQUARE + 4 + text_width(text, size=SMALL)
        if rows[-1] and used + needed > width:
            rows.append([])
            used = 0
        rows[-1].append((used, text, COLOURS[index % len(COLOURS)]))
        used += needed + _GAP
    return [row for row in rows if row]


def _draw_legend(canvas: Canvas, rows: Sequence[Sequence[tuple[float, str, str]]], *, left: float, top: float) -> None:
    for number, row in enumerate(rows):
        middle = top + (number + 0.5) * _LEGEND_ROW
        for offset, label, colour in row:
            x = left + offset
            canvas.box(Box(x, middle - _SQUARE / 2, x + _SQUARE, middle + _SQUARE / 2), fill=colour)
            canvas.text((x + _SQUARE + 4, middle), label, size=SMALL, anchor="lm")

"""Draws two curves against offered load as an SVG file, for the documents."""

import math
from collections.abc import Sequence
from typing import Final

from demo.figures.svg_parts import curve, document, grid_line, label, mark

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 320, 60, 50, 20
_LIMITED, _UNLIMITED = "#1f77b4", "#d62728"
_TICKS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10)
_SHARES: Final = (0, 0.25, 0.5, 0.75, 1)

#: Offered load as a multiple of the capacity, and a share of a whole.
Curve = Sequence[tuple[float, float]]


def svg(named: str, limited: Curve, unlimited: Curve) -> str:
    """`named` is the name of the first curve. The second one is without it."""
    right, bottom = _WIDTH - 20, _HEIGHT - _BOTTOM
    scale = math.log10(_TICKS[-1] / _TICKS[0])

    def x(load: float) -> float:
        return _LEFT + (right - _LEFT) * math.log10(load / _TICKS[0]) / scale

    def y(share: float) -> float:
        return bottom - (bottom - _TOP) * share / 1.1

    parts: list[str] = []
    for load in _TICKS:
        parts.append(grid_line(x(load), _TOP, x(load), bottom))
        parts.append(label(x(load), bottom + 18, f"{load:g}", "middle"))
    for share in _SHARES:
        parts.append(grid_line(_LEFT, y(share), right, y(share)))
        parts.append(label(_LEFT - 8, y(share) + 4, f"{share:.0%}", "end"))
    parts.append(label((_LEFT + right) / 2, _HEIGHT - 10, "offered load, as a multiple of the capacity", "middle"))
    for points, colour in ((unlimited, _UNLIMITED), (limited, _LIMITED)):
        parts.append(curve(((x(load), y(share)) for load, share in points), colour, width=2.5))
    for number, (name, colour) in enumerate(((named, _LIMITED), ("without", _UNLIMITED))):
        at = _TOP + 60 + 18 * number
        parts += [mark(_LEFT + 20, at - 9, colour), label(_LEFT + 40, at, name, "start")]
    return document(_WIDTH, _HEIGHT, parts)

"""Draws two curves against offered load as an SVG file, for the documents."""

import math
from collections.abc import Callable, Sequence
from typing import Final

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 320, 60, 50, 20
_LIMITED, _UNLIMITED, _INK, _GRID = "#1f77b4", "#d62728", "#333333", "#dddddd"
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

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        f'<g font-family="sans-serif" font-size="12" fill="{_INK}">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for load in _TICKS:
        parts.append(_line(x(load), _TOP, x(load), bottom))
        parts.append(_text(x(load), bottom + 18, f"{load:g}", "middle"))
    for share in _SHARES:
        parts.append(_line(_LEFT, y(share), right, y(share)))
        parts.append(_text(_LEFT - 8, y(share) + 4, f"{share:.0%}", "end"))
    parts.append(_text((_LEFT + right) / 2, _HEIGHT - 10, "offered load, as a multiple of the capacity", "middle"))
    parts += [_curve(unlimited, _UNLIMITED, x, y), _curve(limited, _LIMITED, x, y)]
    for number, (name, colour) in enumerate(((named, _LIMITED), ("without", _UNLIMITED))):
        at = _TOP + 60 + 18 * number
        parts.append(f'<rect x="{_LEFT + 20}" y="{at - 9}" width="14" height="4" fill="{colour}"/>')
        parts.append(_text(_LEFT + 40, at, name, "start"))
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _curve(points: Curve, colour: str, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    path = " ".join(f"{x(load):.1f},{y(share):.1f}" for load, share in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_GRID}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'

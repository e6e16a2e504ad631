"""The parts of an SVG file that the plots of the documents share. Lengths are in pixels."""

from collections.abc import Iterable
from typing import Final

_INK: Final = "#333333"
_GRID: Final = "#dddddd"


def document(width: int, height: int, parts: Iterable[str]) -> str:
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        f'<g font-family="sans-serif" font-size="12" fill="{_INK}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    return "\n".join([*head, *parts, "</g>", "</svg>", ""])


def grid_line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_GRID}"/>'


def label(x: float, y: float, text: str, anchor: str) -> str:
    """`anchor` is the end of the text that is at the place: `start`, `middle` or `end`."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def mark(x: float, y: float, colour: str) -> str:
    """The mark of a curve, beside its name."""
    return f'<rect x="{x}" y="{y}" width="14" height="4" fill="{colour}"/>'


def curve(points: Iterable[tuple[float, float]], colour: str, *, width: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'

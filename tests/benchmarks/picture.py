"""Draws the ratios to the textbook build, and their budgets, as an SVG."""

from collections.abc import Sequence
from html import escape

from tests.benchmarks.budgets import Figure

_ROW = 34
_LEFT = 290
_WIDTH = 420


def svg(figures: Sequence[Figure]) -> str:
    """A bar for each figure that has a ratio; the whole width is the textbook build. A line marks a budget."""
    drawn = [(figure, figure.ratio) for figure in figures if figure.ratio is not None]
    height = _ROW * (len(drawn) + 1) + 10
    body = "".join(_row(figure, ratio, top=_ROW * (number + 1)) for number, (figure, ratio) in enumerate(drawn))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 80} {height}" '
        'font-family="sans-serif" font-size="14">'
        '<rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text x="{_LEFT}" y="20" fill="#333333">Tidemill as a part of the textbook build. Red line: the budget</text>'
        f"{body}</svg>\n"
    )


def _row(figure: Figure, ratio: float, *, top: int) -> str:
    bar = min(ratio, 1.0) * _WIDTH
    budget = figure.budget if figure.of_ratio else figure.budget / (figure.textbook or 1)
    mark = _LEFT + min(budget, 1.05) * _WIDTH
    return (
        f'<text x="{_LEFT - 10}" y="{top + 17}" text-anchor="end" fill="#333333">{escape(figure.name)}</text>'
        f'<rect x="{_LEFT}" y="{top + 2}" width="{_WIDTH}" height="20" fill="#e6e6e6"/>'
        f'<rect x="{_LEFT}" y="{top + 2}" width="{bar:.1f}" height="20" fill="#2f6f8f"/>'
        f'<line x1="{mark:.1f}" x2="{mark:.1f}" y1="{top}" y2="{top + 24}" stroke="#c0392b" stroke-width="2"/>'
        f'<text x="{_LEFT + _WIDTH + 26}" y="{top + 17}" fill="#333333">{ratio:.2f}</text>'
    )

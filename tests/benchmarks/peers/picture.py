"""Draws the end-to-end latencies of all systems as an SVG, on a logarithmic scale."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any, Final

from tests.benchmarks.peers.report import TITLES

_ROW: Final = 22
_LEFT: Final = 230
_WIDTH: Final = 520
#: Milliseconds at the left and right end.
_LEAST, _MOST = 10.0, 100_000.0
_COLORS: Final = {"p50": "#2f6f8f", "p95": "#e0a030", "p99": "#c0392b"}


def svg(found: Mapping[str, Any]) -> str:
    """A row for each phase and system, with a mark for each percentile."""
    rows: list[str] = []
    top = 50
    for phase, title in TITLES.items():
        rows.append(f'<text x="10" y="{top + 12}" fill="#333333" font-weight="bold">{escape(title)}</text>')
        top += _ROW
        for name, system in found["systems"].items():
            rows.append(_row(name, system["phases"].get(phase, {}).get("end_to_end", {}), top))
            top += _ROW
        top += _ROW // 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 30} {top + 10}" '
        'font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text x="10" y="18" fill="#333333">End to end, from due to stored: {_legend()}</text>'
        f"{_scale(top)}{''.join(rows)}</svg>\n"
    )


def _row(name: str, latencies: Mapping[str, float], top: int) -> str:
    marks = "".join(
        f'<circle cx="{_place(value):.1f}" cy="{top + 8}" r="5" fill="{_COLORS[percent]}"/>'
        for percent, value in latencies.items()
        if not math.isnan(value)
    )
    return f'<text x="{_LEFT - 10}" y="{top + 12}" text-anchor="end" fill="#333333">{escape(name)}</text>{marks}'


def _scale(bottom: int) -> str:
    lines = []
    for power in range(round(math.log10(_LEAST)), round(math.log10(_MOST)) + 1):
        place = _place(10.0**power)
        lines.append(f'<line x1="{place:.1f}" x2="{place:.1f}" y1="44" y2="{bottom}" stroke="#dddddd"/>')
        text = f"{10**power:,} ms" if power < 3 else f"{10 ** (power - 3):,} s"
        lines.append(f'<text x="{place:.1f}" y="38" text-anchor="middle" fill="#777777">{text}</text>')
    return "".join(lines)


def _place(milliseconds: float) -> float:
    share = math.log10(min(max(milliseconds, _LEAST), _MOST) / _LEAST) / math.log10(_MOST / _LEAST)
    return _LEFT + share * _WIDTH


def _legend() -> str:
    return ", ".join(f'<tspan fill="{color}">{name}</tspan>' for name, color in _COLORS.items())

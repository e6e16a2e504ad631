"""Prints the figures as tables of Markdown, so that docs/performance.md can show them as they are."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.benchmarks.budgets import figures


def of_cold_starts(measured: Mapping[str, Any]) -> str:
    """Return the table of what `cold_start.measure` returns."""
    return _sides({_COLD_START[0]: measured}, *_COLD_START) + "\n"


def markdown(found: Mapping[str, Any]) -> str:
    return "\n\n".join((_budgets(found), _by_size(found), *(_sides(found, *part) for part in _PARTS))) + "\n"


_BUILDS = {
    "textbook": "textbook",
    "tidemill": "Tidemill",
    "grouped": "with grouped commit",
    "libraries": "common libraries",
}
_COLD_START = ("cold_start", "first invocation of a fresh process")
_PARTS = (
    ("instructions", "byte-code instructions of Python per job"),
    ("cpu", "CPU, ms per job"),
    ("wall", "wall time, ms"),
    _COLD_START,
    ("dollars", "dollars per million jobs"),
)


def _budgets(found: Mapping[str, Any]) -> str:
    rows = [
        [
            figure.name,
            "" if figure.textbook is None else f"{figure.textbook:,.2f}",
            f"{figure.tidemill:,.2f}",
            "" if figure.ratio is None else f"{figure.ratio:.2f}",
            f"ratio {figure.budget:g}" if figure.of_ratio else f"{figure.budget:,g}",
            "yes" if figure.met else "no",
        ]
        for figure in figures(found)
    ]
    return table(["figure", "textbook", "Tidemill", "ratio", "budget", "met"], rows)


def _by_size(found: Mapping[str, Any]) -> str:
    counted = found["counted"]
    names = ("table writes", "write units", "calls", "bytes")
    heads = ["padding of the payload, bytes", *(f"{name}: textbook, Tidemill" for name in names)]
    rows = [
        [f"{int(size):,}", *(f"{counted['textbook'][size][name]:,.6g}, {ours[name]:,.6g}" for name in names)]
        for size, ours in counted["tidemill"].items()
    ]
    return table(heads, rows)


def _sides(found: Mapping[str, Any], part: str, title: str) -> str:
    columns = {head: found[part][build] for build, head in _BUILDS.items() if build in found[part]}
    rows = [
        [name, *(f"{column[name]:,.2f}" if name in column else "" for column in columns.values())]
        for name in found[part]["tidemill"]
    ]
    return table([title, *columns], rows)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

"""Draws each widget of a dashboard at its place."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, assert_never

from tidemill.local.alarms import State
from tools.dashboard_picture.body import AlarmStates, Content, CountByVersion, Graph, Place, Text, widgets
from tools.dashboard_picture.canvas import BORDER, FAINT, LINK, PAPER, STATE_COLOURS, Box, Canvas, fitted, text_width
from tools.dashboard_picture.data import Data
from tools.dashboard_picture.graph import draw_graph

#: Pixels of one unit of the grid, and between widgets.
_COLUMN: Final = 60
_ROW: Final = 36
_GAP: Final = 8
_TITLE: Final = 30
_COLUMNS: Final = 24
_TILE: Final = 190
_TILE_ROW: Final = 33


def draw(body: Mapping[str, Any], data: Data, path: Path) -> int:
    """Write the picture. Returns the number of widgets. Raises `UnknownWidgetError`."""
    found = list(widgets(body))
    height = max(place.y + place.height for place, _ in found)
    canvas = Canvas(_COLUMNS * _COLUMN + _GAP, height * _ROW + _GAP)
    for place, content in found:
        _draw(canvas, _box(place), content, data)
    canvas.save(path)
    return len(found)


def _box(place: Place) -> Box:
    return Box(
        place.x * _COLUMN + _GAP,
        place.y * _ROW + _GAP,
        (place.x + place.width) * _COLUMN,
        (place.y + place.height) * _ROW,
    )


def _draw(canvas: Canvas, box: Box, content: Content, data: Data) -> None:
    if isinstance(content, Text):
        _draw_text(canvas, box, content)
        return
    canvas.box(box, fill=PAPER, outline=BORDER, radius=3)
    title = fitted(content.title, box.width - 2 * _GAP, size=13)
    canvas.text((box.left + 10, box.top + _TITLE / 2), title, size=13, anchor="lm", bold=True)
    inside = Box(box.left, box.top + _TITLE, box.right, box.bottom)
    seconds = (data.end - data.first) * data.minute_seconds
    if isinstance(content, AlarmStates):
        _draw_alarms(canvas, inside, content, data.states)
    elif isinstance(content, Graph):
        draw_graph(canvas, inside, data.curves(content), seconds=seconds)
    elif isinstance(content, CountByVersion):
        draw_graph(canvas, inside, data.counts(content), seconds=seconds, stacked=True)
    else:
        assert_never(content)


def _draw_text(canvas: Canvas, box: Box, text: Text) -> None:
    canvas.text((box.left + 2, box.bottom - 34), text.heading, size=22, anchor="lm", bold=True)
    left = box.left + 2
    for link in text.links:
        canvas.text((left, box.bottom - 10), link, size=13, colour=LINK, anchor="lm")
        left += text_width(link, size=13) + _GAP


def _draw_alarms(canvas: Canvas, box: Box, widget: AlarmStates, states: Mapping[str, State]) -> None:
    """A tile for each alarm, in rows; those that do not fit are counted."""
    shown = [name for name in widget.names if not widget.states or states[name] in widget.states]
    if not shown:
        canvas.text((box.left + 10, box.top + 20), "none", size=13, colour=FAINT, anchor="lm")
        return
    across = int((box.width - _GAP) // (_TILE + _GAP))
    down = max(1, int(box.height // _TILE_ROW))
    for index, name in enumerate(shown[: across * down]):
        left = box.left + 10 + index % across * (_TILE + _GAP)
        top = box.top + index // across * _TILE_ROW
        _draw_tile(canvas, Box(left, top, left + _TILE, top + _TILE_ROW - 6), name, states[name])
    if left_out := shown[across * down :]:
        canvas.text((box.right - 10, box.top - _TITLE / 2), f"and {len(left_out)} more", size=11, anchor="rm")


def _draw_tile(canvas: Canvas, tile: Box, name: str, state: State) -> None:
    strong, pale = STATE_COLOURS[state]
    canvas.box(tile, fill=pale, outline=strong, radius=3)
    canvas.dot((tile.left + 13, (tile.top + tile.bottom) / 2), colour=strong, radius=5)
    text = fitted(short_name(name), tile.width - 32, size=12)
    canvas.text((tile.left + 25, (tile.top + tile.bottom) / 2), text, size=12, anchor="lm")


def short_name(name: str) -> str:
    """The id of the alarm in the catalogue, from its name: CloudFormation and CDK put their own parts around it."""
    return re.sub(r"[0-9A-F]{8}(-\w+)?$", "", re.sub(r"^.*-(Pipeline|Shortener)-", "", name))

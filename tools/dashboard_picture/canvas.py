"""`Canvas`: shapes and text in pixels of the finished picture. It draws larger and shrinks, so edges are smooth."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image, ImageColor, ImageDraw, ImageFont

from tidemill.local.alarms import State

Point = tuple[float, float]
_SCALE: Final = 3
BACKGROUND: Final = "#f2f3f3"
PAPER: Final = "#ffffff"
INK: Final = "#16191f"
FAINT: Final = "#687078"
BORDER: Final = "#d5dbdb"
GRID: Final = "#eaeded"
LINK: Final = "#0073bb"
#: The colours of lines, in order. They differ in lightness, too.
COLOURS: Final = (
    *("#1f77b4", "#e07b00", "#2ca02c", "#c7254e", "#7d5ba6"),
    *("#8c564b", "#d66bb0", "#5f6b6d", "#a3a500", "#0fa3b1"),
)
#: The colours of alarms: the border, and the paper.
STATE_COLOURS: Final[Mapping[State, tuple[str, str]]] = {
    State.ALARM: ("#d13212", "#fdf3f1"),
    State.OK: ("#1d8102", "#f2f8f0"),
    State.INSUFFICIENT_DATA: ("#879596", "#f7f8f8"),
}
#: The steps from a colour to its paper.
_STEPS: Final = 11


@dataclass(frozen=True, slots=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top


class Canvas:
    def __init__(self, width: int, height: int) -> None:
        self._size = (width, height)
        self._image = Image.new("RGB", (width * _SCALE, height * _SCALE), BACKGROUND)
        self._draw = ImageDraw.Draw(self._image)

    def box(self, box: Box, *, fill: str, outline: str | None = None, radius: float = 0) -> None:
        corners = [value * _SCALE for value in (box.left, box.top, box.right, box.bottom)]
        self._draw.rounded_rectangle(corners, radius * _SCALE, fill=fill, outline=outline, width=_SCALE)

    def line(self, points: Sequence[Point], *, colour: str, width: float = 1) -> None:
        self._draw.line(_scaled(points), fill=colour, width=round(width * _SCALE), joint="curve")

    def area(self, points: Sequence[Point], *, colour: str) -> None:
        self._draw.polygon(_scaled(points), fill=colour)

    def dot(self, at: Point, *, colour: str, radius: float = 2) -> None:
        x, y = at
        self._draw.ellipse([(each * _SCALE) for each in (x - radius, y - radius, x + radius, y + radius)], fill=colour)

    def text(
        self, at: Point, text: str, *, size: int, colour: str = INK, anchor: str = "lt", bold: bool = False
    ) -> None:
        """`anchor` says which point of the text is at `at`: left, middle or right; top, middle or baseline."""
        # The font has one weight.
        stroke = _SCALE // 3 if bold else 0
        place = _scaled([at])[0]
        font = _font(size)
        self._draw.text(place, text, fill=colour, font=font, anchor=anchor, stroke_width=stroke, stroke_fill=colour)

    def save(self, path: Path) -> None:
        finished = self._image.resize(self._size, Image.Resampling.LANCZOS)
        finished.quantize(palette=_palette(), dither=Image.Dither.NONE).save(path, optimize=True)


def text_width(text: str, *, size: int) -> float:
    return _font(size).getlength(text) / _SCALE


def fitted(text: str, width: float, *, size: int) -> str:
    """The text, or as much of its beginning as fits, with an ellipsis."""
    if text_width(text, size=size) <= width:
        return text
    while text and text_width(f"{text}…", size=size) > width:
        text = text[:-1]
    return f"{text}…"


def _scaled(points: Sequence[Point]) -> list[Point]:
    return [(x * _SCALE, y * _SCALE) for x, y in points]


@functools.cache
def _palette() -> Image.Image:
    """Each colour with its way to the papers, which smooth edges take. So a picture takes a byte for each pixel."""
    inks = (INK, FAINT, LINK, *COLOURS, *(colour for pair in STATE_COLOURS.values() for colour in pair))
    ways = [(ink, paper) for ink in inks for paper in (PAPER,)] + [(ink, BACKGROUND) for ink in (INK, LINK)]
    mixed = [_mix(ink, paper, step / _STEPS) for ink, paper in ways for step in range(_STEPS)]
    plain = [ImageColor.getrgb(colour) for colour in (PAPER, BACKGROUND, BORDER, GRID)]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in [*plain, *mixed] for part in colour[:3]])
    return palette


def _mix(ink: str, paper: str, share: float) -> tuple[int, ...]:
    """`share` is that of the paper."""
    pairs = zip(ImageColor.getrgb(ink), ImageColor.getrgb(paper), strict=True)
    return tuple(round(a + (b - a) * share) for a, b in pairs)


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    # The font in Pillow itself, so that each machine draws the same.
    font = ImageFont.load_default(size * _SCALE)
    assert isinstance(font, ImageFont.FreeTypeFont), "this Pillow lacks FreeType"  # noqa: S101 - for the type
    return font

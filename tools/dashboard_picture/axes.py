"""Ticks and labels of axes. Pure."""

import math
from itertools import pairwise
from typing import Final

_STEPS: Final = (1, 2, 2.5, 5, 10)
_SUFFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
#: Steps of an axis of time, in seconds.
_MOST_TIME_TICKS: Final = 6
_TIME_STEPS: Final = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600)


def value_ticks(largest: float) -> list[float]:
    """Three to five round values from 0 until at least `largest`."""
    if largest <= 0:
        return [0, 0.5, 1]
    rough = largest / 3
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in _STEPS if factor * power >= rough * 0.999)
    return [index * step for index in range(math.ceil(largest / step * 0.999) + 1)]


def value_label(value: float) -> str:
    for size, suffix in _SUFFIXES:
        if value >= size:
            return f"{value / size:.3g}{suffix}"
    return f"{value:.3g}"


def time_ticks(seconds: float) -> list[int]:
    """Three to six round times from 0 until before `seconds`."""
    step = next((step for step in _TIME_STEPS if seconds / step <= _MOST_TIME_TICKS), _TIME_STEPS[-1])
    return list(range(0, math.floor(seconds) + 1, step))


def time_label(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02}"


def runs(points: tuple[float | None, ...]) -> list[list[int]]:
    """The places of points with data, split where a point has none."""
    present = [index for index, point in enumerate(points) if point is not None]
    starts = [0, *(place for place, (left, right) in enumerate(pairwise(present), 1) if right - left > 1)]
    return [present[start:end] for start, end in pairwise([*starts, len(present)]) if present]

"""Random draws."""

import secrets
import time

import pytest

from tidemill.system import random_draw
from tidemill.system.random_draw import draw


@pytest.mark.parametrize(("bits", "drawn"), [(0, 0.0), (1 << 52, 0.5), ((1 << 53) - 1, 1 - 2**-53)])
def test_a_draw_is_at_least_zero_and_below_one(monkeypatch: pytest.MonkeyPatch, bits: int, drawn: float) -> None:
    monkeypatch.setattr(secrets, "randbits", lambda _bits: bits)

    assert draw() == drawn
    assert draw() < 1


def test_a_pause_is_a_random_part_of_its_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(random_draw, "draw", lambda: 0.25)
    monkeypatch.setattr(time, "sleep", slept.append)
    random_draw.pause_below(2.0)
    assert slept == [0.5]

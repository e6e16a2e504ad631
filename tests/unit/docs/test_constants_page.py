"""The page of constants has those of the engine, as a reader takes them in."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tidemill.domain.limits import Rate
from tools.constants import document, shown

_PAGE = Path(__file__).parents[3] / "docs" / "internals" / "constants.md"


def test_the_page_has_the_constants_of_the_engine() -> None:
    assert _PAGE.read_text(encoding="utf-8") == document(), "run `make docs`"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1_000_000, "1,000,000"),
        (0.05, "0.05"),
        (timedelta(days=30), "30 d"),
        (timedelta(hours=36), "36 h"),
        (timedelta(seconds=90), "90 s"),
        (timedelta(microseconds=1), "1 µs"),
        (timedelta(0), "0 s"),
        (Rate(count=5, period=timedelta(minutes=1)), "count 5, period 1 min"),
        (True, None),
        ("a text", None),
        (Rate, None),
    ],
)
def test_a_number_is_shown_with_its_unit_and_nothing_else_is(value: Any, text: str | None) -> None:
    assert shown(value) == text

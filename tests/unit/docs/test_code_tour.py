"""docs/internals/code-tour.md is true: each file exists and holds the functions that its row names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOUR = (ROOT / "docs" / "internals" / "code-tour.md").read_text()
ENGINE = ROOT / "shared" / "tidemill"
ROWS = re.findall(r"^\| `([\w/]+\.py)` \| (.+) \|$", TOUR, re.MULTILINE)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/]+/\w+\.py)`", TOUR))))
def test_each_file_of_the_tour_exists(path: str) -> None:
    assert (ENGINE / path).is_file()


@pytest.mark.parametrize(("path", "text"), ROWS, ids=[path for path, _ in ROWS])
def test_each_row_begins_with_a_name_of_its_file(path: str, text: str) -> None:
    name = re.search(r"`(\w+)`", text)
    if name:
        assert re.search(rf"\b{name[1]}\b", (ENGINE / path).read_text())

"""docs/internals/code-tour.md is true: each file exists and holds what its row names, and each room is listed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOUR = (ROOT / "docs" / "internals" / "code-tour.md").read_text()
ENGINE = ROOT / "shared" / "tidemill"
ROWS = re.findall(r"^\| `([\w/]+\.py)` \| (.+) \|$", TOUR, re.MULTILINE)
ROOMS = {
    room: re.findall(r"\w+", layers)
    for room, layers in re.findall(r"^\| `(\w+)` \| .+ \| (`.+`) \|$", TOUR, re.MULTILINE)
}
LAYERS = ("domain", "application", "dynamodb", "cli", "operator")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/]+/\w+\.py)`", TOUR))))
def test_each_file_of_the_tour_exists(path: str) -> None:
    assert (ENGINE / path).is_file()


@pytest.mark.parametrize(("path", "text"), ROWS, ids=[path for path, _ in ROWS])
def test_each_row_begins_with_a_name_of_its_file(path: str, text: str) -> None:
    name = re.search(r"`(\w+)`", text)
    if name:
        assert re.search(rf"\b{name[1]}\b", (ENGINE / path).read_text())


def test_each_room_of_the_use_cases_is_listed_with_its_layers() -> None:
    rooms = [path.parent.name for path in ENGINE.glob("application/*/__init__.py")]
    found = {room: [layer for layer in LAYERS if (ENGINE / layer / room / "__init__.py").is_file()] for room in rooms}
    assert found == ROOMS

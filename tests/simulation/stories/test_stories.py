"""Each story goes as its record says."""

import pytest

from tests.simulation.stories import recorded
from tests.simulation.stories.tell import difference, stories


@pytest.mark.parametrize("name", stories())
def test_a_story_goes_as_recorded(name: str) -> None:
    differs = difference(name)

    assert differs is None, f"if this is meant: python -m tests.simulation.stories {name}\n{differs}"


def test_each_record_has_its_story() -> None:
    assert set(recorded()) == set(stories())

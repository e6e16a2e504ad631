"""Each story goes as its record says."""

from typing import Final

import pytest

from tests.simulation.stories import recorded
from tests.simulation.stories.tell import answers, difference, stories

#: Stories with every kind of write, whose answers do not depend on how long a call takes.
WITH_WRITES_SENT_TWICE: Final = (
    "a-correction-of-a-job-that-has-not-begun",
    "a-flow-of-two-nodes-that-follow-each-other",
    "a-job-of-steps",
    "a-job-that-continues",
    "a-job-that-saves-checkpoints",
    "a-job-that-snoozes-for-long",
    "a-job-that-uses-up-its-attempts",
    "a-lost-job-is-nudged",
    "a-periodic-job-and-its-schedule",
    "a-rate-and-slots-together",
    "a-tenant-over-its-quota",
    "an-event-of-a-job",
    "jobs-that-are-claimed-and-settled-together",
    "several-jobs-of-one-request-are-inserted-together",
    "the-jobs-of-a-group-run-in-order",
)


@pytest.mark.parametrize("name", stories())
def test_a_story_goes_as_recorded(name: str) -> None:
    differs = difference(name)

    assert differs is None, f"if this is meant: python -m tests.simulation.stories {name}\n{differs}"


@pytest.mark.parametrize("name", WITH_WRITES_SENT_TWICE)
def test_the_answers_of_a_story_stay_the_same_if_each_write_is_sent_twice(name: str) -> None:
    """The first answer to each write is lost. The engine takes the second for that of its own write."""
    assert answers(name, writes_sent_twice=True) == answers(name)


def test_each_record_has_its_story() -> None:
    assert set(recorded()) == set(stories())

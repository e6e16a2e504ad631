"""Events: which consumers they reach, and what a repeated publication has in common."""

from typing import Any

import pytest

from tests.support.builders import a_job
from tidemill.domain.events.events import Consumption, Delivery, Event, Publication, is_event
from tidemill.domain.submission.submission import Submission
from tidemill.names import EVENT_TYPE


@pytest.mark.parametrize(
    ("version", "taken"), [(None, {("a", 1): True, ("a", 2): True}), (2, {("a", 1): False, ("a", 2): True})]
)
def test_a_consumer_takes_one_version_or_each(version: int | None, taken: dict[tuple[str, int], bool]) -> None:
    consumption = Consumption(type="a", version=version)

    assert {(name, number): consumption.takes(name, number) for name, number in taken} == taken
    assert not consumption.takes("b", 2)


@pytest.mark.parametrize(
    ("wanted", "data", "passes"),
    [
        ({}, {}, True),
        ({"n": (1, 2)}, {"n": [2]}, True),
        ({"n": (1, 2)}, {"n": [3, 1]}, True),
        ({"n": (1, 2)}, {"n": [3]}, False),
        ({"n": (1,)}, {}, False),
        ({"n": (1,), "m": (1,)}, {"n": [1], "m": [2]}, False),
        # In JSON, true is not 1, and null is a value.
        ({"n": (1,)}, {"n": [True]}, False),
        ({"n": (True,)}, {"n": [1]}, False),
        ({"n": (True,)}, {"n": [True]}, True),
        ({"n": (0,)}, {"n": [False]}, False),
        ({"n": (None,)}, {"n": [None]}, True),
        ({"n": (None,)}, {"n": [0]}, False),
    ],
)
def test_a_filter_passes_data_with_one_of_its_values_in_each_field(
    wanted: dict[str, Any], data: dict[str, Any], *, passes: bool
) -> None:
    assert Consumption(type="a", filter=wanted).passes(data) is passes


def test_a_repeated_publication_may_reach_other_consumers() -> None:
    payload = {"event": "a", "consumers": ["x"]}
    event = Event(type="a")

    assert Publication(type=EVENT_TYPE, event=event).identity(payload) == {"event": "a"}
    assert Submission(type="a").identity(payload) == payload


def test_an_event_begins_with_the_first_version_and_its_deliveries_block_no_group() -> None:
    assert (Event(type="a").version, Delivery(type="a").blocks) == (1, False)


def test_only_a_job_of_the_type_of_events_is_one() -> None:
    assert is_event(a_job(type=EVENT_TYPE))
    assert not is_event(a_job())

"""Every history of jobs that wait for a slot: no job runs without one, and no job waits for ever."""

import pytest

from tests.model.waiting_line import CALM, LAGGING, PARKED, STORMY, Protocol, explore, stuck, too_many


@pytest.mark.parametrize(
    ("jobs", "slots", "allowed"), [(3, 1, CALM), (3, 2, CALM), (2, 1, LAGGING)], ids=["line", "slots", "lagging index"]
)
def test_without_crashes_the_line_moves_without_wake_and_each_job_is_claimed_at_most_twice(
    jobs: int, slots: int, allowed: frozenset[str]
) -> None:
    protocol = Protocol(slots=slots)

    graph = explore(jobs, protocol, allowed)

    assert any(PARKED in state.jobs for state in graph)
    assert not stuck(graph)
    assert not too_many(graph, protocol)
    assert max(max(state.claims) for state in graph) == 2


def test_with_crashes_wake_finds_everyone_who_waits() -> None:
    protocol = Protocol()

    graph = explore(2, protocol, STORMY, kills=1)

    assert len(graph) > 10_000
    assert not stuck(graph)
    assert not too_many(graph, protocol)
    assert all(state.marked for state in graph if PARKED in state.jobs)


@pytest.mark.parametrize(
    "broken", [Protocol(looks_after_it_parks=False), Protocol(reads_the_last=False)], ids=["no second look", "no last"]
)
def test_a_lost_wake_up_is_noticed(broken: Protocol) -> None:
    assert stuck(explore(2, broken, LAGGING))


@pytest.mark.parametrize("broken", [Protocol(marks_before_it_parks=False), Protocol(waits_before_it_clears=False)])
def test_a_line_that_wake_cannot_find_is_noticed(broken: Protocol) -> None:
    graph = explore(2, broken, STORMY)

    assert any(not state.marked for state in graph if PARKED in state.jobs)


def test_a_job_that_is_parked_while_a_slot_is_given_back_is_noticed() -> None:
    assert stuck(explore(2, Protocol(looks_after_it_leaves=False), CALM))


def test_a_slot_that_is_not_handed_over_goes_to_a_newcomer() -> None:
    graph = explore(3, Protocol(hands_the_slot_over=False), CALM)

    assert max(max(state.claims) for state in graph) > 2

"""The table of transitions: complete, legal, and equal to the diagram."""

import re
from pathlib import Path

import pytest

from tidemill.domain.states import AT_REST, TERMINAL, TRANSITIONS, WITHOUT_EFFECT, State, Write, allowed
from tools.state_machine import document

DIAGRAM = Path(__file__).parents[3] / "docs" / "internals" / "state-machine.md"
#: What the states promise of their comings and goings, said a second time and in other words.
LEGAL = {
    *((None, state) for state in (State.WAITING, State.SCHEDULED, State.QUEUED)),
    *((state, State.RUNNING) for state in (State.SCHEDULED, State.QUEUED, State.RETRYING, State.RUNNING)),
    *((State.RUNNING, state) for state in set(State) - {State.WAITING}),
    *((state, State.CANCELLED) for state in set(State) - {State.SUCCEEDED, State.CANCELLED, State.EXPIRED}),
    (State.WAITING, State.SCHEDULED),
    (State.WAITING, State.QUEUED),
    (State.SCHEDULED, State.QUEUED),
    (State.PARKED, State.QUEUED),
    (State.QUEUED, State.PARKED),
    (State.RETRYING, State.PARKED),
    (State.QUEUED, State.QUEUED),
    # A submission moves a debounced job.
    (State.QUEUED, State.SCHEDULED),
    (State.QUEUED, State.DEAD),
    (State.RETRYING, State.RETRYING),
    (State.RETRYING, State.DEAD),
    (State.DEAD, State.QUEUED),
    # The node of a flow that was blocked, or is skipped.
    *((State.CANCELLED, state) for state in (State.WAITING, State.QUEUED)),
    (None, State.CANCELLED),
    (State.DEAD, State.WAITING),
    # A migration rewrites the payload of every job that does not run.
    *((state, state) for state in State),
}


def test_every_write_has_its_transitions() -> None:
    assert set(TRANSITIONS) == set(Write)


def test_the_table_allows_exactly_the_legal_transitions() -> None:
    table = {(before, after) for rows in TRANSITIONS.values() for before, afters in rows.items() for after in afters}

    assert table == LEGAL


def test_only_a_person_moves_a_job_out_of_a_terminal_state() -> None:
    leaving = {
        (write, state)
        for write, rows in TRANSITIONS.items()
        for state, afters in rows.items()
        if state in TERMINAL and afters != {state}
    }

    by_a_person = {(write, State.DEAD) for write in (Write.REDRIVE, Write.CANCEL, Write.SUPERSEDE)}
    # The document of a node that was blocked: it had no job.
    assert leaving == by_a_person | {(Write.START_NODE, State.CANCELLED)}


def test_a_job_that_had_no_effect_has_ended_and_is_never_redriven() -> None:
    for state in State:
        ended_otherwise = state is State.SUCCEEDED or state in TRANSITIONS[Write.REDRIVE]
        assert (state in WITHOUT_EFFECT) is (state.terminal and not ended_otherwise)


def test_a_cancel_ends_each_job_at_once_that_neither_runs_nor_has_ended() -> None:
    """A dead one is discarded."""
    assert {state for state in State if not state.terminal} - {State.RUNNING} | {State.DEAD} == AT_REST


def test_every_live_job_can_be_claimed_unless_it_waits_for_something_else() -> None:
    for state in set(State) - TERMINAL - {State.WAITING, State.PARKED}:
        assert allowed(Write.CLAIM, state, State.RUNNING)


def test_every_live_job_accepts_a_cancel() -> None:
    for state in set(State) - TERMINAL:
        assert TRANSITIONS[Write.CANCEL][state]


def test_an_unknown_state_raises() -> None:
    with pytest.raises(ValueError, match="paused"):
        State("paused")


def test_the_diagram_equals_the_table() -> None:
    assert DIAGRAM.read_text(encoding="utf-8") == document(), "run `make docs`"


def test_a_write_is_allowed_exactly_where_the_diagram_draws_it() -> None:
    drawn = {
        (write, before, after)
        for before, after, writes in re.findall(
            r"^    (\S+) --> (\w+): (.+)$", DIAGRAM.read_text(encoding="utf-8"), re.MULTILINE
        )
        for write in writes.split(", ")
    }

    can = {
        (str(write), str(before or "[*]"), str(after))
        for write in Write
        for before in (None, *State)
        for after in State
        if allowed(write, before, after)
    }
    assert can == drawn


@pytest.mark.parametrize(
    ("state", "final"),
    [
        *((name, True) for name in ("succeeded", "dead", "cancelled", "expired")),
        *((name, False) for name in ("waiting", "scheduled", "queued", "running", "retrying", "parked")),
    ],
)
def test_four_states_end_a_job(state: str, final: bool) -> None:
    assert State(state).terminal is final

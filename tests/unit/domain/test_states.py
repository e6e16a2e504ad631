"""The table of transitions: complete, legal, and drawn as it stands."""

from pathlib import Path

import pytest

from tidemill.domain.states import TERMINAL, TRANSITIONS, State, Write, allowed
from tools.state_machine import document

#: What the states promise of their comings and goings, said a second time and in other words.
LEGAL = {
    *((None, state) for state in (State.WAITING, State.SCHEDULED, State.QUEUED)),
    *((state, State.RUNNING) for state in (State.SCHEDULED, State.QUEUED, State.RETRYING, State.RUNNING)),
    *((State.RUNNING, state) for state in set(State) - {State.WAITING}),
    *((state, State.CANCELLED) for state in set(State) - {State.SUCCEEDED, State.CANCELLED}),
    (State.WAITING, State.SCHEDULED),
    (State.WAITING, State.QUEUED),
    (State.SCHEDULED, State.QUEUED),
    (State.QUEUED, State.QUEUED),
    (State.QUEUED, State.DEAD),
    (State.RETRYING, State.RETRYING),
    (State.RETRYING, State.DEAD),
    (State.DEAD, State.QUEUED),
    (State.DEAD, State.WAITING),
}


def test_every_write_has_its_transitions() -> None:
    assert set(TRANSITIONS) == set(Write)


def test_the_table_allows_what_is_legal_and_nothing_else() -> None:
    table = {(before, after) for rows in TRANSITIONS.values() for before, afters in rows.items() for after in afters}

    assert table == LEGAL


def test_a_person_alone_moves_a_job_out_of_a_terminal_state() -> None:
    leaving = {(write, state) for write, rows in TRANSITIONS.items() for state in rows if state in TERMINAL}

    assert leaving == {(Write.REDRIVE, State.DEAD), (Write.CANCEL, State.DEAD)}


def test_a_live_job_can_always_be_claimed_unless_it_waits_for_others() -> None:
    for state in set(State) - TERMINAL - {State.WAITING}:
        assert allowed(Write.CLAIM, state, State.RUNNING)


def test_a_live_job_can_always_be_cancelled_or_asked_to_end() -> None:
    for state in set(State) - TERMINAL:
        assert TRANSITIONS[Write.CANCEL][state]


def test_an_unknown_state_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="paused"):
        State("paused")


def test_the_drawing_shows_the_table_as_it_stands() -> None:
    drawn = (Path(__file__).parents[3] / "docs" / "internals" / "state-machine.md").read_text(encoding="utf-8")

    assert drawn == document(), "run `make docs`"

"""A consumer in trouble delays no other. `python -m tests.simulation.consumers` plays each trouble for ten minutes."""

from dataclasses import replace

import pytest

from tests.simulation.consumers.scenario import Reached, broken_by, play

_EVENTS = 200
_USUAL = Reached(events=10, others_ms=[100] * 20, succeeded=10, dead=0)


@pytest.mark.slow
def test_a_stopped_consumer_delays_no_other() -> None:
    usual, stopped = (play(0, trouble, events=_EVENTS) for trouble in ("works", "stopped"))

    assert (usual.succeeded, stopped.succeeded) == (_EVENTS, 0)
    assert broken_by(usual, usual) == broken_by(stopped, usual) == []


@pytest.mark.parametrize(
    ("reached", "fault"),
    [
        (replace(_USUAL, others_ms=[106] * 20), "the others begin 6% later"),
        (replace(_USUAL, others_ms=[100] * 18 + [200] * 2), "the others begin 100% later"),
        (replace(_USUAL, others_ms=[100] * 19), "runs are missing"),
    ],
)
def test_a_delay_and_a_loss_are_reported(reached: Reached, fault: str) -> None:
    assert broken_by(reached, _USUAL) == [fault]

"""The features that take part in an attempt, in the order in which a job enters their gates."""

from collections.abc import Sequence

from tidemill.application.breaker_gates import BreakerGate, ProbeGate, use_of
from tidemill.application.claimed_run import ClaimedRun
from tidemill.application.gate import Gate
from tidemill.application.limit_gate import LimitGate, TurnGate
from tidemill.application.pause_gate import PauseGate
from tidemill.application.process_gates import StrayGate, SuspectGate
from tidemill.application.shared_call_gate import SharedCallGate
from tidemill.application.steps_gate import StepsGate
from tidemill.application.type_gates import PayloadGate, TimeGate, TypeGate
from tidemill.application.undo_gate import UndoGate


def gates_of(run: ClaimedRun) -> Sequence[Gate]:
    """The gates of a run that has just claimed its job. It leaves them in the reverse order."""
    breakers = use_of(run)
    return (
        TurnGate(run),
        PauseGate(run),
        UndoGate(run),
        TypeGate(run),
        SuspectGate(run),
        TimeGate(run),
        PayloadGate(run),
        StepsGate(run),
        BreakerGate(run, breakers),
        LimitGate(run),
        StrayGate(run),
        ProbeGate(run, breakers),
        SharedCallGate(run),
    )

"""The features that take part in an attempt, in the order in which a job enters their gates."""

from collections.abc import Sequence

from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.application.attempt.gate import Gate
from tidemill.application.attempt.process_gates import StrayGate, SuspectGate
from tidemill.application.attempt.type_gates import PayloadGate, TimeGate, TypeGate
from tidemill.application.batch_handlers.shared_call_gate import SharedCallGate
from tidemill.application.breakers.breaker_gates import BreakerGate, ProbeGate, use_of
from tidemill.application.corrections.undo_gate import UndoGate
from tidemill.application.limits.limit_gate import LimitGate, TurnGate
from tidemill.application.steps.steps_gate import StepsGate
from tidemill.application.waiting.pause_gate import PauseGate


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

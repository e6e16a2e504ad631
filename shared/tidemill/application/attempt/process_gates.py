"""The gates of the process that a job shares with others: a suspect job runs alone, and no job runs beside a stray."""

from typing import Final

from tidemill.application.attempt.gate import Gate
from tidemill.domain.attempt.outcomes import Outcome
from tidemill.domain.errors import StrayThreadError
from tidemill.domain.waiting.holds import HoldCause

#: A suspect job may have killed the worker of its last run. It runs alone, so that it cannot use up the attempts of
#: other jobs of its batch again and again. A busy worker may never have the time for that, so after so many
#: consecutive holds the job runs beside others.
MOST_HOLDS_OF_A_SUSPECT: Final = 5
LONGEST_SUSPECT_HOLD_SECONDS: Final = 3.0


class SuspectGate(Gate):
    """It waits until no other run is at work in the process. The wait moves the deadline."""

    def enter(self) -> Outcome | None:
        run = self.run
        held_enough = run.job.held_by(HoldCause.SUSPECT) >= MOST_HOLDS_OF_A_SUSPECT
        if run.job.suspect and not held_enough:
            if (deadline := run.hooks.wait_until_alone(run.deadline)) is None:
                return run.context.held_below(LONGEST_SUSPECT_HOLD_SECONDS, HoldCause.SUSPECT)
            run.deadline = deadline
        return None


class StrayGate(Gate):
    """A process with a stray thread is slow and about to end. The job runs in another."""

    def enter(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Raises `StrayThreadError`, also if another handler went beyond its time since `enter`."""
        if self.run.hooks.stray_beside():
            raise StrayThreadError

    def instead_of(self, error: Exception) -> Outcome | None:
        if not isinstance(error, StrayThreadError):
            return None
        return self.run.context.held_below(LONGEST_SUSPECT_HOLD_SECONDS, HoldCause.STRAY)

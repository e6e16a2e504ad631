"""The gate of batch handlers: a failed call that a job shares with others costs it no attempt."""

from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.application.attempt.gate import Gate
from tidemill.domain.attempt.error_groups import decisive
from tidemill.domain.attempt.outcomes import Held, Outcome
from tidemill.domain.errors import BatchCallError, JobTimeoutError, RetryAfter
from tidemill.domain.records import replace
from tidemill.domain.waiting.holds import HoldCause


class SharedCallGate(Gate):
    """The next run of a job whose shared call failed is alone, and counts."""

    def __init__(self, run: ClaimedRun) -> None:
        super().__init__(run)
        #: Set before the first call that others share: nothing says that its error or its time is that of this job.
        self._shared = False

    def share(self) -> None:
        self._shared = True

    def instead_of(self, error: Exception) -> Outcome | None:
        if not self._shared or not isinstance(error, BatchCallError | JobTimeoutError):
            return None
        context = self.run.context
        meant = decisive(error.error) if isinstance(error, BatchCallError) else error
        if isinstance(meant, RetryAfter):
            held = Held(until=context.clock() + meant.delay, cause=HoldCause.CALL)
        else:
            held = context.held_below(self.run.policy.backoff_seconds, HoldCause.CALL)
        return replace(held, error=f"{type(error).__name__}: {error}")

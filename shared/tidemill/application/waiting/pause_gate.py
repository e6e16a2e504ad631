"""The gate of pauses: a job whose message was sent before the pause waits in the line of it."""

from tidemill.application.attempt.attempt_holds import parked, parked_in_listed_line
from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.application.attempt.gate import Gate
from tidemill.domain.attempt.outcomes import Outcome
from tidemill.domain.waiting.pauses import Pause


class PauseGate(Gate):
    """Pauses of tenants, lanes and types. A pause of a limit key counts in the gate of limits."""

    def enter(self) -> Outcome | None:
        context = self.run.context
        configuration = context.configuration()
        pause = configuration.pause_of(self.run.job, now=context.clock())
        return parked_for_pause(self.run, pause, stale=configuration.stale) if pause else None


def parked_for_pause(run: ClaimedRun, pause: Pause, *, stale: bool) -> Outcome:
    """`stale` says whether the configuration is."""
    line = pause.target.line
    if stale:
        return parked_in_listed_line(run, line, pause.rate)
    # The operator has listed it with the pause.
    return parked(line, run.context.clock())

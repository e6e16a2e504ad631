"""The gate of corrections: a job that supersedes another runs once that one has no effect any more."""

from tidemill.application.attempt.attempt_holds import left_to_another_version
from tidemill.application.attempt.gate import Gate
from tidemill.domain.attempt.outcomes import Outcome
from tidemill.domain.errors import NewerSchemaError, TransactionConflictError
from tidemill.domain.waiting.holds import HoldCause


class UndoGate(Gate):
    """It asks the superseder, which brings the end of the effect about."""

    def enter(self) -> Outcome | None:
        """Raises as `Superseder.ready`."""
        context, job = self.run.context, self.run.job
        if context.superseder is None or job.correction.supersedes is None:
            return None
        from tidemill.application.corrections.superseding import LONGEST_HOLD  # noqa: PLC0415 - few jobs supersede one

        try:
            if context.superseder().ready(job):
                return None
        except NewerSchemaError as newer:
            # The version that wrote the other document can tell.
            return left_to_another_version(self.run, newer)
        except TransactionConflictError:
            # Others write the earlier job at this moment: look again.
            pass
        seconds = min(2.0 ** min(job.held_by(HoldCause.UNDO), 30), LONGEST_HOLD.total_seconds())
        return context.held_below(seconds, HoldCause.UNDO)

"""The gates of the job type: this worker knows it, it allows so much time, and its model accepts the payload."""

from tidemill.application.attempt.attempt_holds import left_to_another_version, parked_in_listed_line
from tidemill.application.attempt.gate import Gate
from tidemill.domain.attempt.outcomes import Outcome
from tidemill.domain.errors import InvalidPayloadError, UnloadedJobTypeError
from tidemill.domain.waiting.waiting import Line


class TypeGate(Gate):
    """A job of a type that is unknown here waits for another version, or for code that can load the type."""

    def enter(self) -> Outcome | None:
        if (unknown := self.run.unknown) is None:
            return None
        return self.instead_of(unknown) or left_to_another_version(self.run, unknown)

    def instead_of(self, error: Exception) -> Outcome | None:
        """The job waits until the deployed code can load the type: its own, or that of a job which follows it."""
        if not isinstance(error, UnloadedJobTypeError):
            return None
        return parked_in_listed_line(self.run, Line.for_type(error.name))


class TimeGate(Gate):
    """It brings the deadline forward if the job type allows less time than the lane."""

    def enter(self) -> None:
        run = self.run
        run.type_timeout = run.job_type.timeout
        if run.type_timeout:
            run.deadline = min(run.deadline, run.context.steady() + run.type_timeout)
            run.hooks.deadline_moved()


class PayloadGate(Gate):
    """It loads and parses the payload. One that the model refuses is of another version."""

    def enter(self) -> Outcome | None:
        run = self.run
        if not run.job_type.reads_payload:
            return None
        try:
            run.payload = run.job_type.parse(run.context.payloads.load(run.job))
        except InvalidPayloadError as refusal:
            return left_to_another_version(run, refusal)
        return None

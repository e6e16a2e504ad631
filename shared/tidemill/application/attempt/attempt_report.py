"""The report on one message: its ending, for the log line and the metrics. And who gets it."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from tidemill.domain.dispatch.claim_verdict import ClaimVerdict
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.job import AttemptError, DeathReason, Job
from tidemill.domain.limits.adaptive_limit import ConcurrencyChange
from tidemill.domain.waiting.waiting import Line


class Ending(StrEnum):
    """How the attempt of a message ended."""

    SUCCEEDED = "succeeded"
    RETRYING = "retrying"
    DEAD = "dead"
    CANCELLED = "cancelled"
    #: The job was too old to be of use.
    EXPIRED = "expired"
    #: The handler returned `Snooze`.
    SNOOZED = "snoozed"
    #: The handler returned `Continue`.
    CONTINUED = "continued"
    #: The handler returned `WaitFor` or raised `MissingInput`.
    AWAITING = "waiting for a signal"
    #: A dependency did not respond, or the job waits for its rate, for another version or for time alone.
    HELD = "held"
    #: Its limit was full, so it waits in the line of its limit key.
    PARKED = "parked"
    #: Other transactions conflicted; the attempt was given back.
    RELEASED = "released"
    #: Another worker holds the lease, so the outcome was not written.
    FENCED = "fenced"
    #: The claim was refused; the verdict says why.
    REFUSED = "refused"
    #: An operator moved a dead-letter message back to the lane; its job was redriven.
    REDRIVEN = "redriven"
    #: The invocation had no time left to run it.
    NOT_STARTED = "not started"
    #: The store did not respond, or no time was left to settle.
    UNAVAILABLE = "unavailable"
    #: The message is not a message of the engine.
    MALFORMED = "malformed"


class Report(Struct, frozen=True, kw_only=True):
    """The message is put back until `put_back_until`, or acknowledged if that is None."""

    ending: Ending
    job: Job | None = None
    verdict: ClaimVerdict | None = None
    error: str | None = None
    #: Why the job died, with the ending `DEAD`.
    death: DeathReason | None = None
    put_back_until: datetime | None = None
    #: The exception that was raised, for its traceback.
    cause: BaseException | None = None
    #: When the outcome was settled; None if none was.
    settled_at: datetime | None = None
    #: From before the claim until after the settle, also if the wall clock was set meanwhile. None if nothing settled.
    took: timedelta | None = None
    #: The errors that the settle added to the job: those of runs that ended without a result, then that of this run.
    errors: tuple[AttemptError, ...] = ()
    #: The follow-up jobs that began to exist with the settle.
    follow_ups: tuple[Job, ...] = ()
    #: The job as settled, if it lives on.
    again: Job | None = None
    #: So the next job of its group may run.
    job_is_terminal: bool = False


class RunObserver(Protocol):
    """Gets each claim and each end when it happens: before the next call to AWS, since the process may die in that.

    Many threads may call it at once. It must not raise.
    """

    def claimed(self, job: Job) -> None:
        """A run has begun."""

    def ended(self, reference: Reference | None, report: Report) -> None:
        """A run was settled, or its message ended without a run. `reference` is None for a malformed message.

        If the time of an attempt runs out during its settle, the message is put back and the settle may still be
        written. Then both are reported.
        """

    def lowered(self, job: Job, line: Line, change: ConcurrencyChange) -> None:
        """The run of this job has lowered the adaptive concurrency of its limit key."""


class Unobserved:
    """A `RunObserver` that ignores everything."""

    def claimed(self, job: Job) -> None:
        pass

    def ended(self, reference: Reference | None, report: Report) -> None:
        pass

    def lowered(self, job: Job, line: Line, change: ConcurrencyChange) -> None:
        pass

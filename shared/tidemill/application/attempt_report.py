"""The report on one message: its ending, for the log line and the metrics."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemill.domain.claim_verdict import Verdict
from tidemill.domain.job import DeathReason, Job


class Ending(StrEnum):
    """How the attempt of a message ended."""

    SUCCEEDED = "succeeded"
    RETRYING = "retrying"
    DEAD = "dead"
    CANCELLED = "cancelled"
    #: The handler returned `Snooze`.
    SNOOZED = "snoozed"
    #: The handler returned `Continue`.
    CONTINUED = "continued"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The message is put back until `put_back_until`, or acknowledged if that is None."""

    ending: Ending
    job: Job | None = None
    verdict: Verdict | None = None
    error: str | None = None
    #: Why the job died, with the ending `DEAD`.
    death: DeathReason | None = None
    put_back_until: datetime | None = None
    #: The exception that was raised, for its traceback.
    cause: BaseException | None = None
    #: From the claim to the outcome; 0 if no outcome was settled.
    duration_seconds: float = 0.0
    #: The job is terminal, so the next job of its group may run.
    ended: bool = False

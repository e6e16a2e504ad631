"""What became of a message, for the one log line about it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemill.domain.claim_verdict import Verdict
from tidemill.domain.job import Job


class Ending(StrEnum):
    """What became of a message."""

    SUCCEEDED = "succeeded"
    RETRYING = "retrying"
    DEAD = "dead"
    CANCELLED = "cancelled"
    #: The handler asked to be run again later, or to go on in another invocation.
    SNOOZED = "snoozed"
    CONTINUED = "continued"
    #: The limits of its key left no room.
    HELD = "held"
    #: Other transactions stood in the way; the attempt was given back.
    RELEASED = "released"
    #: The lease was lost to another worker, so nothing was written.
    FENCED = "fenced"
    #: The claim was refused; the verdict says why.
    REFUSED = "refused"
    #: An operator moved a letter back to the lane; its job was redriven.
    REDRIVEN = "redriven"
    #: The invocation had no time left to run it.
    NOT_STARTED = "not started"
    #: The store did not answer.
    UNAVAILABLE = "unavailable"
    #: The message is not one of ours.
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a message. It is acknowledged unless `put_back_until`."""

    ending: Ending
    job: Job | None = None
    verdict: Verdict | None = None
    error: str | None = None
    put_back_until: datetime | None = None
    #: What was raised, for its traceback.
    cause: BaseException | None = None
    #: From the claim to the outcome; 0 if nothing was settled.
    duration_seconds: float = 0.0
    #: The job has ended, and its group may go on.
    ended: bool = False

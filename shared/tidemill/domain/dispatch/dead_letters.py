"""The rule for a dead-letter message: the sweep, redrive and the worker all apply this one."""

from datetime import datetime
from enum import StrEnum

from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.job import Job
from tidemill.domain.states import TRANSITIONS, State, Write


class DeadLetterAction(StrEnum):
    """The relation of a dead-letter message to its job."""

    #: The job is dead at the generation of the message. Redrive the job, or keep the message.
    DEAD = "dead"
    #: The job is alive at that generation: SQS moved the message to the DLQ, so no worker ever started the job.
    STRANDED = "stranded"
    #: The job has moved on or is deleted. Delete the message.
    OUTDATED = "outdated"


def dead_letter_action(reference: Reference | None, current: Job | None, *, now: datetime) -> DeadLetterAction:
    """`reference` is None for a malformed message, which belongs to no job."""
    if reference is None or current is None or current.lifetime.over(now) or current.generation != reference.generation:
        return DeadLetterAction.OUTDATED
    if current.state is State.DEAD:
        return DeadLetterAction.DEAD
    # A waiting or scheduled job gets a message of its own when its turn or its time comes.
    return DeadLetterAction.STRANDED if current.state in TRANSITIONS[Write.NUDGE] else DeadLetterAction.OUTDATED

"""The one rule for letters, wherever one is met."""

from datetime import datetime
from enum import StrEnum

from tidemill.domain.job import Job, Reference
from tidemill.domain.states import TRANSITIONS, State, Write


class DeadLetterAction(StrEnum):
    """What to do with a letter."""

    #: Dead at the letter's generation: the letter is right. Redrive the job, or leave the letter.
    DEAD = "dead"
    #: Alive at that generation: SQS moved the message itself, so no worker ever started it.
    STRANDED = "stranded"
    #: The job has moved on, or is gone: the letter tells nobody anything.
    OUTDATED = "outdated"


def dead_letter_action(reference: Reference | None, current: Job | None, *, now: datetime) -> DeadLetterAction:
    """`reference` is None for rubbish, which no job waits for."""
    if reference is None or current is None or current.expired(now) or current.generation != reference.generation:
        return DeadLetterAction.OUTDATED
    if current.state is State.DEAD:
        return DeadLetterAction.DEAD
    # Whoever waits for its turn or its time asks for a message of its own when that has come.
    return DeadLetterAction.STRANDED if current.state in TRANSITIONS[Write.NUDGE] else DeadLetterAction.OUTDATED

"""Decides which change of a document requests a message, and which message."""

import math
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from tidemill.domain.dispatch.job_message import DeadLetter, Reference, reference_to
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.names import Lane

#: The longest `DelaySeconds` of SQS. The scheduler (wake) dispatches a job that is due later than that.
LONGEST_LANE_DELAY: Final = timedelta(seconds=900)


class Dispatch(Struct, frozen=True, kw_only=True):
    """A message for a job. A `Reference` goes to the lane's queue, a `DeadLetter` to its dead-letter queue."""

    lane: Lane
    body: Reference | DeadLetter
    delay_seconds: int


def dispatch(before: Job | None, after: Job | None, *, now: datetime) -> Dispatch | None:
    """The message for one stream record, or None when the change requests none.

    The stream may deliver a record more than once: the claim rejects the duplicate message.
    """
    if after is None or after.state not in {State.QUEUED, State.RETRYING, State.DEAD} or not _changed(before, after):
        return None
    reference = reference_to(after)
    if after.state is State.DEAD:
        return Dispatch(lane=after.lane, body=_dead_letter(after, reference), delay_seconds=0)
    wait = min(max((after.due or now) - now, timedelta(0)), LONGEST_LANE_DELAY)
    return Dispatch(lane=after.lane, body=reference, delay_seconds=math.ceil(wait.total_seconds()))


def message_at_once(job: Job, *, now: datetime) -> Dispatch | None:
    """The message that the writer of the job may send at once, without waiting for the stream. None if it may not.

    Not for a job of a group: a worker may claim that without a message, and publish could not tell which one it had.
    """
    if job.state not in {State.QUEUED, State.RETRYING} or job.group.key is not None:
        return None
    message = dispatch(None, job, now=now)
    return message if message and message.delay_seconds == 0 else None


def may_be_sent(before: Job | None, after: Job, *, now: datetime) -> bool:
    """Whether the writer of this change may have sent its message at once: a submission, or the end of a run."""
    ended_run = before is not None and before.state is State.RUNNING and before.generation < after.generation
    return (before is None or ended_run) and message_at_once(after, now=now) is not None


def has_begun(current: Job, queued: Job) -> bool:
    """Whether the message of `queued` has done its work: a worker has received it, or the job needs none.

    Only for a job that `message_at_once` allows. As any message, it stays on its queue until the run has settled. A
    document of an earlier generation is not the one that was queued, and says nothing of it.
    """
    if current.generation != queued.generation:
        return current.generation > queued.generation
    return current.state is not queued.state


def _changed(before: Job | None, after: Job) -> bool:
    return before is None or (before.state, before.generation, before.nudges.last_at) != (
        after.state,
        after.generation,
        after.nudges.last_at,
    )


def _dead_letter(job: Job, reference: Reference) -> DeadLetter:
    return DeadLetter(
        reference=reference,
        type=job.type,
        death=job.death or "",
        error_class=job.causing_class or "",
        attempts=job.attempt,
    )

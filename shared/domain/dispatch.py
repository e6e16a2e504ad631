"""Which changes of a document put a message on a queue, and which message."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from shared.domain.job import Job, Letter, Reference
from shared.domain.states import State
from shared.names import Lane

#: The longest `DelaySeconds` of SQS.
LONGEST_DELAY_SECONDS: Final = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """A message for a job. A `Reference` goes to the lane's queue, a `Letter` to its dead-letter queue."""

    lane: Lane
    body: Reference | Letter
    delay_seconds: int


def dispatch(before: Job | None, after: Job | None, *, now: datetime) -> Dispatch | None:
    """The message owed for one stream record, or None when the change asks for none.

    A record may come more than once: the claim refuses what a duplicate message would do.
    """
    if after is None or after.state not in {State.QUEUED, State.RETRYING, State.DEAD} or not _changed(before, after):
        return None
    reference = Reference(tenant=after.tenant, job_id=after.id, generation=after.generation, trace=after.trace)
    if after.state is State.DEAD:
        return Dispatch(lane=after.lane, body=_letter(after, reference), delay_seconds=0)
    seconds = (after.due - now).total_seconds() if after.due else 0.0
    delay_seconds = min(max(math.ceil(seconds), 0), LONGEST_DELAY_SECONDS)
    return Dispatch(lane=after.lane, body=reference, delay_seconds=delay_seconds)


def _changed(before: Job | None, after: Job) -> bool:
    return before is None or (before.state, before.generation, before.nudged_at) != (
        after.state,
        after.generation,
        after.nudged_at,
    )


def _letter(job: Job, reference: Reference) -> Letter:
    return Letter(
        reference=reference,
        type=job.type,
        death=job.death or "",
        error_class=job.errors[-1].error_class if job.errors else "",
        attempts=job.attempt,
    )

"""The job of a batch: it waits until the batch is closed and all its members are at rest, and submits the callbacks.

The callbacks commit with its end: with its success if no member is dead, and else with its death. A redrive of the
batch redrives its dead members, and waits again.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from tidemill import Cancelled, Continue, Done, GiveUp, Run, WaitFor, job_type
from tidemill.batch.callbacks import OpenedBatch, callbacks_at_end
from tidemill.domain.attempt.retry import LARGEST_MAX_HOPS
from tidemill.domain.batches.batches import (
    CLOSED,
    MISSING,
    BatchFailed,
    Look,
    closed_at,
    is_cancelling,
    pause,
    to_redrive,
)
from tidemill.domain.batches.composite_cancels import is_cancelled, pause_of_cancelled
from tidemill.domain.job import Job
from tidemill.domain.states import FINAL_STATES, State
from tidemill.names import BATCH_TYPE, LARGEST_MAX_ATTEMPTS
from tidemill.system import clock

if TYPE_CHECKING:
    from tidemill.application.batches.batch_members import BatchMembers

#: The time between two looks of an open batch, which note the jobs that have ended before they expire.
_WHILE_OPEN: Final = timedelta(hours=1)
#: The wait of a batch that was closed while a job joined.
_BETWEEN_CLOSES: Final = timedelta(seconds=1)
#: The share of a run after which its look reads no further page. The run notes which members of
#: the others have ended, so the next look has less to read.
_SHARE_OF_LOOK: Final = 0.5
#: So much of a run is kept back from cancels and redrives.
_RESERVE: Final = timedelta(seconds=5)


class Waited(BaseModel):
    """The checkpoint."""

    #: Since then no page takes another member.
    sealed_at: datetime | None = None
    #: The callbacks of a first end have been submitted.
    called: bool = False
    #: The counts at the last look.
    counts: dict[str, int] = Field(default_factory=dict)
    counted_at: datetime | None = None


@job_type(
    BATCH_TYPE,
    payload=OpenedBatch,
    max_attempts=LARGEST_MAX_ATTEMPTS,
    max_hops=LARGEST_MAX_HOPS,  # each look is a hop
    retention_days=30,
)
def run_batch(opened: OpenedBatch, run: Run) -> WaitFor | Continue | Done | GiveUp | Cancelled:
    """Its result is the counts of the members by state."""
    from tidemill import composition  # noqa: PLC0415 - clients read the declaration without Powertools

    members, waited = composition.parts().batch_members, Waited.model_validate(run.resumed_from or {})
    batch = members.batch(run.tenant, run.job_id)
    closed = closed_at(batch, now=clock.now())
    if closed and not waited.sealed_at and members.close(batch):
        waited.sealed_at = clock.now()
    look = members.look(batch, until=clock.now() + (run.deadline - clock.now()) * _SHARE_OF_LOOK)
    if look.complete:
        waited.counts, waited.counted_at = look.counts, look.at
        run.checkpoint(done=look.total - look.live, total=look.total)
    if closed is None:
        members.record(batch, look, last=False)
        if run.attempt > 1:
            # A wait gives back one attempt, and this all of them: an open batch must not use them up.
            return Continue(waited.model_dump(mode="json"))
        return WaitFor(CLOSED, timeout=_WHILE_OPEN, checkpoint=waited.model_dump(mode="json"))
    if waited.sealed_at is None:
        return Continue(waited.model_dump(mode="json"), after=_BETWEEN_CLOSES)
    if is_cancelled(batch):
        return _cancelled(members, batch, look, waited, run)
    dead = to_redrive(batch, look.jobs.values(), now=look.at)
    if dead or not look.at_rest(waited.sealed_at):
        members.record(batch, look, last=False)
        members.redrive(batch, dead, until=run.deadline - _RESERVE)
        after = pause(batch, closed, live=look.live, now=look.at)
        return Continue(waited.model_dump(mode="json"), after=after)
    members.record(batch, look, last=True)
    return _ended(opened, look, waited)


def _cancelled(members: "BatchMembers", batch: Job, look: Look, waited: Waited, run: Run) -> Continue | Cancelled:
    """It ends without a callback, once all members have ended."""
    unfinished = [job for job in look.jobs.values() if job.state not in FINAL_STATES]
    at_rest = not unfinished and waited.sealed_at is not None and look.at_rest(waited.sealed_at)
    members.record(batch, look, last=at_rest)
    if at_rest:
        return Cancelled()
    # The time may be too short for all, so begin with those that were not reached before.
    unasked = (job for job in unfinished if not (job.run_ends or is_cancelling(job)))
    members.cancel(batch, unasked, until=run.deadline - _RESERVE)
    return Continue(waited.model_dump(mode="json"), after=pause_of_cancelled(batch, jobs=look.live, now=look.at))


def _ended(opened: OpenedBatch, look: Look, waited: Waited) -> Done | BatchFailed:
    then = callbacks_at_end(opened, failed=bool(look.failed), called=waited.called)
    if not look.failed:
        return Done(look.counts, then=then)
    waited.called = True
    return BatchFailed(_reason(look), then=then, checkpoint=waited.model_dump(mode="json"))


def _reason(look: Look) -> str:
    texts = {
        str(State.DEAD): "are dead; redrive the batch to redrive them",
        MISSING: "were deleted before a look saw their end, and no redrive brings them back",
    }
    counts = look.counts
    return "; ".join(
        f"{counts[state]} of {look.total} jobs of the batch {text}" for state, text in texts.items() if state in counts
    )

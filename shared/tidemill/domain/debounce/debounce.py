"""Debounce: what a submission does to the job of its burst that has not begun.

It moves the job to a later time, up to the end of the burst, and may replace the payload. A job has begun when its
handler has, so one that a worker held back takes submissions, too. But it keeps its time and its place in line.
"""

from datetime import datetime, timedelta
from typing import Final

from tidemill.domain.attempt.outcomes import state_until
from tidemill.domain.debounce.debounce_record import DebounceWindow
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.time_constants import EPOCH, LONGEST_SPAN, MILLISECOND, SECOND

#: Unless the submission says it, the longest time from the first submission, in units of `debounce`.
DEFAULT_MAX_FACTOR: Final = 10
_BEFORE_ITS_RUN: Final = frozenset({State.SCHEDULED, State.QUEUED, State.RETRYING, State.PARKED})
_TO_MOVE: Final = frozenset({State.SCHEDULED, State.QUEUED})


def longest(debounce: timedelta) -> timedelta:
    """The default of `debounce_max`."""
    return min(DEFAULT_MAX_FACTOR * debounce, LONGEST_SPAN)


def quiet_after(now: datetime, debounce: timedelta) -> datetime:
    """The time of a job whose last submission is at `now`.

    Whole seconds, rounded up: the submissions of one second ask for the same time, so only the first one writes it.
    """
    later = now + debounce
    return later + (EPOCH - later) % SECOND if debounce else now


def takes_submissions(job: Job) -> bool:
    """Whether its handler has not begun, so that another submission may become part of it.

    Nearly every outcome of a handler after which the job lives on counts an attempt, a hop or a release. A hold counts
    none, and a handler may be held back too: by an open breaker, an outage, or a step of another version. It runs again
    from the start, so it may have another payload, unless it has left steps or progress of the present one. A signal
    that came early is for the present one, too: what it approves is not what a later submission asks for.
    """
    unused = not (job.attempt or job.hops or job.lease.releases or job.redrives)
    untouched = not any(job.given_to_payload.values())
    return job.burst is not None and job.state in _BEFORE_ITS_RUN and unused and untouched


def moved(job: Job, due: datetime | None, *, now: datetime) -> Job:
    """The job after a submission that asks for this time, or with None for now; the same if it keeps its time.

    A job that is due already keeps it if the submission asks for now: each of a flood would send a message otherwise.
    """
    burst = job.burst
    if burst is None or job.due is None or job.lease.claimed_at or job.state not in _TO_MOVE or burst.until <= now:
        return job
    if due is None and job.due <= now:
        return job
    due = min(due or now, burst.until)
    if due == job.due:
        return job
    state = state_until(due, now=now, otherwise=State.QUEUED)
    both_queued = state is State.QUEUED and job.state is State.QUEUED
    # The message of the last dispatch is under way. It arrives early, and is put back until the job is due. One that
    # was put back once, or would arrive late, is replaced by that of a new generation.
    message_serves = both_queued and now < burst.sent_for <= due
    useful_until = job.lifetime.useful_until and job.lifetime.useful_until + (due - job.due)
    return replace(
        job,
        state=state,
        due=due,
        run_at=due,
        lifetime=replace(job.lifetime, useful_until=useful_until),
        generation=job.generation if message_serves else job.generation + 1,
        burst=replace(
            burst,
            sent_for=burst.sent_for if message_serves else due,
            moves=burst.moves + 1,
            first_moved_at=burst.first_moved_at or now,
        ),
    )


def joined_at(burst: DebounceWindow, *, now: datetime) -> datetime:
    """The time of a submission that changes the job, which it has read with this burst.

    It is later than those of all submissions that were accepted before, also by a clock that is behind. So a send of an
    earlier one that arrives late, after the SDK has sent the call again, is recognized by its earlier time.
    """
    return now if burst.joined_at is None else max(now, burst.joined_at + MILLISECOND)


def useful_longer(job: Job, submission: Job, *, now: datetime) -> Job:
    """The job, as the submission has moved it or not, of use for as long as the submission asks.

    Its age counts from the time to which it was moved, or for one that keeps its time from the submission. Otherwise a
    job that was held back or late could expire just after it has taken the submission. Whole seconds, as its time. One
    submission without an age lets it never expire.
    """
    if job.lifetime.useful_until is None or submission.due is None:
        return job
    if submission.lifetime.useful_until is None:
        return replace(job, lifetime=replace(job.lifetime, useful_until=None))
    begins = max(job.run_at or now, now)
    until = begins + (EPOCH - begins) % SECOND + (submission.lifetime.useful_until - submission.due)
    return replace(job, lifetime=replace(job.lifetime, useful_until=max(job.lifetime.useful_until, until)))

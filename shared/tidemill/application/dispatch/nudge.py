"""Nudge: dispatch a live job again whose message seems lost. After many nudges without a claim the job dies."""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from tidemill.application.ports import Clock, NudgeStore
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.names import Lane

#: The longest time that a message may have waited on a lane so far. A job that is late by less is not lost.
LaneDelay = Callable[[Lane], timedelta]

#: The longest interval between two nudges of a job. The interval doubles with each nudge up to this.
LONGEST_BETWEEN_NUDGES: Final = timedelta(days=1)
#: A job dies as undeliverable after this many consecutive nudges without a claim, and this long after it was due. The
#: time is longer than any outage to survive, because the messages of nudges may be lost in an outage too.
MOST_NUDGES: Final = 6
UNDELIVERABLE_AFTER: Final = timedelta(days=7)


class Nudge(StrEnum):
    """The result of a nudge."""

    #: The job is dispatched again. Or it was asked to end, and ends here, since no worker claims it.
    NUDGED = "nudged"
    #: The job was scheduled or parked, and overdue: wake had missed it. It is queued now.
    WOKEN = "woken"
    #: Too many nudges without a claim: the job is dead.
    UNDELIVERABLE = "undeliverable"


def no_delay(_lane: Lane) -> timedelta:
    """`LaneDelay` of empty lanes."""
    return timedelta(0)


class Nudger:
    """Nudges jobs that are late by more than `limit` plus the delay of their lane.

    A nudge of a job that is not lost is safe: the claim rejects its second message.
    """

    def __init__(self, *, store: NudgeStore, clock: Clock, limit: timedelta, lane_delay: LaneDelay = no_delay) -> None:
        self._store = store
        self._clock = clock
        self._limit = limit
        self._lane_delay = lane_delay

    def needs_nudge(self, job: Job) -> bool:
        """Whether the job is live, due, and late enough for a nudge."""
        since = max(filter(None, (job.due, job.nudges.last_at)), default=None)
        return since is not None and since <= self._clock() - self._allowed_delay(job)

    def nudge(self, job: Job) -> Nudge | None:
        """None when the job has changed since it was read, or is not late enough."""
        now = self._clock()
        given_up = job.state is not State.RUNNING and _given_up(job, now)
        # It was asked to end, and has lost its run: it must not wait dead for a person.
        ends = job.cancel.request if given_up else None
        last = given_up and not ends
        try:
            if job.state is State.SCHEDULED:
                if not self.needs_nudge(job):
                    return None
                self._store.wake(job, now=now)
                return Nudge.WOKEN
            if job.state is State.PARKED:
                if not self.needs_nudge(job):
                    return None
                self._store.unpark(job, now=now, due=now)
                return Nudge.WOKEN
            if ends:
                self._store.cancel(job, now=now, by=ends.by, reason=ends.reason, as_read=True)
            else:
                self._store.nudge(job, now=now, limit=self._allowed_delay(job), last=last)
        except WriteRefusedError:
            return None
        return Nudge.UNDELIVERABLE if last else Nudge.NUDGED

    def _allowed_delay(self, job: Job) -> timedelta:
        if job.state in {State.SCHEDULED, State.PARKED}:
            return self._limit  # such a job has no message on its lane
        doubled = self._limit * 2.0 ** min(job.nudges.count, MOST_NUDGES)
        return max(self._limit, min(doubled, LONGEST_BETWEEN_NUDGES)) + self._lane_delay(job.lane)


def _given_up(job: Job, now: datetime) -> bool:
    return job.nudges.count >= MOST_NUDGES and job.due is not None and job.due <= now - UNDELIVERABLE_AFTER

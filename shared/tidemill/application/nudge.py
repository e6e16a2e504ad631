"""Nudge: have a live job dispatched once more whose message seems lost, and give it up in the end."""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from tidemill.application.ports import Clock, NudgeStore
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.names import Lane

#: How long a message of a lane may have waited by now: no job is lost that is late by no more than that.
LaneDelay = Callable[[Lane], timedelta]

#: The longest that a job is left alone between two nudges. Up to there the time doubles with each.
LONGEST_BETWEEN_NUDGES: Final = timedelta(days=1)
#: A job that so many nudges in a row and all this time have not brought to a worker will not come to one: it dies.
#: Longer than any outage that is to be survived, since a nudge in vain is also one whose own message was lost.
MOST_NUDGES: Final = 6
UNDELIVERABLE_AFTER: Final = timedelta(days=7)


class Nudge(StrEnum):
    """What a nudge came to."""

    #: Another message is on its way.
    NUDGED = "nudged"
    #: Its time had come long ago, and no clock had seen it.
    WOKEN = "woken"
    #: Nudged too often in vain: dead.
    UNDELIVERABLE = "undeliverable"


def no_delay(_lane: Lane) -> timedelta:
    """`LaneDelay` of lanes on which nothing waits."""
    return timedelta(0)


class Nudger:
    """Nudges jobs that are late by more than `limit` and what their lane explains.

    Harmless to a job that was not lost: its second message finds it claimed, or moved on.
    """

    def __init__(self, *, store: NudgeStore, clock: Clock, limit: timedelta, lane_delay: LaneDelay = no_delay) -> None:
        self._store = store
        self._clock = clock
        self._limit = limit
        self._lane_delay = lane_delay

    def owed(self, job: Job) -> bool:
        """Whether the job, live and due, has waited long enough for a nudge."""
        since = max(filter(None, (job.due, job.nudged_at)), default=None)
        return since is not None and since <= self._clock() - self._patience(job)

    def nudge(self, job: Job) -> Nudge | None:
        """None when the job has moved, is not late enough, or somebody else was faster."""
        now = self._clock()
        last = job.state is not State.RUNNING and _given_up(job, now)
        try:
            if job.state is State.SCHEDULED:
                if not self.owed(job):
                    return None
                self._store.wake(job)
                return Nudge.WOKEN
            self._store.nudge(job, now=now, limit=self._patience(job), last=last)
        except WriteRefusedError:
            return None
        return Nudge.UNDELIVERABLE if last else Nudge.NUDGED

    def _patience(self, job: Job) -> timedelta:
        if job.state is State.SCHEDULED:
            return self._limit  # it has no message that could be waiting
        doubled = self._limit * 2.0 ** min(job.nudges, MOST_NUDGES)
        return max(self._limit, min(doubled, LONGEST_BETWEEN_NUDGES)) + self._lane_delay(job.lane)


def _given_up(job: Job, now: datetime) -> bool:
    return job.nudges >= MOST_NUDGES and job.due is not None and job.due <= now - UNDELIVERABLE_AFTER

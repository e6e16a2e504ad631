"""Refuses new jobs over HTTP while an operator has paused what they belong to, if the pause says so."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from tidemill.application.configuration import CurrentConfiguration
from tidemill.application.ports import Clock
from tidemill.domain.errors import SubmissionPausedError
from tidemill.domain.job import Job

#: A refused caller is asked to wait so long, unless the cause ends earlier. It may last longer, and then refuses again.
LONGEST_RETRY_AFTER: Final = timedelta(minutes=1)
_SHORTEST_RETRY_AFTER: Final = timedelta(seconds=1)


def refuse_paused(configuration: CurrentConfiguration, clock: Clock) -> Callable[[Job], Job]:
    """`Admit`: raises `SubmissionPausedError`."""

    def admit(job: Job) -> Job:
        now = clock()
        for pause in configuration().pauses(now):
            if pause.reject_new and pause.target.covers(job):
                raise SubmissionPausedError(pause.target.scope, retry_after(pause.until, now))
        return job

    return admit


def retry_after(until: datetime | None, now: datetime) -> timedelta:
    """How long a refused caller should wait. `until` is the end of the cause, if that is known."""
    left = until - now if until else LONGEST_RETRY_AFTER
    return max(min(left, LONGEST_RETRY_AFTER), _SHORTEST_RETRY_AFTER)

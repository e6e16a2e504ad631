"""Refuses or defers new jobs over HTTP under strain, which an operator has declared or the governor found."""

from collections.abc import Callable
from datetime import datetime

from tidemill.application.admission.foreground import Governor, strain_level
from tidemill.application.admission.paused_submissions import retry_after
from tidemill.application.configuration import CurrentConfiguration
from tidemill.application.job_types import JobTypes
from tidemill.application.ports import Clock, Draw
from tidemill.domain.admission.strain import NO_STRAIN, deferral, sheds
from tidemill.domain.attempt.outcomes import state_until
from tidemill.domain.errors import SubmissionShedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.time_constants import EPOCH, MILLISECOND


def shed_or_defer(
    job_types: JobTypes,
    configuration: CurrentConfiguration,
    clock: Clock,
    *,
    draw: Draw,
    governor: Governor | None = None,
) -> Callable[[Job], Job]:
    """`Admit`: raises `SubmissionShedError`, or returns the job with a later time."""

    def admit(job: Job) -> Job:
        level = strain_level(configuration, governor, clock)
        importance = job_types.get(job.type).importance
        if sheds(importance, level=level):
            now = clock()
            declared = configuration().strain(now)
            # When the governor lowers its level is not known.
            governed = governor is not None and governor.level() > NO_STRAIN
            until = declared.until if declared and not governed else None
            raise SubmissionShedError(job.type, level=level, retry_after=retry_after(until, now))
        later = deferral(importance, level=level, draw=draw())
        now = clock()
        until = now + later if later else None
        if until is None or not _can_wait(job, until):
            return job
        run_at = until - (until - EPOCH) % MILLISECOND
        return replace(job, state=state_until(run_at, now=now, otherwise=State.QUEUED), due=run_at, run_at=run_at)

    return admit


def _can_wait(job: Job, until: datetime) -> bool:
    """False for a job that begins later anyway, whose time is bounded, or that follows an undo at once.

    Neither can a job of a group: the jobs behind it, of types that no strain defers, would wait with it.
    """
    begins_later = job.due is not None and job.due >= until
    return not begins_later and not (
        job.lifetime.deadline or job.lifetime.useful_until or job.correction.supersedes or job.group.key
    )

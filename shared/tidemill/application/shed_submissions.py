"""Refuses new jobs of sheddable types over HTTP while an operator has declared strain."""

from collections.abc import Callable

from tidemill.application.configuration import CurrentConfiguration
from tidemill.application.job_types import JobTypes
from tidemill.application.paused_submissions import retry_after
from tidemill.application.ports import Clock
from tidemill.domain.errors import SubmissionShedError
from tidemill.domain.job import Job
from tidemill.domain.strain import sheds


def refuse_shed(job_types: JobTypes, configuration: CurrentConfiguration, clock: Clock) -> Callable[[Job], None]:
    """`Admit`: raises `SubmissionShedError`."""

    def admit(job: Job) -> None:
        now = clock()
        strain, level = configuration().strain(now), configuration().strain_level(now)
        if strain and sheds(job_types.get(job.type).importance, level=level):
            raise SubmissionShedError(job.type, level=level, retry_after=retry_after(strain.until, now))

    return admit

"""Refuses new jobs of sheddable types over HTTP under strain, which an operator has declared or the governor found."""

from collections.abc import Callable

from tidemill.application.configuration import CurrentConfiguration
from tidemill.application.foreground import Governor, strain_level
from tidemill.application.job_types import JobTypes
from tidemill.application.paused_submissions import retry_after
from tidemill.application.ports import Clock
from tidemill.domain.errors import SubmissionShedError
from tidemill.domain.job import Job
from tidemill.domain.strain import NO_STRAIN, sheds


def refuse_shed(
    job_types: JobTypes, configuration: CurrentConfiguration, clock: Clock, governor: Governor | None = None
) -> Callable[[Job], None]:
    """`Admit`: raises `SubmissionShedError`."""

    def admit(job: Job) -> None:
        level = strain_level(configuration, governor, clock)
        if sheds(job_types.get(job.type).importance, level=level):
            now = clock()
            declared = configuration().strain(now)
            # When the governor lowers its level is not known.
            governed = governor is not None and governor.level() > NO_STRAIN
            until = declared.until if declared and not governed else None
            raise SubmissionShedError(job.type, level=level, retry_after=retry_after(until, now))

    return admit

"""A periodic job that makes up for a pause follows the end of that pause, so it may not expire before."""

from tidemill.application.submission.checked_submission import CheckedSubmission
from tidemill.application.submission.placements import Placement
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.waiting.pauses import CATCH_UP_TAG
from tidemill.names import SCHEDULE_TENANT


class CatchUpPlacement(Placement):
    def place(self, job: Job, checked: CheckedSubmission) -> Job:
        makes_up = checked.tenant == SCHEDULE_TENANT and CATCH_UP_TAG in checked.submission.tags
        return replace(job, lifetime=replace(job.lifetime, useful_until=None)) if makes_up else job

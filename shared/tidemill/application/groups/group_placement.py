"""Group: its jobs run one at a time, in the order in which they were accepted."""

from datetime import datetime

from tidemill.application.job_types import JobType
from tidemill.application.submission.checked_submission import CheckedSubmission
from tidemill.application.submission.new_jobs import Accepted, NewJobs
from tidemill.application.submission.placements import Placement
from tidemill.application.submission.validation import NAME_RULE, Check, is_name
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission


def group_rule(submission: Submission, _job_type: JobType, _now: datetime) -> list[Check]:
    return [(submission.group is None or is_name(submission.group), "/group", NAME_RULE)]


class GroupPlacement(Placement):
    """The store gives the job its position, in the write of its document."""

    def __init__(self, jobs: NewJobs) -> None:
        self._jobs = jobs

    def place(self, job: Job, checked: CheckedSubmission) -> Job:
        group = checked.submission.group
        return job if group is None else replace(job, group=replace(job.group, key=group, blocks=checked.type.blocks))

    def holds(self, job: Job) -> bool:
        return job.group.key is not None

    def serial_key(self, job: Job) -> str:
        return f"group {job.group.key}"

    def insert(self, job: Job) -> Accepted:
        return self._jobs.insert(job)

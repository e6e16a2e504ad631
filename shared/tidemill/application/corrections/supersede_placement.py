"""A job supersedes an earlier one. `Superseder` inserts it."""

from datetime import datetime

from tidemill.application.job_types import JobType
from tidemill.application.submission.checked_submission import CheckedSubmission
from tidemill.application.submission.new_jobs import Accepted, Insert
from tidemill.application.submission.placements import Placement
from tidemill.application.submission.validation import LONGEST_KEY, Check
from tidemill.domain.errors import Fault, InvalidPayloadError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission


def supersede_rule(submission: Submission, job_type: JobType, _now: datetime) -> list[Check]:
    earlier = submission.supersedes
    if earlier is None:
        return []
    is_unique = submission.unique is not None or job_type.unique is not None
    return [
        (
            0 < len(earlier) <= LONGEST_KEY and not is_unique,
            "/supersedes",
            f"must be a key or an id of 1 to {LONGEST_KEY} characters, of a job that is not unique",
        ),
        (
            not (submission.delay or submission.run_at),
            "/supersedes",
            "a job that supersedes another runs as soon as it may; leave delay_seconds and run_at out",
        ),
        (
            submission.max_age is None,
            "/supersedes",
            "a job that supersedes another does not expire; leave max_age_seconds out",
        ),
        (
            submission.deadline is None,
            "/supersedes",
            "a job that supersedes another waits for as long as that one's undo takes; leave deadline out",
        ),
    ]


class SupersedePlacement(Placement):
    """`insert` is `Superseder.accept`. None where no job can supersede another."""

    def __init__(self, insert: Insert | None) -> None:
        self._insert = insert

    def place(self, job: Job, checked: CheckedSubmission) -> Job:
        earlier = checked.submission.supersedes
        # It follows the undo of the earlier job, so it may not expire before.
        return (
            job
            if earlier is None
            else replace(
                job,
                correction=replace(job.correction, supersedes=earlier),
                lifetime=replace(job.lifetime, useful_until=None),
            )
        )

    def holds(self, job: Job) -> bool:
        return job.correction.supersedes is not None

    def follow_up_fault(self, submission: Submission) -> Fault | None:
        return None if submission.supersedes is None else Fault("/supersedes", "a follow-up job supersedes none")

    def insert(self, job: Job) -> Accepted:
        if self._insert is None:
            raise InvalidPayloadError([Fault("/supersedes", "is not possible here")])
        return self._insert(job)

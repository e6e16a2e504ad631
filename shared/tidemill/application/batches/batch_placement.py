"""A job joins a batch that is open."""

from datetime import datetime

from tidemill.application.job_types import JobType
from tidemill.application.ports import Clock, SubmitStore
from tidemill.application.submission.checked_submission import CheckedSubmission
from tidemill.application.submission.new_jobs import Accepted, NewJobs
from tidemill.application.submission.placements import Placement
from tidemill.application.submission.unnamed_payloads import delete_unnamed
from tidemill.application.submission.validation import Check, may_be_id
from tidemill.domain.batches.batches import closed_at, is_batch
from tidemill.domain.errors import BatchRefusedError, Fault, InvalidPayloadError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission


def batch_rule(submission: Submission, job_type: JobType, _now: datetime) -> list[Check]:
    return [
        (
            submission.batch is None
            or (
                may_be_id(submission.batch)
                and submission.supersedes is None
                and submission.unique is None
                and job_type.unique is None
            ),
            "/batch",
            "must be the id of a batch, for a job that is not unique and supersedes none",
        )
    ]


class BatchPlacement(Placement):
    """The job gets its place among the members in the write of its document."""

    def __init__(self, jobs: NewJobs, *, store: SubmitStore, clock: Clock) -> None:
        self._jobs = jobs
        self._store = store
        self._clock = clock

    def place(self, job: Job, checked: CheckedSubmission) -> Job:
        batch = checked.submission.batch
        return job if batch is None else replace(job, batch=batch)

    def holds(self, job: Job) -> bool:
        return job.batch is not None

    def follow_up_fault(self, submission: Submission) -> Fault | None:
        return None if submission.batch is None else Fault("/batch", "a follow-up job joins no batch")

    def insert(self, job: Job) -> Accepted:
        """Raises `BatchRefusedError` if the batch takes no more, and `InvalidPayloadError` if it does not exist."""
        try:
            batch = self._open_batch(job.tenant, job.batch or "")
        except (BatchRefusedError, InvalidPayloadError) as refused:
            return self._jobs.earlier(job.tenant, job.id, job.body_hash, refused=refused)

        def write(stored: Job) -> Job:
            try:
                return self._store.insert_if_absent(stored, batch=batch)
            except BatchRefusedError:
                # Nothing was written, so the payload belongs to no job.
                delete_unnamed(stored, None, self._jobs.payloads)
                raise

        return self._jobs.insert(job, write=write)

    def _open_batch(self, tenant: str, batch_id: str) -> Job:
        batch, now = self._store.get(tenant, batch_id), self._clock()
        if batch is None or batch.lifetime.over(now) or not is_batch(batch):
            raise InvalidPayloadError([Fault("/batch", "you have no batch with this id")])
        closed = closed_at(batch, now=now)
        if closed or batch.state.terminal:
            raise BatchRefusedError(f"the batch {batch.id} is {'closed' if closed else batch.state}")
        return batch

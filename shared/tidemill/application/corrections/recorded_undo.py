"""What a handler says would undo its effect, checked as a submission and made ready for the document."""

from tidemill.application.submission.later_jobs import needless
from tidemill.application.submission.submit import Submit
from tidemill.domain.corrections.undo import LARGEST_UNDO_BYTES, Undo
from tidemill.domain.errors import Fault, InvalidPayloadError, PayloadTooLargeError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission


def recorded_undo(submission: Submission, done: Job, submit: Submit) -> Undo:
    """Raises as `Submit.prepare`, and `InvalidPayloadError` for members that an undo may not have."""
    if found := _faults(submission):
        raise InvalidPayloadError(found)
    job = submit.prepare(replace(submission, group=done.group.key), tenant=done.tenant, trace=done.trace)
    payload = job.payload.text or "{}"
    if len(payload) > LARGEST_UNDO_BYTES:
        raise PayloadTooLargeError(len(payload), LARGEST_UNDO_BYTES)
    return Undo(
        type=job.type,
        lane=job.lane,
        payload=payload,
        tags=job.tags,
        blocks=job.group.blocks,
        retention=job.lifetime.retention,
        max_age=job.lifetime.useful_until - job.due if job.lifetime.useful_until and job.due else None,
    )


def _faults(submission: Submission) -> list[Fault]:
    """Its group, too, is that of the job that it undoes."""
    names = [*needless(submission), *(["group"] if submission.group is not None else [])]
    return [Fault(f"/{name}", "an undo takes none") for name in names]

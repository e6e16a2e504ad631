"""A job as a response. Separate from `job_view`, which the command line uses without Powertools."""

from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response

from tidemill.application.job_view import batch_view, payload_of, view
from tidemill.application.ports import Payloads
from tidemill.application.submission.new_jobs import Accepted
from tidemill.domain.batches.batches import Look, is_batch
from tidemill.domain.flows.flows import is_flow
from tidemill.domain.job import Job
from tidemill.http.problems import ProblemError
from tidemill.http.router import DEBOUNCED, REPLAYED, json_response


def answer(job: Job | None, payloads: Payloads) -> Response[str]:
    """The whole job. Raises `ProblemError` without one; keys begin with the tenant, so that includes jobs of others."""
    if job is None:
        detail = (
            "You own no job with this id. Check the id and your credentials; finished jobs are kept for a limited time."
        )
        raise ProblemError(HTTPStatus.NOT_FOUND, "no-such-job", detail)
    return json_response(HTTPStatus.OK, view(job, payload=payload_of(job, payloads)))


def new_job_answer(accepted: Accepted, payload: str | None) -> Response[str]:
    """The job that a submission made, joined or repeats, with its payload as JSON; None if it cannot be read."""
    earlier = DEBOUNCED if accepted.job.burst else REPLAYED
    headers = {"Location": f"/jobs/{accepted.job.id}", **(earlier if accepted.replayed else {})}
    return json_response(accepted_status(accepted), view(accepted.job, payload=payload), headers=headers)


def accepted_status(accepted: Accepted) -> HTTPStatus:
    return HTTPStatus.OK if accepted.replayed else HTTPStatus.ACCEPTED


def composite_missing(kind: str) -> ProblemError:
    """The caller has no such job of this kind, one of `listed_members.KINDS`."""
    kept = "ended ones are kept for a limited time"
    detail = f"You own no {kind} with this id. Check the id and your credentials; {kept}."
    if kind == "event":
        return ProblemError(HTTPStatus.NOT_FOUND, "no-such-event", detail)
    return ProblemError(HTTPStatus.NOT_FOUND, "no-such-batch", detail)


def batch_answer(job: Job | None, look: Look | None = None) -> Response[str]:
    """The batch, with the counts of the look, or else those of its last run. Raises `ProblemError` without a batch."""
    if job is None or not is_batch(job):
        raise composite_missing("batch")
    return json_response(HTTPStatus.OK, batch_view(job, look))


def require_flow(job: Job | None) -> Job:
    """Raises `ProblemError` without a flow."""
    if job is None or not is_flow(job):
        detail = "You own no flow with this id. Check the id and your credentials; ended flows are kept for 30 days."
        raise ProblemError(HTTPStatus.NOT_FOUND, "no-such-flow", detail)
    return job

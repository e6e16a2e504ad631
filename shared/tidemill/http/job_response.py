"""A job as a response. Separate from `job_view`, which the command line uses without Powertools."""

from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response

from tidemill.application.job_view import payload_of, view
from tidemill.application.ports import Payloads
from tidemill.domain.job import Job
from tidemill.http.problems import ProblemError
from tidemill.http.router import json_response


def answer(job: Job | None, payloads: Payloads) -> Response[str]:
    """The whole job. Raises `ProblemError` without one; keys begin with the tenant, so that includes jobs of others."""
    if job is None:
        detail = (
            "You own no job with this id. Check the id and your credentials; finished jobs are kept for a limited time."
        )
        raise ProblemError(HTTPStatus.NOT_FOUND, "no-such-job", detail)
    return json_response(HTTPStatus.OK, view(job, payload=payload_of(job, payloads)))

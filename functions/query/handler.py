"""Query: `GET /jobs/{id}` reads one job of the caller's own."""

from functools import cache
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from shared.adapters import clock, composition, http
from shared.adapters.view import view

#: Every id is a UUID; the store refuses keys that are far longer.
_LONGEST_ID = 36


@cache
def _app() -> APIGatewayHttpResolver:
    app = http.resolver()

    @app.get("/jobs/<job_id>")
    def get(job_id: str) -> Response[str]:
        owner = http.tenant(app.current_event)
        job = composition.store().get(owner, job_id) if len(job_id) <= _LONGEST_ID else None
        if job is None or job.expired(clock.now()):
            # Another tenant's job is not there either: keys begin with the tenant.
            detail = "no job of yours has this id; finished jobs are kept for a limited time"
            raise http.ProblemError(HTTPStatus.NOT_FOUND, "no-such-job", detail)
        return http.json_response(HTTPStatus.OK, view(job, payload=composition.payloads().load(job)))

    return app


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return _app().resolve(event, context)

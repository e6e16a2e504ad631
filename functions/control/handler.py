"""Control: `POST /jobs/{id}/cancel` ends a job of the caller's own, `POST /jobs/{id}/retry` revives a dead one."""

from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from pydantic import BaseModel, ConfigDict

from shared.adapters import composition, http
from shared.adapters.job_answer import answer
from shared.domain.errors import NotAllowedNowError
from shared.domain.job import Job


class Nothing(BaseModel):
    """There is nothing to say beside the path."""

    model_config = ConfigDict(extra="forbid")


@cache
def _app() -> APIGatewayHttpResolver:
    app = http.resolver()

    @app.post("/jobs/<job_id>/cancel")
    def cancel(job_id: str) -> Response[str]:
        return controlled("cancelled", lambda owner: composition.control().cancel(owner, job_id))

    @app.post("/jobs/<job_id>/retry")
    def retry(job_id: str) -> Response[str]:
        return controlled("retried", lambda owner: composition.control().retry(owner, job_id, by=owner))

    def controlled(what: str, act: Callable[[str], Job | None]) -> Response[str]:
        owner = http.tenant(app.current_event)
        if app.current_event.body:
            http.read_body(app.current_event, Nothing)
        try:
            job = act(owner)
        except NotAllowedNowError as error:
            raise http.ProblemError(HTTPStatus.CONFLICT, "not-allowed-now", str(error)) from error
        if job is not None:
            composition.telemetry().controlled(what, job)
        return answer(job, composition.payloads())

    return app


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return _app().resolve(event, context)

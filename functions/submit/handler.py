"""Submit: `POST /jobs` makes a job with one conditional write."""

from functools import cache
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from pydantic import BaseModel, ConfigDict, Field

from shared.adapters import composition, http
from shared.adapters.idempotency import submit_once
from shared.adapters.view import view
from shared.domain.submission import Submission


class Body(BaseModel):
    """What a caller sends."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: str = Field(min_length=1, max_length=100)
    payload: dict[str, Any] = Field(default_factory=dict)


@cache
def _app() -> APIGatewayHttpResolver:
    app = http.resolver()

    @app.post("/jobs")
    def submit() -> Response[str]:
        event = app.current_event
        owner = http.tenant(event)
        key = http.idempotency_key(event)
        body = http.read_body(event, Body)
        telemetry = composition.telemetry()
        accepted = submit_once(
            composition.submit(),
            Submission(type=body.type, payload=body.payload, key=key),
            tenant=owner,
            trace=event.request_context.request_id,
        )
        telemetry.accepted(accepted)
        telemetry.flush()
        status = HTTPStatus.OK if accepted.replayed else HTTPStatus.ACCEPTED
        headers = {"Location": f"/jobs/{accepted.job.id}"}
        if accepted.replayed:
            headers |= http.REPLAYED
        return http.json_response(
            status, view(accepted.job, payload=composition.payloads().load(accepted.job)), headers=headers
        )

    return app


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return _app().resolve(event, context)

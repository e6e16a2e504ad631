"""Routes requests to handlers, and answers with JSON."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from tidemill.http.problems import ProblemError, as_problem

_JSON: Final = "application/json"
#: Marks a response that repeats the result of an earlier request with the same idempotency key.
REPLAYED: Final[Mapping[str, str]] = {"Idempotent-Replayed": "true"}


def resolver() -> APIGatewayHttpResolver:
    """A router that answers every error with a problem document, and never with a stack trace."""
    app = APIGatewayHttpResolver()

    @app.not_found
    def unknown_route(_: Exception) -> Response[str]:
        detail = "No such route. Check the method and the path."
        return ProblemError(HTTPStatus.NOT_FOUND, "not-found", detail).response()

    @app.exception_handler(Exception)  # type: ignore[untyped-decorator]  # Powertools leaves it untyped
    def refused(error: Exception) -> Response[str]:
        return as_problem(error, request_id=app.current_event.request_context.request_id).response()

    return app


def json_response(status: HTTPStatus, body: object, *, headers: Mapping[str, str] | None = None) -> Response[str]:
    return Response(status, _JSON, json.dumps(body, separators=(",", ":")), headers=dict(headers or {}))

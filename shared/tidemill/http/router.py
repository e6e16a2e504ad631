"""Routes requests to handlers, and answers with JSON."""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, TypeVar

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from tidemill.http.problems import ProblemError, as_problem
from tidemill.routes import ROUTES

_JSON: Final = "application/json"
#: Marks a response that repeats the result of an earlier request with the same idempotency key.
REPLAYED: Final[Mapping[str, str]] = {"Idempotent-Replayed": "true"}
DEBOUNCED: Final[Mapping[str, str]] = {"Debounced": "true"}


#: Gets each problem that answers a request.
Answered = Callable[[ProblemError], None]
Handler = TypeVar("Handler", bound=Callable[..., Response[str]])


def resolver(answered: Answered = lambda _problem: None) -> APIGatewayHttpResolver:
    """A router that answers every error with a problem document, and never with a stack trace."""
    app = APIGatewayHttpResolver()
    app.use(middlewares=[_whole_path])

    @app.not_found
    def unknown_route(_: Exception) -> Response[str]:
        return _no_such_route().response()

    @app.exception_handler(Exception)  # type: ignore[untyped-decorator]  # Powertools leaves it untyped
    def refused(error: Exception) -> Response[str]:
        problem = as_problem(error, request_id=app.current_event.request_context.request_id)
        answered(problem)
        return problem.response()

    return app


def serve(app: APIGatewayHttpResolver, *operations: str) -> Callable[[Handler], Handler]:
    """Let the decorated function answer the routes of these operations. It takes the parameters of their paths."""

    def register(handler: Handler) -> Handler:
        for route in ROUTES:
            if route.operation in operations:
                # `id` is a builtin of Python, so the parameter has another name.
                pattern = route.path.replace("{id}", "<job_id>").replace("{name}", "<name>")
                app.route(pattern, method=route.method)(handler)
        return handler

    return register


def _whole_path(
    app: APIGatewayHttpResolver, following: Callable[[APIGatewayHttpResolver], Response[str]]
) -> Response[str]:
    """Refuse a path that ends in a line feed (`%0a`). The patterns of Powertools end in `$`, which also matches there.

    https://docs.python.org/3/library/re.html#regular-expression-syntax
    """
    if app.current_event.path.endswith("\n"):
        raise _no_such_route()
    return following(app)


def _no_such_route() -> ProblemError:
    detail = "No such route. Check the method and the path. No path ends in a slash."
    return ProblemError(HTTPStatus.NOT_FOUND, "not-found", detail)


def json_response(status: HTTPStatus, body: object, *, headers: Mapping[str, str] | None = None) -> Response[str]:
    return Response(status, _JSON, json.dumps(body, separators=(",", ":")), headers=dict(headers or {}))

"""A stand-in for API Gateway between the command line and the functions: the routes and the events."""

import base64
import json
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO
from itertools import count
from types import ModuleType
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.integration.cli.loopback import Answer, Request
from tests.support.http_events import ROLE
from tidemill.entrypoints import control, query, submit

_BASE: Final = "/_aws/execute-api/a1b2/$default"
_ROUTES: Final[Mapping[str, ModuleType]] = {
    r"POST /jobs(/batch)?": submit,
    r"GET /jobs(/[^/]+)?": query,
    r"POST /jobs/[^/]+/(cancel|redrive|retry)": control,
}
_requests = count(1)


def respond(request: Request) -> Answer:
    """The response of the function behind the route, to any signed caller."""
    parts = urlsplit(request.path.removeprefix(_BASE))
    for route, function in _ROUTES.items():
        if re.fullmatch(route, f"{request.method} {parts.path}"):
            # Functions print metrics to stdout; tests read the command line's output there.
            with redirect_stdout(StringIO()):
                answer = function.handle(_event(request, unquote(parts.path), parts.query), None)
            return answer["statusCode"], answer["headers"], answer["body"].encode()
    return 404, {}, json.dumps({"message": "Not Found"}).encode()


def _event(request: Request, path: str, query_string: str) -> dict[str, Any]:
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query_string,
        "queryStringParameters": dict(parse_qsl(query_string)),
        "headers": {name.lower(): value for name, value in request.headers.items()},
        "body": base64.b64encode(request.body).decode() if request.body else None,
        "isBase64Encoded": bool(request.body),
        "requestContext": {
            "requestId": f"cli-{next(_requests)}",
            "stage": "$default",
            "http": {"method": request.method, "path": path, "sourceIp": "203.0.113.9", "protocol": "HTTP/1.1"},
            "authorizer": {"iam": dict(ROLE)},
        },
    }

"""The HTTP API in process: what API Gateway does between a request and the function behind its route."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from http import HTTPStatus
from itertools import count
from types import ModuleType
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

import pytest

from tests.support.http_events import ROLE, Answer
from tidemill.aws import clients
from tidemill.entrypoints import control, submit
from tidemill.entrypoints import query as query_function
from tidemill.names import Env

FUNCTIONS: Final[tuple[ModuleType, ...]] = (submit, query_function, control)
#: The route that needs no caller.
OPEN: Final = "/openapi.json"
#: The Authorization header that tools bring.
SIGNED: Final = "AWS4-HMAC-SHA256 Credential=testing"
Environ = Mapping[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], object]
_requests = count(1)


class Secrets:
    """Secrets Manager with one key; `asked` counts."""

    def __init__(self, key: str = "a key") -> None:
        self.key = key
        self.asked = 0

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, str]:  # noqa: N803 - as boto3 has it
        self.asked += 1
        return {"ARN": SecretId, "SecretString": self.key}


def sign_cursors(monkeypatch: pytest.MonkeyPatch) -> Secrets:
    """What a query function has where the stage lists jobs."""
    secrets = Secrets()
    monkeypatch.setenv(Env.CURSOR_KEY_SECRET, "cursor-key")
    monkeypatch.setattr(clients, "secrets", lambda: secrets)
    return secrets


@cache
def routes() -> Mapping[tuple[str, str], ModuleType]:
    """Method and path of every route that a function answers, written as API Gateway writes it."""
    return {
        (route.method.lower(), route.path.replace("<job_id>", "{id}")): function
        for function in FUNCTIONS
        for route in (*function._app()._static_routes, *function._app()._dynamic_routes)
    }


def request(
    method: str,
    path: str,
    *,
    query: Mapping[str, str] | str = "",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    iam: Mapping[str, Any] | None = ROLE,
) -> Answer:
    """As a signed request of `iam` would be answered."""
    status, answered, text = _answer(
        method,
        path,
        query=query if isinstance(query, str) else urlencode(query),
        headers={name.lower(): value for name, value in (headers or {}).items()},
        body=body,
        iam=iam,
    )
    return Answer(status, answered, json.loads(text))


def wsgi(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """The same for tools, which are that role if they bring `SIGNED`."""
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_") or (name == "CONTENT_TYPE" and value)
    }
    size = int(environ.get("CONTENT_LENGTH") or 0)
    path = environ["PATH_INFO"].encode("latin-1").decode(errors="replace")
    iam = ROLE if headers.get("authorization") == SIGNED else None
    body = environ["wsgi.input"].read(size) if size else None
    status, answered, text = _answer(
        environ["REQUEST_METHOD"], path, query=environ["QUERY_STRING"], headers=headers, body=body, iam=iam
    )
    start_response(f"{status} {HTTPStatus(status).phrase}", [*answered.items()])
    return [text.encode()]


def _answer(
    method: str,
    path: str,
    *,
    query: str,
    headers: Mapping[str, str],
    body: bytes | None,
    iam: Mapping[str, Any] | None,
) -> tuple[int, Mapping[str, str], str]:
    function = _function(method, path)
    if function is None:
        return _gateway(HTTPStatus.NOT_FOUND, "Not Found")
    if iam is None and path != OPEN:
        return _gateway(HTTPStatus.FORBIDDEN, "Forbidden")
    text, encoded = _text(body)
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    event = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        **({"queryStringParameters": parameters} if parameters else {}),
        "headers": dict(headers),
        **({} if text is None else {"body": text}),
        "isBase64Encoded": encoded,
        "requestContext": {
            "requestId": f"request-{next(_requests)}",
            "stage": "$default",
            "http": {"method": method, "path": quote(path), "sourceIp": "203.0.113.9", "protocol": "HTTP/1.1"},
            **({} if iam is None else {"authorizer": {"iam": dict(iam)}}),
        },
    }
    answer = function.handle(event, None)
    return answer["statusCode"], answer["headers"], answer["body"]


def _function(method: str, path: str) -> ModuleType | None:
    """The most specific route goes first, and a parameter is one segment of the path, and not empty."""
    segments = path.split("/")
    for (of_method, template), function in sorted(routes().items(), key=lambda route: "{" in route[0][1]):
        steps = template.split("/")
        if of_method == method.lower() and len(steps) == len(segments):
            pairs = list(zip(steps, segments, strict=True))
            if all(step == segment or (step == "{id}" and segment) for step, segment in pairs):
                return function
    return None


def _text(body: bytes | None) -> tuple[str | None, bool]:
    if body is None:
        return None, False
    try:
        return body.decode(), False
    except UnicodeDecodeError:
        return b64encode(body).decode(), True


def _gateway(status: HTTPStatus, message: str) -> tuple[int, Mapping[str, str], str]:
    return status, {"Content-Type": "application/json"}, json.dumps({"message": message})

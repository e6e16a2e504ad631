"""The HTTP API in process: the gateway's routes, its check of signatures, and the function behind each route."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from http import HTTPStatus
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import NOW
from tests.support.http_events import ROLE, Answer, http_event
from tidemill.aws import clients
from tidemill.entrypoints import control, submit
from tidemill.entrypoints import query as query_function
from tidemill.names import Env

FUNCTIONS: Final[tuple[ModuleType, ...]] = (submit, query_function, control)
#: The only route that takes unsigned requests.
OPEN: Final = "/openapi.json"
#: The Authorization header of a request through `wsgi` that counts as signed.
SIGNED: Final = "AWS4-HMAC-SHA256 Credential=testing"
Environ = Mapping[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], object]
#: Status, headers, body.
Response = tuple[int, Mapping[str, str], str]


class Secrets:
    """A Secrets Manager with one secret. `asked` counts the reads of its present value."""

    def __init__(self, key: str = "a key") -> None:
        self.key = key
        self.previous: str | None = None
        self.asked = 0

    def rotate(self, key: str) -> None:
        self.key, self.previous = key, self.key

    def get_secret_value(self, *, SecretId: str, VersionStage: str) -> Mapping[str, Any]:  # noqa: N803 - as in boto3
        self.asked += VersionStage == "AWSCURRENT"
        value = self.key if VersionStage == "AWSCURRENT" else self.previous
        if value is None:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}}, "GetSecretValue")
        return {"ARN": SecretId, "SecretString": value, "CreatedDate": NOW}


def sign_cursors(monkeypatch: pytest.MonkeyPatch) -> Secrets:
    """Give the query function the secret that signs the cursors of listings."""
    secrets = Secrets()
    monkeypatch.setenv(Env.CURSOR_KEY_SECRET, "cursor-key")
    monkeypatch.setattr(clients, "secrets", lambda: secrets)
    return secrets


@cache
def routes() -> Mapping[tuple[str, str], ModuleType]:
    """The function of each method (lower case) and path (in API Gateway's notation), from the resolvers themselves."""
    return {
        (route.method.lower(), route.path.replace("<job_id>", "{id}").replace("<name>", "{name}")): function
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
    """Send a request that `iam` signed, or an unsigned one for None."""
    status, answered, text = respond(
        method,
        path,
        query=query if isinstance(query, str) else urlencode(query),
        headers=headers or {},
        body=body,
        iam=iam,
    )
    return Answer(status, answered, json.loads(text))


def wsgi(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """The API as a WSGI application, for tools. A request is signed by `ROLE` if its Authorization is `SIGNED`."""
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_") or (name == "CONTENT_TYPE" and value)
    }
    size = int(environ.get("CONTENT_LENGTH") or 0)
    path = environ["PATH_INFO"].encode("latin-1").decode(errors="replace")
    iam = ROLE if headers.get("authorization") == SIGNED else None
    body = environ["wsgi.input"].read(size) if size else None
    status, answered, text = respond(
        environ["REQUEST_METHOD"], path, query=environ["QUERY_STRING"], headers=headers, body=body, iam=iam
    )
    start_response(f"{status} {HTTPStatus(status).phrase}", [*answered.items()])
    return [text.encode()]


def respond(
    method: str,
    path: str,
    *,
    query: str,
    headers: Mapping[str, str],
    body: bytes | None,
    iam: Mapping[str, Any] | None,
) -> Response:
    """Route the request and invoke its function. `path` is decoded, `query` is not."""
    function = _function(method, path)
    if function is None:
        return _refused(HTTPStatus.NOT_FOUND, "Not Found")
    if iam is None and path != OPEN:
        return _refused(HTTPStatus.FORBIDDEN, "Forbidden")
    text, encoded = _text(body)
    lowered = {name.lower(): value for name, value in headers.items()}
    event = http_event(method, path, query=query, body=text, base64=encoded, headers=lowered, iam=iam)
    answer = function.handle(event, None)
    return answer["statusCode"], answer["headers"], answer["body"]


def _function(method: str, path: str) -> ModuleType | None:
    """The most specific route wins. A parameter is one segment of the path, and is not empty."""
    segments = path.split("/")
    for (of_method, template), function in sorted(routes().items(), key=lambda route: "{" in route[0][1]):
        steps = template.split("/")
        if of_method == method.lower() and len(steps) == len(segments):
            pairs = list(zip(steps, segments, strict=True))
            if all(step == segment or (step in {"{id}", "{name}"} and segment) for step, segment in pairs):
                return function
    return None


def _text(body: bytes | None) -> tuple[str | None, bool]:
    """The body as the gateway passes it, and whether it is in base64."""
    if body is None:
        return None, False
    try:
        return body.decode(), False
    except UnicodeDecodeError:
        return b64encode(body).decode(), True


def _refused(status: HTTPStatus, message: str) -> Response:
    return status, {"Content-Type": "application/json"}, json.dumps({"message": message})

"""A request as API Gateway's HTTP API hands it to a function: payload format 2.0."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from types import ModuleType
from typing import Any, Final
from urllib.parse import parse_qsl, quote

ROLE: Final[Mapping[str, str]] = {"accountId": "111122223333", "userId": "AROAEXAMPLE:a-session"}
_requests = count(1)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a function, with its body decoded."""

    status: int
    headers: Mapping[str, str]
    body: Any


def http_event(
    method: str,
    path: str,
    *,
    query: str = "",
    body: str | None = None,
    base64: bool = False,
    headers: Mapping[str, str] | None = None,
    iam: Mapping[str, Any] | None = ROLE,
) -> dict[str, Any]:
    """The event of one request. `iam` is the caller that the gateway verified; None for an unsigned request.

    The gateway omits `queryStringParameters` and `body` when the request has none, and joins repeated parameters with
    commas: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    """
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        **({"queryStringParameters": parameters} if parameters else {}),
        "headers": dict(headers or {}),
        **({} if body is None else {"body": body}),
        "isBase64Encoded": base64,
        "requestContext": {
            "requestId": f"request-{next(_requests)}",
            "stage": "$default",
            "http": {"method": method, "path": quote(path), "sourceIp": "203.0.113.9", "protocol": "HTTP/1.1"},
            **({} if iam is None else {"authorizer": {"iam": dict(iam)}}),
        },
    }


def call(function: ModuleType, method: str, path: str, **request: Any) -> Answer:
    """Invoke one function with the request, past the routes of the gateway. Takes the arguments of `http_event`."""
    answer = function.handle(http_event(method, path, **request), None)
    assert set(answer) >= {"statusCode", "body", "headers", "isBase64Encoded"}
    return Answer(answer["statusCode"], answer["headers"], json.loads(answer["body"], parse_constant=_refuse))


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")

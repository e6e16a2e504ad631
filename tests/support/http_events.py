"""What API Gateway's HTTP API hands to a function, payload format 2.0."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from types import ModuleType
from typing import Any, Final

ROLE: Final[Mapping[str, str]] = {"accountId": "111122223333", "userId": "AROAEXAMPLE:a-session"}
_requests = count(1)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the function answered; the body decoded."""

    status: int
    headers: Mapping[str, str]
    body: Any


def call(
    function: ModuleType,
    method: str,
    path: str,
    *,
    body: str | None = None,
    base64: bool = False,
    headers: Mapping[str, str] | None = None,
    iam: Mapping[str, Any] | None = ROLE,
) -> Answer:
    event = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": dict(headers or {}),
        "body": body,
        "isBase64Encoded": base64,
        "requestContext": {
            "requestId": f"request-{next(_requests)}",
            "stage": "$default",
            "http": {"method": method, "path": path, "sourceIp": "203.0.113.9", "protocol": "HTTP/1.1"},
            **({} if iam is None else {"authorizer": {"iam": dict(iam)}}),
        },
    }
    answer = function.handle(event, None)
    assert set(answer) >= {"statusCode", "body", "headers", "isBase64Encoded"}
    return Answer(answer["statusCode"], answer["headers"], json.loads(answer["body"], parse_constant=_refuse))


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")

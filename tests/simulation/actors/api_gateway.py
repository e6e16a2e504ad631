"""The HTTP API of one world: it sends requests as API Gateway passes them on, and returns the responses.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from tests.simulation.checks.canaries import require_own_texts
from tests.simulation.checks.violation import Violation
from tests.simulation.jobs.handler_runs import trace_context
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FunctionError, Throttled
from tests.simulation.world.world import World
from tests.support.http_events import http_event
from tidemill.domain.submission.submission import Submission

OK: Final = 200
ACCEPTED: Final = 202
NOT_FOUND: Final = 404
CONFLICT: Final = 409
UNPROCESSABLE: Final = 422
BROKEN: Final = 500
UNAVAILABLE: Final = 503


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. `body` is decoded JSON."""

    status: int
    body: Any


@dataclass(slots=True)
class Request:
    """A request to the API."""

    tenant: str
    path: str
    #: None while it has no response.
    answered_ms: int | None = None


def ask(
    world: World,
    function: str,
    method: str,
    path: str,
    *,
    tenant: str,
    key: str | None = None,
    body: Any = None,
    query: Mapping[str, str] | None = None,
) -> Answer | None:
    """Call this from a task. None if no response arrived in time; the request may have had its effect."""
    request = Request(tenant, path)
    world.requests.append(request)
    try:
        answer = world.functions[function].invoke(_event(world, request, method, key=key, body=body, query=query))
    except Throttled:
        return None
    finally:
        request.answered_ms = world.scheduler.now_ms
    if isinstance(answer, FunctionError) or world.faults.occurs(Fault.ANSWER_LOST):
        return None
    if answer["statusCode"] == BROKEN:
        found = Violation("no request is answered with 500", f"{method} {path}: {answer['body']}", "*")
        world.scheduler.fail(found)
    require_own_texts(world, tenant, answer["body"], "an answer")
    return Answer(answer["statusCode"], json.loads(answer["body"]))


def as_json(submission: Submission) -> dict[str, Any]:
    """A submission as the body of a request, without its key."""
    written = {
        "type": submission.type,
        "payload": dict(submission.payload),
        "lane": submission.lane,
        "delay_seconds": submission.delay.total_seconds() if submission.delay else None,
        "run_at": submission.run_at.isoformat() if submission.run_at else None,
        "deadline": submission.deadline.isoformat() if submission.deadline else None,
        "max_age_seconds": submission.max_age.total_seconds() if submission.max_age else None,
        "group": submission.group,
        "tags": list(submission.tags) or None,
        "supersedes": submission.supersedes,
    }
    return {name: value for name, value in written.items() if value is not None}


def _event(
    world: World,
    request: Request,
    method: str,
    *,
    key: str | None,
    body: Any,
    query: Mapping[str, str] | None,
) -> dict[str, Any]:
    account, _, user = request.tenant.partition(":")
    now_ms = world.scheduler.now_ms
    event = http_event(
        method,
        request.path,
        query=urlencode(query or {}),
        body=None if body is None else json.dumps(body),
        headers={"content-type": "application/json", "traceparent": trace_context(request.tenant)}
        | ({"idempotency-key": key} if key else {}),
        # The caller of a role chooses the session name.
        iam={"accountId": account, "userId": f"{user}:session-{now_ms}"},
    )
    # Jobs carry the request id in their trace, so it must come from the seed.
    event["requestContext"]["requestId"] = f"request-{now_ms}-{world.random.getrandbits(32):08x}"
    return event

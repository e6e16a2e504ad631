"""Submit a canary to each lane, as a caller would, when the scheduler calls.

Over HTTP it signs its requests with its own role, so the canaries have a tenant of their own. Where callers send
tokens, which it does not have, it submits in Python instead: the same checks and the same write, without the API. A
lane whose canary is not accepted is logged, and the alarm `LateCanary` notices that no canary of the lane ends.
"""

import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from tidemill.aws import clients
from tidemill.aws.http_client import HttpApi, api_address, by_signature
from tidemill.composition import parts
from tidemill.domain.errors import StoreUnavailableError, TidemillError
from tidemill.domain.submission.submission import Submission
from tidemill.names import CANARY_TENANT, CANARY_TYPE, Env, Lane
from tidemill.settings import setting
from tidemill.telemetry.outcome_log import logger

_ACCEPTED: Final = frozenset((HTTPStatus.OK, HTTPStatus.ACCEPTED))


@cache
def _api() -> HttpApi:
    client = clients.dynamodb()
    url = api_address(setting(Env.API_ID), setting(Env.API_URL), endpoint=client.meta.endpoint_url)
    return HttpApi(url, by_signature(clients.credentials(), region=client.meta.region_name))


def handle(event: Mapping[str, Any], context: Any) -> None:  # noqa: ARG001 - as Lambda calls it
    """The lanes side by side: one that is answered late delays no other."""
    submit = _over_http if os.environ.get(Env.API_URL) else _in_python()
    with ThreadPoolExecutor(len(Lane)) as pool:
        list(pool.map(lambda lane: submit(lane, context.aws_request_id), Lane))


def _over_http(lane: Lane, trace: str) -> None:
    body = json.dumps({"type": CANARY_TYPE, "lane": lane, "payload": {"lane": lane}}).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": _key(lane, trace)}
    try:
        answer = _api().request("POST", "/jobs", body=body, headers=headers)
    except StoreUnavailableError as error:
        _not_accepted(lane, error=str(error))
        return
    if answer.status not in _ACCEPTED:
        _not_accepted(lane, status=answer.status, body=answer.body.decode(errors="replace")[:500])


def _in_python() -> Callable[[Lane, str], None]:
    accept, telemetry = parts().submit, parts().telemetry()

    def submit(lane: Lane, trace: str) -> None:
        canary = Submission(type=CANARY_TYPE, payload={"lane": lane}, lane=lane, key=_key(lane, trace))
        try:
            telemetry.accepted(accept(canary, tenant=CANARY_TENANT, trace=trace))
        except TidemillError as error:
            _not_accepted(lane, error=str(error))

    return submit


def _key(lane: Lane, trace: str) -> str:
    """The same in each delivery of one call."""
    return f"{lane}-{trace}"


def _not_accepted(lane: Lane, **fields: object) -> None:
    logger().error("canary not accepted", extra={"lane": lane, **fields})

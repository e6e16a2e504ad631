"""Submit a canary to each lane over HTTP, as a caller would, when the scheduler calls.

It signs its requests with its own role, so the canaries have a tenant of their own. A lane whose canary is not accepted
is logged, and the alarm `CanarySilent` notices that no canary of the lane ends.
"""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from tidemill.aws import clients
from tidemill.aws.http_client import HttpApi, api_address, by_signature
from tidemill.domain.errors import StoreUnavailableError
from tidemill.names import CANARY_TYPE, Env, Lane
from tidemill.settings import setting
from tidemill.telemetry.outcome_log import logger

_ACCEPTED: Final = frozenset((HTTPStatus.OK, HTTPStatus.ACCEPTED))


@cache
def _api() -> HttpApi:
    client = clients.dynamodb()
    url = api_address(setting(Env.API_ID), setting(Env.API_URL), endpoint=client.meta.endpoint_url)
    return HttpApi(url, by_signature(clients.credentials(), region=client.meta.region_name))


def handle(event: Mapping[str, Any], context: Any) -> None:  # noqa: ARG001 - as Lambda calls it
    """The lanes side by side: one that the API answers late delays no other."""
    with ThreadPoolExecutor(len(Lane)) as pool:
        list(pool.map(lambda lane: _submit(lane, trace=context.aws_request_id), Lane))


def _submit(lane: Lane, *, trace: str) -> None:
    body = json.dumps({"type": CANARY_TYPE, "lane": lane, "payload": {"lane": lane}}).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": f"{lane}-{trace}"}
    try:
        answer = _api().request("POST", "/jobs", body=body, headers=headers)
    except StoreUnavailableError as error:
        logger().error("canary not accepted", extra={"lane": lane, "error": str(error)})
        return
    if answer.status not in _ACCEPTED:
        extra = {"lane": lane, "status": answer.status, "body": answer.body.decode(errors="replace")[:500]}
        logger().error("canary not accepted", extra=extra)

"""Two types that call a service on a port of this host: one has a breaker, the other an adaptive limit."""

import http.client
from http import HTTPStatus
from typing import Final

from pydantic import BaseModel, Field

from functions.demo_jobs.ledger import appended
from tidemill import Adaptive, Breaker, Done, Run, job_type

#: Small, so that an outage fits into a drill.
PAYMENTS: Final = Breaker("payments", failure_threshold=3, probe_seconds=3)
TIMEOUT_SECONDS: Final = 1.8


class Call(BaseModel):
    """The port of the service, the ledger, and the number to append."""

    port: int = Field(ge=1, le=65_535)
    ledger: str
    number: int


class ServiceError(Exception):
    """The service refused the call. The breaker reads the status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the service answered {status}")
        self.status = status


@job_type("demo.charge", payload=Call, depends_on=[PAYMENTS], backoff_seconds=0.5)
def charge(payload: Call, run: Run) -> Done:  # noqa: ARG001 - every handler is given its run
    return _called(payload)


@job_type(
    "demo.ship",
    payload=Call,
    concurrency_per_key=Adaptive(floor=1, ceiling=20, target_seconds=0.5),
    across_tenants=True,
    backoff_seconds=0.5,
)
def ship(payload: Call, run: Run) -> Done:  # noqa: ARG001 - every handler is given its run
    return _called(payload)


def _called(payload: Call) -> Done:
    connection = http.client.HTTPConnection("127.0.0.1", payload.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("POST", "/")
        status = connection.getresponse().status
    finally:
        connection.close()
    if status != HTTPStatus.NO_CONTENT:
        raise ServiceError(status)
    return Done(writes=[appended(payload.ledger, str(payload.number))])

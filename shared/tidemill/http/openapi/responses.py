"""The responses: success, and every problem."""

from collections.abc import Mapping
from typing import Any, Final

from tidemill.http.openapi.schemas import ref

Answers = dict[str, Any]

#: The meaning of each problem code. A test compares the codes with the source.
MEANINGS: Final[Mapping[str, str]] = {
    "not-json": "The body is not JSON.",
    "duplicate-member": "An object in the body has two members with one name; the detail names it.",
    "invalid-key": "The Idempotency-Key is not 1 to 255 visible ASCII characters, or the request is a batch.",
    "no-identity": "The caller is verified, but has no identity that can own a job.",
    "no-such-job": "The caller owns no job with this id, or its retention has ended.",
    "no-such-flow": "The caller owns no flow with this id, or its retention has ended.",
    "no-such-batch": "The caller owns no batch with this id, or its retention has ended.",
    "no-such-event": "The caller owns no event with this id, or its retention has ended.",
    "not-found": "No such route.",
    "listing-off": "The stage has no index for listings.",
    "not-allowed-now": "The state of the job does not allow it.",
    "too-large": "The body, or the payload in it, is larger than the limit.",
    "media-type": "The body is not sent as application/json.",
    "unknown-job-type": "No job type has this name.",
    "job-type-not-loaded": "A broken job file keeps the service from knowing the type. Retry after `Retry-After`.",
    "invalid-body": "The body does not fit its schema; `errors` has the path of each fault.",
    "invalid-query": "A parameter does not fit its schema; `errors` names each.",
    "key-reused": "The Idempotency-Key was used before with another body; 1 and 1.0 differ.",
    "internal": "An unexpected error occurred; the operator finds its cause by the request in `instance`.",
    "unreadable-job": "The job exists, but its document cannot be read. An operator must repair it.",
    "paused": "An operator has paused what the job belongs to, and refuses new jobs. Retry after `Retry-After`.",
    "quota-exceeded": "The caller has submitted as many jobs in this period as its quota allows. Retry after "
    "`Retry-After`.",
    "strained": "The service is under strain, and sheds jobs of this type. Retry after `Retry-After`.",
    "unavailable": "A dependency did not respond. Retry, with the same Idempotency-Key if you sent one.",
}

HEADERS: Final = {
    "Location": {"description": "The path of the job.", "schema": {"type": "string"}},
    "Idempotent-Replayed": {
        "description": "An earlier request created the job: one with the same key, or one of the same unique period.",
        "schema": {"const": "true"},
    },
    "Debounced": {
        "description": "An earlier submission with the same debounce key created the job, and this one is part of it.",
        "schema": {"const": "true"},
    },
    "Retry-After": {"description": "In seconds.", "schema": {"type": "string", "pattern": "^[0-9]+$"}},
}


def good(description: str, schema: str, *headers: str) -> Answers:
    return {
        "description": description,
        "content": {"application/json": {"schema": ref(schema)}},
        **_headers(*headers),
    }


def problems(*codes: str, gateway: str = "", headers: tuple[str, ...] = ()) -> Answers:
    """The problems of one status. `gateway` says when API Gateway itself sends the status, with its own body."""
    content: Answers = {}
    if codes:
        kinds = {"properties": {"type": {"enum": [f"urn:tidemill:problem:{code}" for code in codes]}}}
        content["application/problem+json"] = {"schema": {"allOf": [ref("Problem"), kinds]}}
    if gateway:
        content["application/json"] = {"schema": ref("GatewayMessage")}
    description = " ".join([*(f"`{code}`: {MEANINGS[code]}" for code in codes), gateway]).strip()
    return {"description": description, "content": content, **_headers(*headers)}


def _headers(*names: str) -> Answers:
    return {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names}} if names else {}


#: The responses that every route has.
ANYWHERE: Final = {
    "429": problems(gateway="API Gateway throttles the stage. The limit counts all callers together."),
    "500": problems("internal", "unreadable-job", gateway="The function failed."),
    "503": problems("unavailable", gateway="API Gateway could not invoke the function.", headers=("Retry-After",)),
}
#: The status 429 of a route that accepts jobs.
OVER_QUOTA: Final = problems(
    "quota-exceeded",
    gateway="API Gateway throttles the stage. The limit counts all callers together.",
    headers=("Retry-After",),
)
#: The status 503 of a route that accepts jobs.
NOT_ACCEPTED: Final = problems(
    "paused",
    "strained",
    "job-type-not-loaded",
    "unavailable",
    gateway="API Gateway could not invoke the function.",
    headers=("Retry-After",),
)
_HEALTH: Final = good("Jobs are not accepted, or do not get through: the first check that is not `ok`.", "Health")
#: The status 503 of the health: what was checked, or the problem of any route.
UNHEALTHY: Final = {
    **ANYWHERE["503"],
    "description": f"{_HEALTH['description']} {ANYWHERE['503']['description']}",
    "content": ANYWHERE["503"]["content"]
    | {"application/json": {"schema": {"anyOf": [ref("Health"), ref("GatewayMessage")]}}},
}
#: The responses of every route that requires an identity.
SECURED: Final = ANYWHERE | {
    "401": problems(gateway="The stage requires a token, and the request has no valid one."),
    "403": problems("no-identity", gateway="The request has no valid signature, or IAM denies it."),
}
#: The responses of every route that reads a body.
WITH_BODY: Final = {
    "400": problems("not-json", "duplicate-member"),
    "413": problems("too-large"),
    "415": problems("media-type"),
    "422": problems("invalid-body"),
}

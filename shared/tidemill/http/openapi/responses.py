"""The answers: what a call is answered with when it goes well, and each way in which it may not."""

from collections.abc import Mapping
from typing import Any, Final

from tidemill.http.openapi.schemas import ref

Answers = dict[str, Any]

#: What each code of a problem means. A test holds it against the source.
MEANINGS: Final[Mapping[str, str]] = {
    "not-json": "The body is not JSON.",
    "invalid-key": "The Idempotency-Key is not 1 to 255 visible ASCII characters, or the request is a batch.",
    "no-identity": "The caller is verified, but has no identity that can own a job.",
    "no-such-job": "The caller owns no job with this id, or its retention has ended.",
    "not-found": "No such route.",
    "listing-off": "The stage has no index for listings.",
    "not-allowed-now": "The state of the job does not allow it.",
    "too-large": "The body, or the payload in it, is larger than the limit.",
    "media-type": "The body is not sent as application/json.",
    "unknown-job-type": "No job type has this name.",
    "invalid-body": "The body does not fit its schema; `errors` has the path of each fault.",
    "invalid-query": "A parameter does not fit its schema; `errors` names each.",
    "key-reused": "The Idempotency-Key was used before with another body.",
    "internal": "An unexpected error occurred.",
    "unavailable": "A dependency did not respond. Retry, with the same Idempotency-Key if you sent one.",
}

HEADERS: Final = {
    "Location": {"description": "The path of the job.", "schema": {"type": "string"}},
    "Idempotent-Replayed": {
        "description": "The job was made by an earlier request under the same key, or is the unique one.",
        "schema": {"const": "true"},
    },
    "Retry-After": {"description": "Seconds.", "schema": {"type": "string", "pattern": "^[0-9]+$"}},
}


def good(description: str, schema: str, *headers: str) -> Answers:
    return {
        "description": description,
        "content": {"application/json": {"schema": ref(schema)}},
        **_headers(*headers),
    }


def problems(*codes: str, gateway: str = "", headers: tuple[str, ...] = ()) -> Answers:
    """The problems of one status; `gateway` says when API Gateway itself gives it, in words of its own."""
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


#: Possible answers to every call.
ANYWHERE: Final = {
    "429": problems(gateway="The stage is throttled, for all its callers together."),
    "500": problems("internal", gateway="The function broke."),
    "503": problems("unavailable", gateway="The function could not be called.", headers=("Retry-After",)),
}
#: Possible answers to a call that needs a verified caller.
SECURED: Final = ANYWHERE | {
    "401": problems(gateway="The stage needs a token, and this one is missing or not valid."),
    "403": problems("no-identity", gateway="The signature is missing or not valid, or IAM denies the call."),
}
#: Possible answers to a call with a body.
WITH_BODY: Final = {
    "400": problems("not-json"),
    "413": problems("too-large"),
    "415": problems("media-type"),
    "422": problems("invalid-body"),
}

"""Every route: what it takes, and with what it answers."""

from typing import Any, Final

from tidemill.http.list_query import DEFAULT_PAGE, LARGEST_PAGE, LONGEST_CURSOR, LONGEST_TYPE
from tidemill.http.openapi.responses import ANYWHERE, SECURED, WITH_BODY, good, problems
from tidemill.http.openapi.schemas import ref
from tidemill.names import LARGEST_BATCH_BODY_BYTES, LARGEST_BODY_BYTES

Operation = dict[str, Any]

_JOB_ID: Final = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "format": "uuid"},
}
_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Submissions of a caller with the same key and body make one job.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}
#: Characters that no id has lead to no route at all.
_NO_SUCH_JOB: Final = problems("no-such-job", "not-found")


def _body(schema: str, *, required: bool = True, **more: Any) -> Operation:
    return {"required": required, "content": {"application/json": {"schema": ref(schema), **more}}}


def _parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


_MOMENT: Final = {"type": "string", "format": "date-time"}
_FILTERS: Final = [
    _parameter("state", ref("State"), "Only jobs in this state."),
    _parameter("type", {"type": "string", "minLength": 1, "maxLength": LONGEST_TYPE}, "Only jobs of this type."),
    _parameter("since", _MOMENT, "Only jobs submitted then or later."),
    _parameter("until", _MOMENT, "Only jobs submitted before then."),
    _parameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": DEFAULT_PAGE},
        "How many jobs to answer with at most.",
    ),
    _parameter(
        "cursor",
        {"type": "string", "minLength": 1, "maxLength": LONGEST_CURSOR},
        "The cursor of the page before, with the same filters.",
    ),
]

_SUBMIT: Final[Operation] = {
    "operationId": "submitJob",
    "summary": "Submit a job",
    "description": f"The body is at most {LARGEST_BODY_BYTES} bytes.",
    "parameters": [_KEY],
    "requestBody": _body("SubmissionForm", example={"type": "mail.welcome", "payload": {"address": "ada@example.com"}}),
    "responses": SECURED
    | WITH_BODY
    | {
        "202": good("The job is accepted.", "Job", "Location"),
        "200": good("The job was accepted before.", "Job", "Location", "Idempotent-Replayed"),
        "400": problems("not-json", "invalid-key"),
        "422": problems("invalid-body", "unknown-job-type", "key-reused"),
    },
}
_SUBMIT_BATCH: Final[Operation] = {
    "operationId": "submitJobs",
    "summary": "Submit up to a hundred jobs",
    "description": "Each is accepted or refused for itself, and answered in its place. "
    f"The body is at most {LARGEST_BATCH_BODY_BYTES} bytes.",
    "requestBody": _body("BatchForm"),
    "responses": SECURED
    | WITH_BODY
    | {
        "200": good("An answer for each, in the order of the body.", "BatchAnswers"),
        "400": problems("not-json", "invalid-key"),
    },
}
_LIST: Final[Operation] = {
    "operationId": "listJobs",
    "summary": "List jobs, newest first",
    "description": "A page may be short or empty although more follow: one request reads a bounded number of jobs and "
    "days, also those that the filters leave out. The last page has a null `cursor`. A new job may take a moment to "
    "appear.",
    "parameters": _FILTERS,
    "responses": SECURED
    | {
        "200": good("A page of jobs.", "JobPage"),
        "404": problems("listing-off"),
        "422": problems("invalid-query"),
    },
}
_GET: Final[Operation] = {
    "operationId": "getJob",
    "summary": "Look at a job",
    "parameters": [_JOB_ID],
    "responses": SECURED | {"200": good("The job.", "Job"), "404": _NO_SUCH_JOB},
}
_CANCEL: Final[Operation] = {
    "operationId": "cancelJob",
    "summary": "Cancel a job",
    "description": "One that runs is asked to end, and ends when its handler next looks; any other ends at once. "
    "A dead one is discarded, and its group goes on. Asking again changes nothing.",
    "parameters": [_JOB_ID],
    "requestBody": _body("Nothing", required=False),
    "responses": SECURED
    | WITH_BODY
    | {
        "200": good("The job: cancelled, or running with `cancel_requested_at`.", "Job"),
        "404": _NO_SUCH_JOB,
        "409": problems("not-allowed-now"),
    },
}
_REDRIVE: Final[Operation] = {
    "operationId": "redriveJob",
    "summary": "Requeue a dead job with a fresh set of attempts",
    "description": "If the group has moved past the job, the job waits at the end of its group.",
    "parameters": [_JOB_ID],
    "requestBody": _body("Nothing", required=False),
    "responses": SECURED
    | WITH_BODY
    | {
        "200": good("The job: `queued`, or `waiting` at the end of its group.", "Job"),
        "404": _NO_SUCH_JOB,
        "409": problems("not-allowed-now"),
    },
}
_RETRY: Final[Operation] = _REDRIVE | {
    "operationId": "retryJob",
    "summary": "Alias of `POST /jobs/{id}/redrive`",
    "deprecated": False,
}
_DESCRIBE: Final[Operation] = {
    "operationId": "describe",
    "summary": "This description",
    "security": [],
    "responses": ANYWHERE
    | {"200": {"description": "OpenAPI 3.1.", "content": {"application/json": {"schema": {"type": "object"}}}}},
}

PATHS: Final[dict[str, dict[str, Operation]]] = {
    "/jobs": {"post": _SUBMIT, "get": _LIST},
    "/jobs/batch": {"post": _SUBMIT_BATCH},
    "/jobs/{id}": {"get": _GET},
    "/jobs/{id}/cancel": {"post": _CANCEL},
    "/jobs/{id}/redrive": {"post": _REDRIVE},
    "/jobs/{id}/retry": {"post": _RETRY},
    "/openapi.json": {"get": _DESCRIBE},
}

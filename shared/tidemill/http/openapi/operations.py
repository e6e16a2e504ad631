"""Every route: its parameters, its body and its responses."""

from typing import Any, Final

from tidemill.application.validation import TAG_PATTERN
from tidemill.domain.signals import LARGEST_SIGNAL_BYTES, NAME_PATTERN
from tidemill.http.list_query import DEFAULT_PAGE, LARGEST_PAGE, LONGEST_CURSOR, LONGEST_TYPE, NODE_CURSOR
from tidemill.http.openapi.responses import (
    ANYWHERE,
    NOT_ACCEPTED,
    OVER_QUOTA,
    SECURED,
    UNHEALTHY,
    WITH_BODY,
    good,
    problems,
)
from tidemill.http.openapi.schemas import ref
from tidemill.names import LARGEST_BATCH_BODY_BYTES, LARGEST_BODY_BYTES

Operation = dict[str, Any]

_ID: Final = {"type": "string", "format": "uuid"}
_JOB_ID: Final = {"name": "id", "in": "path", "required": True, "schema": _ID}
_SIGNAL_NAME: Final = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": f"^{NAME_PATTERN}$"},
}
_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Submissions of one caller with the same key and body create one job.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}
_EVENT_KEY: Final = _KEY | {"description": "Publications of one caller with the same type and key are one event."}
_CONTEXT: Final = {
    "name": "traceparent",
    "in": "header",
    "description": "The W3C trace context that the job belongs to. `X-Amzn-Trace-Id` with a parent is read too. An "
    "invalid value is ignored.",
    "schema": {"type": "string"},
}
#: A path with characters outside those of an id matches no route.
_NO_SUCH_JOB: Final = problems("no-such-job", "not-found")
_NO_SUCH_FLOW: Final = problems("no-such-flow", "not-found")
_NO_SUCH_BATCH: Final = problems("no-such-batch", "not-found")


def _body(schema: str, *, required: bool = True, **more: Any) -> Operation:
    return {"required": required, "content": {"application/json": {"schema": ref(schema), **more}}}


def _parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


_MOMENT: Final = {"type": "string", "format": "date-time"}
_FILTERS: Final = [
    _parameter("state", ref("State"), "Only jobs in this state."),
    _parameter("type", {"type": "string", "minLength": 1, "maxLength": LONGEST_TYPE}, "Only jobs of this type."),
    _parameter("tag", {"type": "string", "pattern": f"^{TAG_PATTERN}$"}, "Only jobs with this tag."),
    _parameter("batch", _ID, "Only jobs of this batch."),
    _parameter("event", _ID, "Only the jobs of the consumers of this event."),
    _parameter("since", _MOMENT, "Only jobs submitted then or later."),
    _parameter("until", _MOMENT, "Only jobs submitted before then."),
    _parameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": DEFAULT_PAGE},
        "The largest number of jobs in the page.",
    ),
    _parameter(
        "cursor",
        {"type": "string", "minLength": 1, "maxLength": LONGEST_CURSOR},
        "The cursor of the previous page. The filters must be the same.",
    ),
]

_SUBMIT: Final[Operation] = {
    "operationId": "submitJob",
    "summary": "Submit a job",
    "description": f"The body is at most {LARGEST_BODY_BYTES} bytes.",
    "parameters": [_KEY, _CONTEXT],
    "requestBody": _body("SubmissionForm", example={"type": "mail.welcome", "payload": {"address": "ada@example.com"}}),
    "responses": SECURED
    | WITH_BODY
    | {
        "202": good("The job is accepted.", "Job", "Location"),
        "200": good("An earlier request submitted the job.", "Job", "Location", "Idempotent-Replayed", "Debounced"),
        "400": problems("not-json", "duplicate-member", "invalid-key"),
        "409": problems("not-allowed-now"),
        "422": problems("invalid-body", "unknown-job-type", "key-reused"),
        "429": OVER_QUOTA,
        "503": NOT_ACCEPTED,
    },
}
_HEALTH: Final[Operation] = {
    "operationId": "health",
    "summary": "Get what was checked: whether jobs are accepted and get through",
    "description": "`table`: the jobs table can be read. `lane_NAME`: a canary job of the lane, submitted "
    "`age_seconds` ago, got through; where the stage has canaries. `job_files`: all deployed job files could be "
    "imported; if not, only their types are affected, and the status stays 200. The answer may be 5 seconds old.",
    "responses": SECURED | {"200": good("Jobs are accepted and get through.", "Health"), "503": UNHEALTHY},
}
_SUBMIT_BATCH: Final[Operation] = {
    "operationId": "submitJobs",
    "summary": "Submit up to a hundred jobs",
    "description": f"Each job is accepted or refused on its own. The body is at most {LARGEST_BATCH_BODY_BYTES} bytes.",
    "parameters": [_CONTEXT],
    "requestBody": _body("BatchForm"),
    "responses": SECURED
    | WITH_BODY
    | {
        "200": good("A response for each job, in the order of the body.", "BatchAnswers"),
        "400": problems("not-json", "duplicate-member", "invalid-key"),
    },
}
_PUBLISH: Final[Operation] = {
    "operationId": "publishEvent",
    "summary": "Publish an event",
    "description": "Each consumer whose filter matches gets a job of its own. The response is the job of the event, "
    f"whose success creates these. The body is at most {LARGEST_BODY_BYTES} bytes.",
    "parameters": [
        _EVENT_KEY,
        _CONTEXT,
    ],
    "requestBody": _body("EventForm", example={"type": "order.placed", "data": {"order": "7"}}),
    "responses": SECURED
    | WITH_BODY
    | {
        "202": good("The event is accepted.", "Job", "Location"),
        "200": good("An earlier request published the event.", "Job", "Location", "Idempotent-Replayed"),
        "400": problems("not-json", "duplicate-member", "invalid-key"),
        "422": problems("invalid-body", "key-reused"),
        "429": OVER_QUOTA,
        "503": NOT_ACCEPTED,
    },
}
_OPEN_BATCH: Final[Operation] = {
    "operationId": "openBatch",
    "summary": "Open a batch",
    "description": "Jobs join it by `batch`. Once it is closed and all its jobs are at rest, its callbacks are "
    f"submitted. The body is at most {LARGEST_BODY_BYTES} bytes.",
    "parameters": [
        _KEY | {"description": "Openings of one caller with the same key and body are one batch."},
        _CONTEXT,
    ],
    "requestBody": _body("OpeningForm", example={"on_success": {"type": "import.publish"}}),
    "responses": SECURED
    | WITH_BODY
    | {
        "202": good("The batch is open.", "Batch", "Location"),
        "200": good("An earlier request opened the batch.", "Batch", "Location", "Idempotent-Replayed"),
        "400": problems("not-json", "duplicate-member", "invalid-key"),
        "409": problems("not-allowed-now"),
        "422": problems("invalid-body", "key-reused"),
        "429": OVER_QUOTA,
        "503": NOT_ACCEPTED,
    },
}
_GET_BATCH: Final[Operation] = {
    "operationId": "getBatch",
    "summary": "Count the jobs of a batch",
    "description": "With more than 1,000 unfinished jobs, the counts are those of the last look, at `counted_at`.",
    "parameters": [_JOB_ID],
    "responses": SECURED | {"200": good("The batch.", "Batch"), "404": _NO_SUCH_BATCH},
}
_CLOSE_BATCH: Final[Operation] = {
    "operationId": "closeBatch",
    "summary": "Let no more jobs join a batch",
    "description": "A repeated request changes nothing.",
    "parameters": [_JOB_ID],
    "requestBody": _body("Nothing", required=False),
    "responses": SECURED
    | WITH_BODY
    | {"200": good("The batch.", "Batch"), "404": _NO_SUCH_BATCH, "409": problems("not-allowed-now")},
}
_CANCEL_BATCH: Final[Operation] = {
    "operationId": "cancelBatch",
    "summary": "Cancel a batch with its jobs",
    "description": "No more jobs join. Its live and dead jobs are cancelled as by `cancelJob`, and no callback is "
    "submitted. A repeated request changes nothing.",
    "parameters": [_JOB_ID],
    "requestBody": _body("Nothing", required=False),
    "responses": SECURED
    | WITH_BODY
    | {"200": good("The batch.", "Batch"), "404": _NO_SUCH_BATCH, "409": problems("not-allowed-now")},
}
_START_FLOW: Final[Operation] = {
    "operationId": "startFlow",
    "summary": "Start a flow",
    "description": "Each node is a job that starts once its parents have ended. All nodes are accepted, or none. The "
    f"body is at most {LARGEST_BATCH_BODY_BYTES} bytes.",
    "parameters": [
        _KEY | {"description": "Flows of one caller with the same key and nodes are one flow."},
        _CONTEXT,
    ],
    "requestBody": _body(
        "FlowForm",
        example={
            "nodes": [
                {"name": "charge", "type": "order.charge", "payload": {"order": "7"}},
                {"name": "ship", "type": "order.ship", "payload": {"order": "7"}, "after": ["charge"]},
            ]
        },
    ),
    "responses": SECURED
    | WITH_BODY
    | {
        "202": good("The flow is accepted.", "Flow", "Location"),
        "200": good("An earlier request started the flow.", "Flow", "Location", "Idempotent-Replayed"),
        "400": problems("not-json", "duplicate-member", "invalid-key"),
        "422": problems("invalid-body", "key-reused"),
        "429": OVER_QUOTA,
        "503": NOT_ACCEPTED,
    },
}
_GET_FLOW: Final[Operation] = {
    "operationId": "getFlow",
    "summary": "Show the graph of a flow",
    "description": "With what has become of each node. A flow of more than 1,000 nodes, or with megabytes of names and "
    "edges, has several pages; the last one has a null `cursor`. Each has the counts of its own nodes.",
    "parameters": [
        _JOB_ID,
        _parameter("cursor", {"type": "string", "pattern": f"^{NODE_CURSOR}$"}, "The cursor of the previous page."),
    ],
    "responses": SECURED
    | {"200": good("The flow.", "FlowGraph"), "404": _NO_SUCH_FLOW, "422": problems("invalid-query")},
}
_ADD_NODES: Final[Operation] = {
    "operationId": "addNodes",
    "summary": "Add nodes to a flow",
    "description": "At most 100, to a flow that has not ended. The same nodes again change nothing.",
    "parameters": [_JOB_ID],
    "requestBody": _body("NodesForm", example={"nodes": [{"name": "bill", "type": "order.bill", "after": ["charge"]}]}),
    "responses": SECURED
    | WITH_BODY
    | {
        "200": good("The flow.", "Flow"),
        "404": _NO_SUCH_FLOW,
        "409": problems("not-allowed-now"),
        "422": problems("invalid-body"),
        "503": NOT_ACCEPTED,
    },
}
_CANCEL_FLOW: Final[Operation] = {
    "operationId": "cancelFlow",
    "summary": "Cancel a flow with its nodes",
    "description": "No more nodes start, and those that have not ended are cancelled. May be repeated.",
    "parameters": [_JOB_ID],
    "requestBody": _body("Nothing", required=False),
    "responses": SECURED
    | WITH_BODY
    | {
        "200": good("The flow.", "Flow"),
        "404": _NO_SUCH_FLOW,
        "409": problems("not-allowed-now"),
        "422": problems("invalid-body"),
    },
}
_LIST: Final[Operation] = {
    "operationId": "listJobs",
    "summary": "List jobs, newest first",
    "description": "The last page has a null `cursor`. A page before it may be short or empty, because one request "
    "reads a limited number of jobs and days, also if the filters exclude them. A new job may appear with a delay. "
    "With `batch` or `event`, the order is that of the ids, and no job is delayed.",
    "parameters": _FILTERS,
    "responses": SECURED
    | {
        "200": good("A page of jobs.", "JobPage"),
        "404": problems("listing-off", "no-such-batch", "no-such-event"),
        "422": problems("invalid-query"),
    },
}
_GET: Final[Operation] = {
    "operationId": "getJob",
    "summary": "Get a job",
    "parameters": [_JOB_ID],
    "responses": SECURED | {"200": good("The job.", "Job"), "404": _NO_SUCH_JOB},
}
_CANCEL: Final[Operation] = {
    "operationId": "cancelJob",
    "summary": "Cancel a job",
    "description": "A job that does not run ends at once. A running job ends when its handler saves its next "
    "checkpoint. A dead job is discarded, and its group goes on. A repeated request changes nothing.",
    "parameters": [_JOB_ID],
    "requestBody": _body("Nothing", required=False),
    "responses": SECURED
    | WITH_BODY
    | {
        "200": good("The job: `cancelled`, or `running` with `cancel_requested_at`.", "Job"),
        "404": _NO_SUCH_JOB,
        "409": problems("not-allowed-now"),
    },
}
_SIGNAL: Final[Operation] = {
    "operationId": "signalJob",
    "summary": "Give a job the data that it waits for",
    "description": f"The body is any JSON, at most {LARGEST_SIGNAL_BYTES} bytes as compact JSON in ASCII. A job that "
    "waits for this signal is queued at once; any other live job keeps it until a run asks for it. The first value "
    "counts: the same again changes nothing, and another one is refused.",
    "parameters": [_JOB_ID, _SIGNAL_NAME],
    "requestBody": {"required": True, "content": {"application/json": {"schema": {}, "example": {"approved": True}}}},
    "responses": SECURED
    | WITH_BODY
    | {
        "200": good("The job, with the signal.", "Job"),
        "404": _NO_SUCH_JOB,
        "409": problems("not-allowed-now"),
    },
}
_UNDO: Final[Operation] = {
    "operationId": "undoJob",
    "summary": "Submit the job that undoes the effect of a job",
    "description": "Its handler has said with its success which job that is. The job is submitted once: a repeated "
    "request returns the same job. It runs at the end of the group of the job that it undoes.",
    "parameters": [_JOB_ID],
    "requestBody": _body("Nothing", required=False),
    "responses": SECURED
    | WITH_BODY
    | {
        "200": good("The job that undoes it: its `undoes` is the id of the request.", "Job"),
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
    "summary": "Get this description",
    "security": [],
    "responses": ANYWHERE
    | {"200": {"description": "OpenAPI 3.1.", "content": {"application/json": {"schema": {"type": "object"}}}}},
}

PATHS: Final[dict[str, dict[str, Operation]]] = {
    "/jobs": {"post": _SUBMIT, "get": _LIST},
    "/jobs/batch": {"post": _SUBMIT_BATCH},
    "/events": {"post": _PUBLISH},
    "/batches": {"post": _OPEN_BATCH},
    "/batches/{id}": {"get": _GET_BATCH},
    "/batches/{id}/close": {"post": _CLOSE_BATCH},
    "/batches/{id}/cancel": {"post": _CANCEL_BATCH},
    "/flows": {"post": _START_FLOW},
    "/flows/{id}": {"get": _GET_FLOW},
    "/flows/{id}/nodes": {"post": _ADD_NODES},
    "/flows/{id}/cancel": {"post": _CANCEL_FLOW},
    "/jobs/{id}": {"get": _GET},
    "/jobs/{id}/cancel": {"post": _CANCEL},
    "/jobs/{id}/signals/{name}": {"post": _SIGNAL},
    "/jobs/{id}/undo": {"post": _UNDO},
    "/jobs/{id}/redrive": {"post": _REDRIVE},
    "/jobs/{id}/retry": {"post": _RETRY},
    "/health": {"get": _HEALTH},
    "/openapi.json": {"get": _DESCRIBE},
}

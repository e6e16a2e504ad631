"""What the description says about each operation of `routes`: its parameters, its body and its responses."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidemill.application.submission.validation import TAG_PATTERN
from tidemill.domain.waiting.signals import LARGEST_SIGNAL_BYTES, NAME_PATTERN
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
from tidemill.routes import ROUTES

Operation = dict[str, Any]

_ID: Final = {"type": "string", "format": "uuid"}
_MOMENT: Final = {"type": "string", "format": "date-time"}
#: The parameters of paths, by their names.
_IN_PATH: Final[Mapping[str, Operation]] = {"id": _ID, "name": {"type": "string", "pattern": f"^{NAME_PATTERN}$"}}
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
_CONFLICT: Final = problems("not-allowed-now")
_WITH_A_KEY: Final = problems("not-json", "duplicate-member", "invalid-key")


def _key(description: str) -> Operation:
    schema = {"type": "string", "pattern": "^[!-~]{1,255}$"}
    return {"name": "Idempotency-Key", "in": "header", "description": description, "schema": schema}


def _parameter(name: str, schema: Operation, description: str) -> Operation:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _body(schema: Operation, *, required: bool = True, **more: Any) -> Operation:
    return {"required": required, "content": {"application/json": {"schema": schema, **more}}}


def _operation(
    summary: str,
    description: str,
    *,
    parameters: Sequence[Operation] = (),
    body: Operation | None = None,
    responses: Operation,
) -> Operation:
    """`responses` are those that differ from what every operation may answer."""
    operation: Operation = {"summary": summary, "responses": SECURED | (WITH_BODY if body else {}) | responses}
    if description:
        operation["description"] = description
    if parameters:
        operation["parameters"] = list(parameters)
    if body:
        operation["requestBody"] = body
    return operation


def _accepting(
    summary: str,
    description: str,
    *,
    key: str,
    body: Operation,
    accepted: Operation,
    replayed: Operation,
    more: Operation | None = None,
) -> Operation:
    """An operation that makes a job. `key` says what the idempotency key identifies."""
    responses = {
        "202": accepted,
        "200": replayed,
        "400": _WITH_A_KEY,
        "422": problems("invalid-body", "key-reused"),
        "429": OVER_QUOTA,
        "503": NOT_ACCEPTED,
    }
    return _operation(
        summary, description, parameters=[_key(key), _CONTEXT], body=body, responses=responses | (more or {})
    )


def _changing(summary: str, description: str, changed: Operation, missing: Operation) -> Operation:
    """An operation without a body that changes a job, if its state allows it."""
    return _operation(
        summary,
        description,
        body=_body(ref("Nothing"), required=False),
        responses={"200": changed, "404": missing, "409": _CONFLICT},
    )


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

_REDRIVE: Final = _changing(
    "Requeue a dead job with a fresh set of attempts",
    "If the group has moved past the job, the job waits at the end of its group.",
    good("The job: `queued`, or `waiting` at the end of its group.", "Job"),
    _NO_SUCH_JOB,
)

#: By their names in `routes`, which also say the paths and their parameters.
_OPERATIONS: Final[Mapping[str, Operation]] = {
    "submitJob": _accepting(
        "Submit a job",
        f"The body is at most {LARGEST_BODY_BYTES} bytes.",
        key="Submissions of one caller with the same key and body create one job.",
        body=_body(ref("SubmissionForm"), example={"type": "mail.welcome", "payload": {"address": "ada@example.com"}}),
        accepted=good("The job is accepted.", "Job", "Location"),
        replayed=good("An earlier request submitted the job.", "Job", "Location", "Idempotent-Replayed", "Debounced"),
        more={"409": _CONFLICT, "422": problems("invalid-body", "unknown-job-type", "key-reused")},
    ),
    "submitJobs": _operation(
        "Submit up to a hundred jobs",
        f"Each job is accepted or refused on its own. The body is at most {LARGEST_BATCH_BODY_BYTES} bytes.",
        parameters=[_CONTEXT],
        body=_body(ref("BatchForm")),
        responses={
            "200": good("A response for each job, in the order of the body.", "BatchAnswers"),
            "400": _WITH_A_KEY,
        },
    ),
    "publishEvent": _accepting(
        "Publish an event",
        "Each consumer whose filter matches gets a job of its own. The response is the job of the event, "
        f"whose success creates these. The body is at most {LARGEST_BODY_BYTES} bytes.",
        key="Publications of one caller with the same type and key are one event.",
        body=_body(ref("EventForm"), example={"type": "order.placed", "data": {"order": "7"}}),
        accepted=good("The event is accepted.", "Job", "Location"),
        replayed=good("An earlier request published the event.", "Job", "Location", "Idempotent-Replayed"),
    ),
    "openBatch": _accepting(
        "Open a batch",
        "Jobs join it by `batch`. Once it is closed and all its jobs are at rest, its callbacks are "
        f"submitted. The body is at most {LARGEST_BODY_BYTES} bytes.",
        key="Openings of one caller with the same key and body are one batch.",
        body=_body(ref("OpeningForm"), example={"on_success": {"type": "import.publish"}}),
        accepted=good("The batch is open.", "Batch", "Location"),
        replayed=good("An earlier request opened the batch.", "Batch", "Location", "Idempotent-Replayed"),
        more={"409": _CONFLICT},
    ),
    "startFlow": _accepting(
        "Start a flow",
        "Each node is a job that starts once its parents have ended. All nodes are accepted, or none. The "
        f"body is at most {LARGEST_BATCH_BODY_BYTES} bytes.",
        key="Flows of one caller with the same key and nodes are one flow.",
        body=_body(
            ref("FlowForm"),
            example={
                "nodes": [
                    {"name": "charge", "type": "order.charge", "payload": {"order": "7"}},
                    {"name": "ship", "type": "order.ship", "payload": {"order": "7"}, "after": ["charge"]},
                ]
            },
        ),
        accepted=good("The flow is accepted.", "Flow", "Location"),
        replayed=good("An earlier request started the flow.", "Flow", "Location", "Idempotent-Replayed"),
    ),
    "addNodes": _operation(
        "Add nodes to a flow",
        "At most 100, to a flow that has not ended. The same nodes again change nothing.",
        body=_body(ref("NodesForm"), example={"nodes": [{"name": "bill", "type": "order.bill", "after": ["charge"]}]}),
        responses={"200": good("The flow.", "Flow"), "404": _NO_SUCH_FLOW, "409": _CONFLICT, "503": NOT_ACCEPTED},
    ),
    "health": _operation(
        "Get what was checked: whether jobs are accepted and get through",
        "`table`: the jobs table can be read. `lane_NAME`: a canary job of the lane, submitted "
        "`age_seconds` ago, got through; where the stage has canaries. `job_files`: all deployed job files could be "
        "imported; if not, only their types are affected, and the status stays 200. The answer may be 5 seconds old.",
        responses={"200": good("Jobs are accepted and get through.", "Health"), "503": UNHEALTHY},
    ),
    "listJobs": _operation(
        "List jobs, newest first",
        "The last page has a null `cursor`. A page before it may be short or empty, because one request "
        "reads a limited number of jobs and days, also if the filters exclude them. A new job may appear with a delay. "
        "With `batch` or `event`, the order is that of the ids, and no job is delayed.",
        parameters=_FILTERS,
        responses={
            "200": good("A page of jobs.", "JobPage"),
            "404": problems("listing-off", "no-such-batch", "no-such-event"),
            "422": problems("invalid-query"),
        },
    ),
    "getJob": _operation("Get a job", "", responses={"200": good("The job.", "Job"), "404": _NO_SUCH_JOB}),
    "cancelJob": _changing(
        "Cancel a job",
        "A job that does not run ends at once. A running job ends when its handler saves its next "
        "checkpoint. A dead job is discarded, and its group goes on. A repeated request changes nothing.",
        good("The job: `cancelled`, or `running` with `cancel_requested_at`.", "Job"),
        _NO_SUCH_JOB,
    ),
    "redriveJob": _REDRIVE,
    "retryJob": _REDRIVE | {"summary": "Alias of `POST /jobs/{id}/redrive`", "deprecated": False},
    "signalJob": _operation(
        "Give a job the data that it waits for",
        f"The body is any JSON, at most {LARGEST_SIGNAL_BYTES} bytes as compact JSON in ASCII. A job that "
        "waits for this signal is queued at once; any other live job keeps it until a run asks for it. The first value "
        "counts: the same again changes nothing, and another one is refused.",
        body=_body({}, example={"approved": True}),
        responses={"200": good("The job, with the signal.", "Job"), "404": _NO_SUCH_JOB, "409": _CONFLICT},
    ),
    "undoJob": _changing(
        "Submit the job that undoes the effect of a job",
        "Its handler has said with its success which job that is. The job is submitted once: a repeated "
        "request returns the same job. It runs at the end of the group of the job that it undoes.",
        good("The job that undoes it: its `undoes` is the id of the request.", "Job"),
        _NO_SUCH_JOB,
    ),
    "getBatch": _operation(
        "Count the jobs of a batch",
        "With more than 1,000 unfinished jobs, the counts are those of the last look, at `counted_at`.",
        responses={"200": good("The batch.", "Batch"), "404": _NO_SUCH_BATCH},
    ),
    "closeBatch": _changing(
        "Let no more jobs join a batch",
        "A repeated request changes nothing.",
        good("The batch.", "Batch"),
        _NO_SUCH_BATCH,
    ),
    "cancelBatch": _changing(
        "Cancel a batch with its jobs",
        "No more jobs join. Its live and dead jobs are cancelled as by `cancelJob`, and no callback is "
        "submitted. A repeated request changes nothing.",
        good("The batch.", "Batch"),
        _NO_SUCH_BATCH,
    ),
    "getFlow": _operation(
        "Show the graph of a flow",
        "With what has become of each node. A flow of more than 1,000 nodes, or with megabytes of names and "
        "edges, has several pages; the last one has a null `cursor`. Each has the counts of its own nodes.",
        parameters=[
            _parameter("cursor", {"type": "string", "pattern": f"^{NODE_CURSOR}$"}, "The cursor of the previous page.")
        ],
        responses={
            "200": good("The flow.", "FlowGraph"),
            "404": _NO_SUCH_FLOW,
            "422": problems("invalid-query"),
        },
    ),
    "cancelFlow": _changing(
        "Cancel a flow with its nodes",
        "No more nodes start, and those that have not ended are cancelled. May be repeated.",
        good("The flow.", "Flow"),
        _NO_SUCH_FLOW,
    ),
    "describe": {
        "summary": "Get this description",
        "security": [],
        "responses": ANYWHERE
        | {"200": {"description": "OpenAPI 3.1.", "content": {"application/json": {"schema": {"type": "object"}}}}},
    },
}


def paths() -> dict[str, dict[str, Operation]]:
    described: dict[str, dict[str, Operation]] = {}
    for route in ROUTES:
        operation = _OPERATIONS[route.operation]
        in_path = [
            {"name": name, "in": "path", "required": True, "schema": _IN_PATH[name]}
            for name in re.findall(r"{(\w+)}", route.path)
        ]
        if parameters := in_path + operation.get("parameters", []):
            operation = operation | {"parameters": parameters}
        described.setdefault(route.path, {})[route.method.lower()] = {"operationId": route.operation} | operation
    return described

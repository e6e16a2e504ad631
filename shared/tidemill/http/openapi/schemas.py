"""The schemas: submissions, generated from their pydantic models, and jobs and problems as the API shows them."""

from typing import Any, Final

from pydantic.json_schema import models_json_schema

from tidemill.application.validation import MOST_TAGS
from tidemill.domain.events import LONGEST_EVENT_GROUP
from tidemill.domain.job import OPERATOR, OWNER, DeathReason
from tidemill.domain.signals import MOST_SIGNALS
from tidemill.domain.states import State
from tidemill.domain.steps import MOST_STEPS
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.http.submission_form import (
    BatchedForm,
    BatchForm,
    EventForm,
    FlowForm,
    NodesForm,
    OpeningForm,
    SubmissionForm,
)

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_FLAG: Final[Schema] = {"type": "boolean"}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_ID: Final[Schema] = {"type": "string", "format": "uuid"}

#: Descriptions of the members of a submission.
_NOTES: Final = {
    "type": "The name of the job type.",
    "payload": "The input of the handler. It must fit the payload model of the type.",
    "lane": "A lane less urgent than the type's own lane.",
    "delay_seconds": "The delay before the earliest run. Not together with `run_at`.",
    "run_at": f"The job runs no sooner than at this time, at most {LONGEST_SPAN.days} days ahead.",
    "group": "Jobs of a group run one at a time, in the order of their acceptance. 1 to 128 bytes.",
    "deadline": "The job dies if no run has begun by then.",
    "max_age_seconds": "Once older than this, counted from its earliest time, the job expires instead of a run.",
    "unique": "One job of its type per period. Not together with an idempotency key.",
    "tags": "Up to five labels to find the job by, without repeats. Their order means nothing.",
    "supersedes": "The key or the id of an earlier job of the caller. The new job runs once that one has no effect.",
    "batch": "The id of an open batch of the caller that the job joins.",
    "debounce_seconds": "The job runs once the caller has submitted no more of its type and debounce key for so long: "
    "a later submission moves it, if it has not begun, instead of making another job.",
    "debounce_key": "1 to 128 bytes. Without it, submissions of the same payload belong together.",
    "debounce_max_seconds": "The job runs this long after its first submission at the latest; ten times "
    "`debounce_seconds` by default.",
    "replace": "The payload of the last submission counts, and not that of the first. Needs `debounce_key`.",
    "idempotency_key": "Submissions of one caller with the same key and body create one job.",
}

#: Descriptions of the members of an event.
_EVENT_NOTES: Final = {
    "type": "The name of a declared event type.",
    "data": "It must fit the model of the event type and version.",
    "version": "The version of the event type.",
    "group": "Each consumer runs the events of a group one at a time, in the order of their acceptance. "
    f"1 to {LONGEST_EVENT_GROUP} bytes.",
}

#: Descriptions of the members of flows and their nodes.
_FLOW_NOTES: Final = {
    "name": "Unique in its flow.",
    "after": "Its parents: the name of each, or its name and what happens if it fails.",
    "node": "The name of a parent.",
    "on_failure": "If the parent fails: the node does not start unless a redrive lets the parent succeed, is skipped, "
    "or starts all the same.",
    "nodes": "In any order. Their parents may be any nodes of the flow.",
}
#: Descriptions of the members of an opening.
_BATCH_NOTES: Final = {
    "on_success": "Submitted once no job of the batch is dead, after a redrive too.",
    "on_failure": "Submitted the first time that all jobs are at rest and some are dead.",
    "on_complete": "Submitted the first time that all jobs are at rest.",
    "batch": "The id of an open batch of the caller that this one is a job of.",
    "tags": _NOTES["tags"],
}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(properties: Schema, **more: Any) -> Schema:
    """Every property is always present, and no others are."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


def _list_of(schema: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": schema, **more}


_SUMMARY: Final[Schema] = {
    "id": _ID,
    "type": _TEXT,
    "lane": ref("Lane"),
    "state": ref("State"),
    "attempt": _COUNT | {"description": "Runs since the job was submitted, continued or redriven."},
    "death": _or_null(ref("DeathReason")),
    "progress": _object(
        {"done": _or_null({"type": "integer"}), "total": _or_null({"type": "integer"}), "at": _or_null(_TIME)}
    ),
    "cancel_requested_at": _or_null(_TIME),
    "group": _or_null(_TEXT),
    "tags": _list_of(_TEXT, maxItems=MOST_TAGS) | {"description": "As submitted, sorted."},
    "batch": _or_null(_ID) | {"description": "The batch that it belongs to."},
    "debounce": _or_null(
        _object(
            {
                "key": _or_null(_TEXT),
                "until": _TIME | {"description": "No submission moves the job to a later time."},
                "moves": _COUNT,
                "first_moved_at": _or_null(_TIME),
                "replacements": _COUNT,
                "first_replaced_at": _or_null(_TIME),
            }
        )
    )
    | {"description": "How often later submissions have moved it, and replaced its payload."},
    "flow": _or_null(_ID) | {"description": "The flow of which it is a node."},
    "node": _or_null(_TEXT) | {"description": "The name of that node."},
    "sequence": _or_null(_COUNT) | {"description": "The position in its group."},
    "run_at": _or_null(_TIME) | {"description": "As submitted."},
    "deadline": _or_null(_TIME),
    "useful_until": _or_null(_TIME) | {"description": "A run that would begin later does not: the job expires."},
    "created_at": _TIME,
    "due": _or_null(_TIME)
    | {"description": "The earliest time of the next run. While the job runs: the end of its lease."},
    "wait": _or_null(_object({"cause": _TEXT, "key": _TEXT, "since": _TIME}))
    | {"description": "What the job waits for while it is `parked`, or waited for until its next run ends."},
    "claimed_at": _or_null(_TIME) | {"description": "When the last run began."},
    "finished_at": _or_null(_TIME),
    "expires_at": _or_null(_TIME) | {"description": "The end of its retention. The job is deleted then."},
    "undone_by": _or_null(_ID) | {"description": "The job that undoes its effect."},
}

_JOB: Final[Schema] = _SUMMARY | {
    "payload": _or_null({"type": "object"}) | {"description": "Null if it was deleted before its job."},
    "result": {"description": "Any JSON; null until the job has succeeded."},
    "errors": _list_of(ref("AttemptError"), maxItems=10, description="The last failed attempts, oldest first."),
    "redrives": _list_of(
        ref("Redrive"), maxItems=10, description="Requeues after a death, oldest first; `by` is `owner` or `operator`."
    ),
    "cancelled_by": _or_null({"enum": [OWNER, OPERATOR]})
    | {"description": "Who cancelled it, or asked its run to end."},
    "history": _list_of(
        ref("Transition"),
        description="What happened to the job, oldest first: the acceptance and the last transitions.",
    ),
    "checkpoint": {"description": "The state that the handler saved last, to resume from; any JSON."},
    "steps": _list_of(
        _object({"name": _TEXT, "at": _TIME, "attempt": _COUNT}),
        maxItems=MOST_STEPS,
        description="The steps that have run, in order, until the job succeeds.",
    ),
    "signals": _list_of(
        _object({"name": _TEXT, "at": _TIME, "data": {"description": "Any JSON."}}),
        maxItems=MOST_SIGNALS,
        description="The signals that it got, oldest first.",
    ),
    "hops": _COUNT | {"description": "Snoozes, waits, continuations and follow-ups in the chain so far."},
    "parent": _or_null(_ID) | {"description": "The job whose success created this one."},
    "undo": _or_null(
        _object({"type": _TEXT, "lane": ref("Lane"), "payload": {"type": "object"}, "tags": _list_of(_TEXT)})
    )
    | {"description": "The job that would undo its effect, as its handler said."},
    "undone_at": _or_null(_TIME) | {"description": "When the job that undoes it was submitted."},
    "undoes": _or_null(_ID) | {"description": "The job whose effect this one undoes."},
    "supersedes": _or_null(_ID) | {"description": "The earlier job that this one corrects."},
    "superseded_by": _or_null(_ID) | {"description": "The later job that corrects this one."},
}

_ATTEMPT_ERROR: Final[Schema] = {
    "attempt": _COUNT,
    "at": _TIME,
    "class": _TEXT,
    "message": _TEXT,
    "retryable": _FLAG,
    "next_due": _or_null(_TIME),
}

_TRANSITION: Final[Schema] = {
    "at": _TIME,
    "what": _TEXT | {"description": "The state after it; or `accepted`, `moved` or `payload replaced`."},
    "cause": _TEXT | {"description": "For example `claimed`, the class of an error, a reason of death, `snoozed`."},
    "attempt": _or_null(_COUNT) | {"description": "The number of the run that it began or ended."},
}

_FAULT: Final[Schema] = {
    "pointer": _TEXT | {"description": "A JSON pointer into the body, or `#/` and the name of a parameter."},
    "detail": _TEXT,
}

_PROBLEM: Final[Schema] = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "format": "uri", "pattern": "^urn:tidemill:problem:[a-z-]+$"},
        "title": _TEXT,
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": _TEXT,
        "instance": _TEXT
        | {"description": "The id of the request, for an unexpected error: quote it to the operator."},
        "errors": _list_of(ref("Fault"), minItems=1),
    },
    "required": ["type", "title", "status", "detail"],
    "description": "A problem document, RFC 9457. Programs read `type`; `detail` is for a person.",
}

_BATCH: Final[Schema] = {
    "id": _ID,
    "state": ref("State") | {"description": "Of the job that waits for the others."},
    "jobs": _COUNT | {"description": "The jobs that have joined, at `counted_at`."},
    "counts": {
        "type": "object",
        "additionalProperties": _COUNT,
        "description": "The jobs by state. `missing`: deleted before their end was seen; `unreadable`: an operator "
        "must repair their documents.",
    },
    "counted_at": _or_null(_TIME),
    "created_at": _TIME,
    "closed_at": _or_null(_TIME),
    "cancel_requested_at": _or_null(_TIME) | {"description": "When a cancel of the whole was requested."},
    "finished_at": _or_null(_TIME),
    "expires_at": _or_null(_TIME),
    "batch": _or_null(_ID) | {"description": "The batch that this one is a job of."},
    "tags": _list_of(_TEXT, maxItems=MOST_TAGS),
}

_FLOW: Final[Schema] = {
    "id": _ID,
    "state": ref("State") | {"description": "Of the job that looks after the nodes."},
    "size": _COUNT | {"description": "The number of its nodes."},
    "created_at": _TIME,
    "cancel_requested_at": _or_null(_TIME),
    "finished_at": _or_null(_TIME),
    "expires_at": _or_null(_TIME),
    "tags": _list_of(_TEXT, maxItems=MOST_TAGS),
}

_GRAPH: Final[Schema] = {
    "counts": {"type": "object", "additionalProperties": _COUNT, "description": "The nodes of this page, by state."},
    "nodes": _list_of(
        _object(
            {
                "name": _TEXT,
                "type": _TEXT,
                "state": _TEXT | {"description": "`pending`, `skipped`, `blocked`, or the state of its job."},
                "job_id": _or_null(_ID) | {"description": "Its job, once that has started."},
                "after": _list_of(_object({"node": _TEXT, "on_failure": ref("OnFailure")})),
                "waits_for": _list_of(_TEXT) | {"description": "The first parents that have not ended, at most five."},
            }
        )
    ),
    "cursor": _or_null(_TEXT) | {"description": "For the next page; null in the last page."},
}

_BATCH_ANSWER: Final[Schema] = {
    "oneOf": [
        _object({"status": {"enum": [200, 202]}, "job": ref("JobSummary")}),
        _object({"status": {"type": "integer", "minimum": 400, "maximum": 599}, "problem": ref("Problem")})
        | {"not": {"properties": {"status": {"enum": [429, 503]}}}},
        _object(
            {
                "status": {"enum": [429, 503]},
                "problem": ref("Problem"),
                "retry_after": {"type": "integer", "minimum": 0, "description": "In seconds, as `Retry-After`."},
            }
        ),
    ],
    "description": "The response that a single submission of the job would get, without the payload.",
}


def schemas() -> Schema:
    bodies = (SubmissionForm, BatchedForm, BatchForm, EventForm, OpeningForm, FlowForm, NodesForm)
    models = [(model, "validation") for model in bodies]
    _, generated = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]  # a list is invariant
    forms = {name: _plain(form) for name, form in generated["$defs"].items()}
    described = {
        "SubmissionForm": _NOTES,
        "BatchedForm": _NOTES,
        "CallbackForm": _NOTES,
        "EventForm": _EVENT_NOTES,
        "OpeningForm": _BATCH_NOTES,
        "NodeForm": _NOTES | _FLOW_NOTES,
        "EdgeForm": _FLOW_NOTES,
        "FlowForm": _NOTES | _FLOW_NOTES,
        "NodesForm": _FLOW_NOTES,
    }
    for form, notes in described.items():
        for name, property_ in forms[form]["properties"].items():
            property_["description"] = notes[name]
    # The handler checks each job alone, so `BatchForm` accepts any value. The schema describes a valid one.
    forms["BatchForm"]["properties"]["jobs"]["items"] = ref("BatchedForm")
    return forms | {
        "State": {"type": "string", "enum": list(State)},
        "DeathReason": {"type": "string", "enum": list(DeathReason)},
        "Job": _object(_JOB),
        "JobSummary": _object(_SUMMARY),
        "JobPage": _object(
            {
                "jobs": _list_of(ref("JobSummary"), maxItems=100),
                "unreadable": _list_of(
                    _object({"id": _ID, "error": _TEXT}),
                    description="Jobs whose documents an operator must repair. No filter leaves them out.",
                ),
                "cursor": _or_null(_TEXT),
            }
        ),
        "Health": _object(
            {
                "ok": _FLAG,
                "checked_at": _TIME,
                "checks": _list_of(
                    _object({"name": _TEXT, "ok": _FLAG, "age_seconds": _or_null({"type": "number", "minimum": 0})})
                ),
            }
        ),
        "Batch": _object(_BATCH),
        "BatchAnswer": _BATCH_ANSWER,
        "Flow": _object(_FLOW),
        "FlowGraph": _object(_FLOW | _GRAPH),
        "BatchAnswers": _object({"jobs": _list_of(ref("BatchAnswer"))}),
        "AttemptError": _object(_ATTEMPT_ERROR),
        "Transition": _object(_TRANSITION),
        "Redrive": _object({"at": _TIME, "by": {"enum": [OWNER, OPERATOR]}, "death": _or_null(ref("DeathReason"))}),
        "Nothing": {"type": "object", "additionalProperties": False},
        "Problem": _PROBLEM,
        "Fault": _object(_FAULT),
        "GatewayMessage": {
            "type": "object",
            "properties": {"message": _TEXT},
            "description": "A response of API Gateway itself, before a function sees the request.",
        },
    }


def _plain(schema: Any) -> Any:
    """Without the titles that pydantic adds, and without null defaults, which say no more than an optional member."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _plain(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and value is None)
    }

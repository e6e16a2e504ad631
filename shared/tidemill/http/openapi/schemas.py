"""What goes over the wire: the forms of submissions as pydantic has them, and jobs and problems as they are shown."""

from typing import Any, Final

from pydantic.json_schema import models_json_schema

from tidemill.domain.job import DeathReason
from tidemill.domain.states import State
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.http.submission_form import BatchedForm, BatchForm, SubmissionForm

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_FLAG: Final[Schema] = {"type": "boolean"}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_ID: Final[Schema] = {"type": "string", "format": "uuid"}

#: What a submission may say, for a person to read.
_NOTES: Final = {
    "type": "What kind of job it is.",
    "payload": "What the handler is given; it must fit the model of the type.",
    "lane": "A lane less urgent than the type's own.",
    "delay_seconds": "Run it no sooner than this. Not together with `run_at`.",
    "run_at": f"Run it no sooner than at this time, at most {LONGEST_SPAN.days} days ahead.",
    "group": "Jobs of a group run one at a time, in the order accepted. 1 to 128 bytes.",
    "deadline": "A run that has not begun by then never will: the job dies instead.",
    "unique": "One job of its type in each period. Not together with an idempotency key.",
    "idempotency_key": "Submissions of a caller with the same key and body make one job.",
}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(properties: Schema, **more: Any) -> Schema:
    """All of them, always, and no others."""
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
    "attempt": _COUNT | {"description": "Runs begun since it was submitted, continued or retried."},
    "death": _or_null(ref("DeathReason")),
    "progress": _object(
        {"done": _or_null({"type": "integer"}), "total": _or_null({"type": "integer"}), "at": _or_null(_TIME)}
    ),
    "cancel_requested_at": _or_null(_TIME),
    "group": _or_null(_TEXT),
    "sequence": _or_null(_COUNT) | {"description": "The place in its group."},
    "run_at": _or_null(_TIME) | {"description": "As it was asked for."},
    "deadline": _or_null(_TIME),
    "created_at": _TIME,
    "due": _or_null(_TIME) | {"description": "Not before then; while it runs, when its lease ends."},
    "claimed_at": _or_null(_TIME) | {"description": "When the last run began."},
    "finished_at": _or_null(_TIME),
    "expires_at": _or_null(_TIME) | {"description": "When the job is forgotten."},
}

_JOB: Final[Schema] = _SUMMARY | {
    "payload": _or_null({"type": "object"}) | {"description": "Null if it was deleted before its job."},
    "result": {"description": "Any JSON; null until the job has succeeded."},
    "errors": _list_of(ref("AttemptError"), maxItems=10, description="The last failed attempts, oldest first."),
    "redrives": _list_of(ref("Redrive"), maxItems=10, description="Redrives and their operators, oldest first."),
    "checkpoint": {"description": "The last state that the handler saved to resume from; any JSON."},
    "hops": _COUNT | {"description": "Snoozes, continuations and follow-ups in a chain so far."},
    "parent": _or_null(_ID) | {"description": "The job whose success made this one."},
}

_ATTEMPT_ERROR: Final[Schema] = {
    "attempt": _COUNT,
    "at": _TIME,
    "class": _TEXT,
    "message": _TEXT,
    "retryable": _FLAG,
    "next_due": _or_null(_TIME),
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
        "errors": _list_of(ref("Fault"), minItems=1),
    },
    "required": ["type", "title", "status", "detail"],
    "description": "A problem document, RFC 9457. Programs look at `type`; `detail` is for a person.",
}

_BATCH_ANSWER: Final[Schema] = {
    "oneOf": [
        _object({"status": {"enum": [200, 202]}, "job": ref("JobSummary")}),
        _object({"status": {"type": "integer", "minimum": 400, "maximum": 599}, "problem": ref("Problem")}),
    ],
    "description": "What the job would have been answered with had it come alone, without its payload.",
}


def schemas() -> Schema:
    models = [(model, "validation") for model in (SubmissionForm, BatchedForm, BatchForm)]
    _, generated = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]  # a list is invariant
    forms = {name: _plain(form) for name, form in generated["$defs"].items()}
    for form in ("SubmissionForm", "BatchedForm"):
        for name, property_ in forms[form]["properties"].items():
            property_["description"] = _NOTES[name]
    # Each is checked for itself and answered for itself, so one that is not of this form spoils no batch.
    forms["BatchForm"]["properties"]["jobs"]["items"] = ref("BatchedForm")
    return forms | {
        "State": {"type": "string", "enum": list(State)},
        "DeathReason": {"type": "string", "enum": list(DeathReason)},
        "Job": _object(_JOB),
        "JobSummary": _object(_SUMMARY),
        "JobPage": _object({"jobs": _list_of(ref("JobSummary"), maxItems=100), "cursor": _or_null(_TEXT)}),
        "BatchAnswer": _BATCH_ANSWER,
        "BatchAnswers": _object({"jobs": _list_of(ref("BatchAnswer"))}),
        "AttemptError": _object(_ATTEMPT_ERROR),
        "Redrive": _object({"at": _TIME, "by": _TEXT, "death": _or_null(ref("DeathReason"))}),
        "Nothing": {"type": "object", "additionalProperties": False},
        "Problem": _PROBLEM,
        "Fault": _object(_FAULT),
        "GatewayMessage": {
            "type": "object",
            "properties": {"message": _TEXT},
            "description": "An answer of API Gateway itself, which the request did not pass.",
        },
    }


def _plain(schema: Any) -> Any:
    """Without the parts that pydantic adds for form builders: titles, and defaults that equal absence."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _plain(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and value is None)
    }

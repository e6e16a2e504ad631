"""The schemas, generated from the models of the requests and the responses."""

from typing import Any

from pydantic.json_schema import models_json_schema

from tidemill.http.openapi.answers import ANSWERS
from tidemill.http.request import Nothing
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


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def schemas() -> Schema:
    bodies = (SubmissionForm, BatchedForm, BatchForm, EventForm, OpeningForm, FlowForm, NodesForm, Nothing)
    models = [(model, "validation") for model in (*bodies, *ANSWERS)]
    _, generated = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]  # a list is invariant
    forms = {name: _plain(form) for name, form in generated["$defs"].items()}
    # Its docstring is for readers of the code.
    del forms["State"]["description"]
    # The handler checks each job alone, so `BatchForm` accepts any value. The schema describes a valid one.
    forms["BatchForm"]["properties"]["jobs"]["items"] = ref("BatchedForm")
    return forms


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

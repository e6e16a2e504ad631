"""The payload of a job type: a pydantic model, and its errors as faults with their paths.

Neither this module nor the door imports pydantic. If pydantic is there first, the batch utility of Powertools imports
the models of every event that Powertools can parse, a tenth of the cold start of a worker.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from tidemill.domain.errors import Fault, InvalidPayloadError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

#: More than an `InvalidPayloadError` lists.
_MOST: Final = 1_000


def faults(error: "ValidationError", *, under: str = "") -> list[Fault]:
    """The first faults of a pydantic error. The path of each is a JSON pointer that starts with `under`."""
    return [
        Fault(
            path=under + "".join(f"/{_escaped(step)}" for step in detail["loc"]),
            message=_message(detail["type"], detail["msg"]),
        )
        for detail in islice(details(error), _MOST)
    ]


def details(error: "ValidationError") -> "Iterator[ErrorDetails]":
    return iter(error.errors(include_url=False, include_context=False, include_input=False))


def _message(kind: str, message: str) -> str:
    """In the words of JSON, and without the prefix that pydantic puts before the text of a validator."""
    if kind in {"dict_type", "model_type", "model_attributes_type"}:
        return "Input should be a JSON object"
    # A decoded payload that is written again is invalid JSON for this reason alone.
    if kind in {"string_unicode", "json_invalid"}:
        return "Texts and names of members should be Unicode, without half a surrogate pair"
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _escaped(step: int | str) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def parser(model: "type[BaseModel]", *, under: str = "/payload") -> "Callable[[str], BaseModel]":
    """Raises `InvalidPayloadError` for JSON text that the model refuses.

    A strict model or field takes a time, a UUID or a decimal as text from JSON only, and a payload has no other form
    for them: https://docs.pydantic.dev/latest/concepts/strict_mode/.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - the file of the model has imported it

    def parse(payload: str) -> "BaseModel":
        try:
            return model.model_validate_json(payload)
        except ValidationError as error:
            refusal = error
        if next(details(refusal))["type"] == "json_invalid":
            # Half a surrogate pair, which JSON allows. Pydantic reads it from decoded JSON alone.
            try:
                return model.model_validate(json.loads(payload))
            except ValidationError as error:
                if any(detail["type"] == "string_unicode" for detail in details(error)):
                    refusal = error
        raise InvalidPayloadError(faults(refusal, under=under)) from refusal

    return parse


def field_names(model: "type[BaseModel]") -> Mapping[str, frozenset[str]]:
    """By field, its own name and its aliases."""
    return {name: frozenset({name, *_aliases(field)}) for name, field in model.model_fields.items()}


def _aliases(field: "FieldInfo") -> Iterator[str]:
    of_input = getattr(field.validation_alias, "choices", [field.validation_alias])
    # A path leads into another field, so it does not count as a name.
    yield from (name for name in (*of_input, field.alias, field.serialization_alias) if isinstance(name, str))

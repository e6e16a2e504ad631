"""What a return annotation shows before the function runs: that no result of it can be recorded, and why."""

import inspect
from collections.abc import Callable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Union, get_args, get_origin, get_type_hints
from uuid import UUID

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

#: JSON has no form for them, so the result of a job may hold none. `datetime` is a `date`.
_NOT_JSON: Final = (date, time, timedelta, Decimal, UUID, bytes, bytearray, set, frozenset, complex)
#: JSON has text for them. In a union with text, what is read back is text.
_WRITTEN_AS_TEXT: Final = (date, time, timedelta, Decimal, UUID, bytes, PurePath)


def returned_type(function: Callable[..., Any]) -> Any:
    """The return annotation alone: those of the parameters may name what exists for type checkers only.

    `Any` if the function has none, or one that names what cannot be found yet.
    """
    try:
        annotated = inspect.unwrap(function if hasattr(function, "__annotations__") else type(function).__call__)
        returned = type("Returned", (), {"__annotations__": {"value": annotated.__annotations__["return"]}})
        return get_type_hints(returned, globalns=annotated.__globals__, include_extras=True)["value"]
    except (AttributeError, KeyError, NameError, SyntaxError, TypeError):
        return Any


def not_json(returned: Any) -> str | None:
    """The first part of the annotation of a handler that is never JSON; None if the annotation shows none."""
    for part in _parts(returned):
        if get_origin(part) is dict and get_args(part)[0] in {int, float, bool, None, type(None)}:
            return f"{part!r}, whose names are not text"
        kind = get_origin(part) or part
        if isinstance(kind, type) and (issubclass(kind, _NOT_JSON) or hasattr(kind, "model_fields")):
            return f"{kind.__name__}, which is not JSON"
    return None


def not_readable(returned: Any) -> str | None:
    """Why pydantic cannot read back what it writes of this type; None if the annotation does not show it."""
    return next(_faults(returned, "", seen=frozenset()), None)


def _parts(annotation: Any) -> Iterator[Any]:
    """The annotation and all that it is made of. A serializer of the app decides about what is inside of it."""
    from pydantic import PlainSerializer, WrapSerializer  # noqa: PLC0415 - as below

    if not any(isinstance(each, PlainSerializer | WrapSerializer) for each in get_args(annotation)):
        yield annotation
        for part in get_args(annotation):
            yield from _parts(part)


def _faults(annotation: Any, path: str, *, seen: "frozenset[type[BaseModel]]") -> Iterator[str]:
    from pydantic import BaseModel, Secret, SecretBytes, SecretStr  # noqa: PLC0415 - the job file has imported it

    here = path or "the result"
    for part in _parts(annotation):
        if get_origin(part) in {Union, UnionType} and str in get_args(part):
            texts = [one for one in get_args(part) if isinstance(one, type) and issubclass(one, _WRITTEN_AS_TEXT)]
            yield from (f"{here} may be a str or a {one.__name__}, and JSON has text for both" for one in texts)
        kind = get_origin(part) or part
        if isinstance(kind, type) and issubclass(kind, Secret | SecretBytes | SecretStr):
            yield f"{here} is a {kind.__name__}, which is written as asterisks"
        elif isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in seen:
            yield from _faults_of_model(kind, path, seen=seen | {kind})


def _faults_of_model(model: "type[BaseModel]", path: str, *, seen: "frozenset[type[BaseModel]]") -> Iterator[str]:
    from pydantic import PlainSerializer, WrapSerializer  # noqa: PLC0415 - as above

    own = model.__pydantic_decorators__
    if own.model_serializers or any(each.info.mode != "after" for each in own.model_validators.values()):
        # Code of the app decides what is written, or what is read.
        return
    if model.model_config.get("extra") == "forbid":
        for name in model.model_computed_fields:
            yield f"{path}/{name} is a computed field, which is written, and {model.__name__} forbids extra fields"
    written_by_app = {name for each in own.field_serializers.values() for name in each.info.fields}
    for name, field in model.model_fields.items():
        here = f"{path}/{name}"
        if field.exclude:
            if field.is_required():
                yield f"{here} is required, and excluded from what is written"
            continue
        written = field.serialization_alias or name
        if (accepted := _accepted(model, name, field)) and written not in accepted:
            yield f"{here} is written as {written!r}, and read as {' or '.join(map(repr, sorted(accepted)))}"
        if not written_by_app & {name, "*"} and not any(
            isinstance(each, PlainSerializer | WrapSerializer) for each in field.metadata
        ):
            yield from _faults(field.annotation, here, seen=seen)


def _accepted(model: "type[BaseModel]", name: str, field: "FieldInfo") -> set[str]:
    """The names under which the model takes the field; empty if it may find it elsewhere."""
    alias, config = field.validation_alias, model.model_config
    names = [name] if alias is None else getattr(alias, "choices", [alias])
    if not all(isinstance(each, str) for each in names):
        return set()
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    return {*names, name} if by_name else {*names}

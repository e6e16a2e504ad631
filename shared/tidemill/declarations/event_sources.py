"""Sources of events, for the files in `functions/jobs`: how a record of a bus, bucket, topic or table becomes an event.

@event_source("uploads", publishes="file.uploaded")
def uploaded(record: S3Record) -> Uploaded | None: ...
"""

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

from tidemill.application.declarations import noted
from tidemill.application.event_types import EventSource
from tidemill.declarations import declaration_checks as checks
from tidemill.domain.errors import DeclarationError
from tidemill.domain.events.events import FIRST_VERSION
from tidemill.domain.events.source_records import (
    RECORD_OF,
    ChangeKind,
    EventBridgeRecord,
    S3Record,
    SnsRecord,
    SourceKind,
    TableRecord,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "ChangeKind",
    "EventBridgeRecord",
    "EventSource",
    "S3Record",
    "SnsRecord",
    "TableRecord",
    "event_source",
]

#: It is part of the names of resources.
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
_KINDS: Final = {record: kind for kind, record in RECORD_OF.items()}


def event_source(
    name: str, *, publishes: str, version: int = FIRST_VERSION
) -> Callable[[Callable[[Any], Any]], EventSource]:
    """Make an event of each record of a source. A construct in the stack of the app names it and feeds it.

    The function takes one record, whose annotation says from which service: `EventBridgeRecord`, `S3Record`,
    `SnsRecord` or `TableRecord`. It returns the data of the event, a pydantic model or a dict, or None to leave the
    record out. The same record must give the same data, since it may be delivered again. Raises `DeclarationError`.
    """
    if not _NAME.fullmatch(str(name)):
        raise DeclarationError(f"source name {name!r}: use 1 to 32 of a-z, 0-9 and '-', one of a-z first")
    checks.require_event_name(publishes)
    checks.require_version(version)

    def declare(function: Callable[[Any], Any]) -> EventSource:
        checks.require_callable("event_source", function, "record")
        hints = _hints(function)
        returned = hints.pop("return", Any)
        record = next(iter(hints.values()), None)
        if record not in _KINDS:
            names = ", ".join(each.__name__ for each in _KINDS)
            raise DeclarationError(f"event_source {name!r}: annotate its record with one of {names}")
        model = _model(returned)
        return noted(
            EventSource(
                name=name,
                kind=SourceKind(_KINDS[record]),
                event=publishes,
                version=version,
                function=function,
                written=_written,
                schema=partial(_schema, model) if model else None,
                file=function.__code__.co_filename,
                line=function.__code__.co_firstlineno,
            )
        )

    return declare


def _hints(function: Callable[[Any], Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except (NameError, TypeError) as error:
        raise DeclarationError(
            f"event_source {function.__name__!r}: its annotations cannot be read: {error}"
        ) from error


def _model(returned: Any) -> "type[BaseModel] | None":
    """The only model among what the function may return; None if it returns anything else."""
    from pydantic import BaseModel  # noqa: PLC0415 - `payload_model` says why

    kinds = [each for each in get_args(returned) or (returned,) if each is not type(None)]
    models = [each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel)]
    return models[0] if len(kinds) == len(models) == 1 else None


def _schema(model: "type[BaseModel]") -> dict[str, Any]:
    schema = model.model_json_schema(mode="serialization", by_alias=True)
    # Defaults are written, too.
    return {**schema, "required": list(schema.get("properties", {}))}


def _written(data: Any) -> Any:
    return data.model_dump(mode="json", by_alias=True) if hasattr(data, "model_dump") else data

"""Event types and their consumers, for the files in `functions/jobs`.

class OrderPlaced(BaseModel):
    order: str
    country: str

order_placed = event_type("order.placed", data=OrderPlaced)

@consumes("order.placed", filter={"country": ["DE", "AT"]})
@job_type("mail.confirm", payload=OrderPlaced)
def confirm(order: OrderPlaced, run: Run) -> None: ...
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemill.application.declarations import noted
from tidemill.application.event_types import EventType
from tidemill.application.job_types import JobType
from tidemill.declarations import declaration_checks as checks
from tidemill.declarations.payload_model import field_names, parser
from tidemill.domain.error_text import error_text, text_of
from tidemill.domain.errors import DeclarationError, EventModelError, Fault, InvalidPayloadError
from tidemill.domain.events.events import FIRST_VERSION, Consumption, Event, Scalar, Seen
from tidemill.domain.records import replace

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Event", "consumes", "event_type"]


def event_type(name: str, *, data: "type[BaseModel]", version: int = FIRST_VERSION) -> EventType:
    """Declare one version of an event type. Its model checks the data of each event before it is accepted.

    Raises `DeclarationError`.
    """
    checks.require_event_name(name)
    checks.require_model(data, option="data")
    checks.require_version(version)
    parse, names = parser(data, under="/data"), field_names(data)

    def read(text: str) -> Seen:
        try:
            written = parse(text).model_dump(mode="json")
        except InvalidPayloadError:
            raise
        except ValueError as error:
            # For example text that is not Unicode, or a serializer of the model that raises.
            raise InvalidPayloadError([Fault("/data", f"cannot be written as JSON: {text_of(error)}")]) from error
        except Exception as error:
            # Pydantic passes on most errors that a validator raises.
            raise EventModelError(f"the model of {name!r} raised {error_text(error)}") from error
        return _seen(json.loads(text), written, names)

    caller = sys._getframe(1)  # noqa: SLF001 - to name the declaration in a fault
    return noted(
        EventType(
            name=name,
            version=version,
            read=read,
            schema=data.model_json_schema,
            written_schema=partial(data.model_json_schema, mode="serialization", by_alias=False),
            names=names,
            file=caller.f_code.co_filename,
            line=caller.f_lineno,
        )
    )


def consumes(
    event: str,
    *,
    filter: Mapping[str, Scalar | Sequence[Scalar]] | None = None,  # noqa: A002 - as the filter of an event is called
    version: int | None = None,
) -> Callable[[JobType], JobType]:
    """Give each event of this type a job of the job type below, with the data of the event as its payload.

    `filter` names the values that top-level fields of the data may have, and all of them must match. A field has the
    names that its model gives it, and its value counts as published and as the model writes it. `version` takes the
    events of one version only. Write it above `@job_type`. With several, an event that matches any makes one job.
    Raises `DeclarationError`.
    """
    checks.require_event_name(event)
    if version is not None:
        checks.require_version(version)
    consumption = Consumption(type=event, version=version, filter=_filter(filter or {}))

    def declare(job_type: JobType) -> JobType:
        if not isinstance(job_type, JobType):
            raise DeclarationError(f"consumes({event!r}) must stand above @job_type")
        if job_type.unique is not None:
            raise DeclarationError("each event makes one job of its consumer: remove unique_seconds, or consumes")
        return replace(job_type, consumes=(*job_type.consumes, consumption))

    return declare


def _seen(published: Mapping[str, Any], written: Mapping[str, Any], names: Mapping[str, frozenset[str]]) -> Seen:
    """By each name of a field, what was published under any of them, and what the model writes, such as a default."""
    seen: dict[str, Sequence[Any]] = {name: (value,) for name, value in published.items()}
    for field, known in names.items():
        values = [published[name] for name in sorted(known) if name in published]
        values += [written[field]] if field in written else []
        seen |= dict.fromkeys(known, values)
    return seen


def _filter(declared: Mapping[str, Scalar | Sequence[Scalar]]) -> dict[str, tuple[Scalar, ...]]:
    if not isinstance(declared, Mapping):
        raise DeclarationError(f"filter is {declared!r}; it must be a dict of fields and their values")
    return {name: _values(name, allowed) for name, allowed in declared.items()}


def _values(name: object, allowed: Scalar | Sequence[Scalar]) -> tuple[Scalar, ...]:
    values = tuple(allowed) if isinstance(allowed, list | tuple) else (allowed,)
    if not isinstance(name, str) or not values or not all(_is_scalar(value) for value in values):
        raise DeclarationError(
            f"filter has {name!r}: {allowed!r}; give a field and a text, a whole number, true, false or null, or a "
            "list of them"
        )
    return values


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int)

"""The checks of events at a synthesis: each consumer takes every event that may reach it.

They compare JSON schemas, so a rule of one model that is not in its schema may still refuse an event in its run.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from tidemill.application.event_types import EventType
from tidemill.application.job_types import JobType, JobTypes
from tidemill.domain.errors import JobFileError
from tidemill.domain.events.events import MOST_CONSUMERS, Consumption
from tidemill.system.job_type_loader import declared_at

#: JSON types whose fields take values of other types, too.
_WIDER: Final = {"number": {"integer"}}
#: The JSON types of a field that may equal a value of a filter.
_TYPES_OF_VALUES: Final = {
    str: {"string"},
    bool: {"boolean"},
    int: {"integer", "number"},
    type(None): {"null"},
}


def require_consumers(job_types: JobTypes) -> None:
    """Raises `JobFileError` with file and line."""
    consumers = [job_type for job_type in map(job_types.get, job_types.names()) if job_type.consumes]
    for consumer in consumers:
        for consumption in consumer.consumes:
            taken = [event for event in job_types.events.values() if consumption.takes(event.name, event.version)]
            for fault in _faults(consumer, consumption, taken):
                raise JobFileError(f"{declared_at(consumer)}: {consumer.name!r} {fault}")
    for event in job_types.events.values():
        reached = sum(any(one.takes(event.name, event.version) for one in consumer.consumes) for consumer in consumers)
        if reached > MOST_CONSUMERS:
            raise JobFileError(
                f"{declared_at(event)}: event type {event.name!r} version {event.version} has {reached} consumers, and "
                f"one transaction creates the jobs of at most {MOST_CONSUMERS}: let one consumer publish another event"
            )


def require_sources(job_types: JobTypes) -> None:
    """Raises `JobFileError` with file and line for a source whose events would be refused."""
    for source in job_types.sources.values():
        event = job_types.events.get((source.event, source.version))
        if event is None:
            raise JobFileError(
                f"{declared_at(source)}: source {source.name!r} publishes the event type {source.event!r} version "
                f"{source.version}, which does not exist: assign an event_type(…) of it to a variable of a job file"
            )
        for fault in _misfits(event.schema(), source.schema()) if source.schema else ():
            raise JobFileError(
                f"{declared_at(source)}: the data of source {source.name!r} does not fit {_named(event)}: {fault}"
            )


def _faults(consumer: JobType, consumption: Consumption, taken: Iterable[EventType]) -> Iterator[str]:
    known = list(taken)
    if not known:
        version = f" version {consumption.version}" if consumption.version else ""
        yield (
            f"consumes the event type {consumption.type!r}{version}, which does not exist: assign an event_type(…) of "
            "that name to a variable of a job file"
        )
    for event in known:
        schema = event.schema()
        yield from _filter_faults(consumption, event, schema)
        for fault in _misfits(consumer.schema() if consumer.schema else {}, schema):
            yield f"cannot take {_named(event)}: {fault}"


def _filter_faults(consumption: Consumption, event: EventType, schema: dict[str, Any]) -> Iterator[str]:
    written = event.written_schema()
    for name, allowed in consumption.filter.items():
        field = next((field for field, names in event.names.items() if name in names), None)
        if field is None and name not in _fields(schema):
            yield f"filters {_named(event)} by {name!r}, which is not one of its fields"
            continue
        known = event.names.get(field or "", {name})
        published = next((_fields(schema)[one] for one in sorted(known) if one in _fields(schema)), {})
        forms = [_types(published, schema), _types(_fields(written).get(field or name, {}), written)]
        types = set().union(*forms) if all(forms) else set()
        for value in allowed if types else ():
            if not _TYPES_OF_VALUES[type(value)] & types:
                yield f"filters {_named(event)} by {name!r}: {value!r}, and it is of type {' or '.join(sorted(types))}"


def _misfits(wanted: dict[str, Any], given: dict[str, Any]) -> Iterator[str]:
    for name in wanted.get("required", ()):
        if name not in given.get("required", ()):
            yield f"it requires {name!r}, which the data of an event may lack"
    if wanted.get("additionalProperties") is False:
        for name in _fields(given).keys() - _fields(wanted).keys():
            yield f"it forbids {name!r}"
    for name, field in _fields(wanted).items():
        has, gets = _types(field, wanted), _types(_fields(given).get(name, {}), given)
        taken = has.union(*(_WIDER.get(type_, set()) for type_ in has))
        if has and (refused := gets - taken):
            yield f"{name!r} is of type {' or '.join(sorted(refused))}, and it takes {' or '.join(sorted(has))}"


def _types(field: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    """The JSON types of a field; empty if its schema does not say so, which fits everything."""
    if "$ref" in field:
        field = schema.get("$defs", {}).get(field["$ref"].rpartition("/")[2], {})
    if "anyOf" in field:
        each = [_types(one, schema) for one in field["anyOf"]]
        return set().union(*each) if all(each) else set()
    return {field["type"]} if isinstance(field.get("type"), str) else set()


def _fields(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    fields: dict[str, dict[str, Any]] = schema.get("properties", {})
    return fields


def _named(event: EventType) -> str:
    return f"the event type {event.name!r} version {event.version}"
